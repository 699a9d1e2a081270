"""Add columns of a data frame to a table; neither has to fit in the memory of the driver.

::

    frame: keys, values ──┐
                          ├── join ──► row address, values ──► shuffle by fragment, sort by address
    table: keys, address ─┘                                        │
                                                    one data file per fragment, commit at the driver

Rows that are known by their address need no join. What comes back is small: the names of new files.
With a folder for it each finished file is noted, so that a later attempt goes on from there.
"""

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.types import StructField, StructType

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import StoreError
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.rows import OFFSET_BITS
from lancetable.format.schema.model import Schema
from lancetable.format.schema.types import schema_from_arrow
from lancetable.fragment.readers import Readers
from lancetable.operations.columns.add import FunctionOptions, add_spread_columns
from lancetable.operations.columns.column_values import remove_checkpoint
from lancetable.operations.columns.extend import ExtendTask, Extension, extend_fragment, place_of
from lancetable.operations.columns.joined import (
    Addressed,
    Addresses,
    OrderedMaker,
    key_type,
    names_addresses,
    new_fields,
)
from lancetable.operations.input.assign import exact_cast
from lancetable.operations.keys.keys import comparable
from lancetable.operations.results import ColumnsResult, Done
from lancetable.operations.rows.parts import part_of, parts, read_rows
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest
from lancetable.spark.casts import plan_write
from lancetable.spark.errors import all_coded, explain_missing_modules
from lancetable.spark.merge.join import ADDRESS, KEY, Incoming, carried, key_fields, scan_keys
from lancetable.spark.options import Rounding
from lancetable.spark.types import to_arrow, to_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FRAGMENT, _VALUE = "_lancetable_fragment", "_lancetable_value"
_RESULT = "fragment bigint, result binary"
_ARROW = pa.schema([("fragment", pa.int64()), ("result", pa.binary())])
_dumps: Any = cloudpickle.dumps
_SUFFIX = ".file.json"


def add_frame_columns(
    snapshot: Snapshot, frame: "DataFrame", on: Sequence[str], options: FunctionOptions
) -> Done[ColumnsResult]:
    """Add the columns of a data frame to the rows with the same key, null where there is none.

    Raises:
        SchemaError: a column is there already, or a key column is missing.
        InputError: several rows of the frame have the key of one row.
        CommitError: nothing was changed.
    """
    stored = to_table(frame.schema, {})
    fields = new_fields(stored, on)
    for name in on:
        key_type(snapshot, name)
    extension = FrameExtension(frame, stored, tuple(on), options)
    done = add_spread_columns(snapshot, fields, on, extension, options.change)
    extension.finished.forget()
    return done


@dataclass(frozen=True, slots=True)
class FinishedFiles:
    """The notes of a backfill; without a folder there are none."""

    folder: str | None

    def note(self, part: Snapshot, ids: tuple[int, ...], file: DataFile) -> None:
        """Note the file that a fragment got."""
        path = self._path(part, ids)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".part")
            draft.write_text(json.dumps(file._asdict()))
            draft.rename(path)

    def find(self, part: Snapshot, ids: tuple[int, ...]) -> DataFile | None:
        """Return the file that a fragment got before, if it is still there."""
        path = self._path(part, ids)
        if path is None or not path.exists():
            return None
        try:
            noted = json.loads(path.read_text())
            lists = {name: tuple(noted[name]) for name in ("fields", "column_indices")}
            file = DataFile(**(noted | lists))
            store, place = part.data_file_place(file)
            return file if store.exists(place) else None
        except (ValueError, TypeError, KeyError, StoreError):
            return None

    def forget(self) -> None:
        """Remove the notes."""
        if self.folder is not None:
            remove_checkpoint(self.folder)

    def _path(self, part: Snapshot, ids: tuple[int, ...]) -> Path | None:
        if self.folder is None:
            return None
        fields = "_".join(map(str, ids))
        return Path(self.folder) / f"{place_of(part, f'fields_{fields}')}{_SUFFIX}"


class FrameExtension(Extension):
    """The files with columns of a data frame, written by workers of Spark."""

    def __init__(
        self, frame: "DataFrame", stored: pa.Schema, on: tuple[str, ...], options: FunctionOptions
    ) -> None:
        super().__init__(OrderedMaker(iter(())), options.change, options.batch_rows)
        self._frame = frame
        self._on = on
        self._write = options.change.write
        self._rows = options.batch_rows
        self.finished = FinishedFiles(options.checkpoint)
        self._kept: list[Fragment] = []
        carried_schema = to_arrow(frame.schema)
        casts = plan_write(carried_schema, schema_from_arrow(stored), Rounding.ERROR)
        self._incoming = Incoming(carried_schema, casts)

    def _run(
        self, snapshot: Snapshot, schema: Schema, ids: tuple[int, ...], missing: list[Fragment]
    ) -> Sequence[DataFile | None]:
        found = {one.id: self.finished.find(part_of(snapshot, [one]), ids) for one in missing}
        rest = [one for one in missing if found[one.id] is None]
        made = self._made(part_of(snapshot, rest), schema, ids) if rest else {}
        return [found[one.id] or made.get(one.id) for one in missing]

    def _made(self, part: Snapshot, schema: Schema, ids: tuple[int, ...]) -> dict[int, DataFile]:
        rows = self._addressed(part)
        spark = self._frame.sparkSession
        fragments = len(part.manifest.fragments)
        tasks = min(fragments, max(int(spark.conf.get("spark.sql.shuffle.partitions")), 1))
        places = [at for at, one in enumerate(self._frame.columns) if one not in self._on]
        write = _WriteFragments(
            _dumps(ExtendTask(part, schema, ids, OrderedMaker(iter(())), self._write, self._rows)),
            self._incoming.of(places),
            self._on,
            self.finished,
        )
        sorted_rows = rows.repartition(tasks, _FRAGMENT).sortWithinPartitions(ADDRESS)
        with explain_missing_modules():
            collected = sorted_rows.mapInArrow(write, _RESULT).collect()
        results = {row["fragment"]: pickle.loads(row["result"]) for row in collected}  # noqa: S301
        made = {id_: one for id_, one in results.items() if isinstance(one, DataFile)}
        files = [Fragment(0, (one,)) for one in made.values()]
        # Files that are noted are of use to the next attempt, whatever becomes of this one.
        (self._kept if self.finished.folder else self.fragments).extend(files)
        for one in results.values():
            if isinstance(one, Exception):
                raise one
        return made

    def remove_unused(self, snapshot: Snapshot) -> None:
        """Remove files of fragments that were gone when the commit landed."""
        self.fragments += self._kept
        super().remove_unused(snapshot)

    def _addressed(self, part: Snapshot) -> "DataFrame":
        """Return the values of the frame with the row addresses that they are for."""
        spark = self._frame.sparkSession
        values = [one for one in self._frame.schema.fields if one.name not in self._on]
        renamed = [
            StructField(f"{_VALUE}{at}", one.dataType, nullable=True)
            for at, one in enumerate(values)
        ]
        _, *keys = key_fields(part, self._on)
        add = _AddKeys(self._incoming, part_of(part, []), self._on)
        source = self._frame.mapInArrow(add, StructType([*renamed, *keys]))
        if len(self._on) == 1 and names_addresses(part, self._on):
            rows = source.withColumnRenamed(f"{KEY}0", ADDRESS).where(f"{ADDRESS} is not null")
        else:
            names = [one.name for one in keys]
            rows = source.join(_table(spark, part, self._on), names).drop(*names)
        return rows.selectExpr("*", f"shiftrightunsigned({ADDRESS}, {OFFSET_BITS}) {_FRAGMENT}")


def _table(spark: "SparkSession", part: Snapshot, on: tuple[str, ...]) -> "DataFrame":
    """Return row address and comparable key of every row."""
    payloads = [_dumps(one) for one in parts(part)]
    rows = spark.range(0, len(payloads), 1, max(len(payloads), 1))
    return rows.mapInArrow(_ScanKeys(payloads, on), StructType(key_fields(part, on)))


@dataclass(frozen=True, slots=True)
class _ScanKeys:
    """Reads the keys of parts of the table."""

    payloads: list[bytes]
    on: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [ADDRESS, *(f"{KEY}{at}" for at in range(len(self.on)))]
        for batch in batches:
            for place in batch.column(0).to_pylist():
                part = pickle.loads(self.payloads[place])  # noqa: S301 - the driver's
                for addresses, keys in scan_keys(part, self.on):
                    yield pa.RecordBatch.from_arrays([addresses, *map(carried, keys)], names)


@all_coded
@dataclass(frozen=True, slots=True)
class _AddKeys:
    """Puts comparable keys in the place of key columns."""

    incoming: Incoming
    empty: Snapshot
    on: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = self.incoming.carried.names
        values = [at for at, name in enumerate(names) if name not in self.on]
        places = [names.index(name) for name in self.on]
        of_keys = self.incoming.of(places)
        types = [key_type(self.empty, name) for name in self.on]
        for batch in batches:
            cast = of_keys.apply(batch.select(places))
            keys = [
                carried(comparable(exact_cast(name, column, type_), name))
                for name, column, type_ in zip(self.on, cast.columns, types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(
                [*(batch.column(at) for at in values), *keys],
                [
                    *(f"{_VALUE}{at}" for at in range(len(values))),
                    *(f"{KEY}{at}" for at in range(len(keys))),
                ],
            )


@dataclass(frozen=True, slots=True)
class _WriteFragments:
    """Writes the new columns of fragments, whose values come in the order of row addresses."""

    task: bytes
    incoming: Incoming
    on: tuple[str, ...]
    finished: FinishedFiles

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task: ExtendTask = pickle.loads(self.task)  # noqa: S301 - the driver's
        known = {one.id: one for one in task.part.manifest.fragments}
        for id_, pieces in groupby(_cut(batches), key=itemgetter(0)):
            if id_ not in known:
                continue
            part = part_of(task.part, [known[id_]])
            values = (self._addressed(piece) for _, piece in pieces)
            result = self._write(replace(task, part=part), values)
            row = {"fragment": [id_], "result": [_dumps(result)]}
            yield pa.RecordBatch.from_pydict(row, _ARROW)

    def _write(self, task: ExtendTask, values: Iterator[Addressed]) -> DataFile | Exception:
        maker = OrderedMaker(values, lambda addresses: self._keys(task.part, addresses))
        try:
            file = extend_fragment(replace(task, maker=maker))
            self.finished.note(task.part, task.new_ids, file)
        except Exception as error:
            return error
        return file

    def _addressed(self, piece: pa.RecordBatch) -> Addressed:
        count = len(self.incoming.carried)
        addresses: Addresses = piece.column(ADDRESS).to_numpy().view(np.uint64)
        values = piece.select([f"{_VALUE}{at}" for at in range(count)])
        return Addressed(addresses, self.incoming.apply(values))

    def _keys(self, part: Snapshot, addresses: Addresses) -> str:
        """Return the keys of a few rows as text."""
        planned = plan(part.manifest.schema, ScanRequest(self.on))
        offsets = (addresses & np.uint64((1 << OFFSET_BITS) - 1)).astype(np.int64)
        columns = read_rows(planned, Readers(part)[0], offsets).columns
        values = [[one for chunk in chunks for one in chunk.to_pylist()] for chunks in columns]
        return "; ".join(
            ", ".join(f"{name} = {one!r}" for name, one in zip(self.on, row, strict=True))
            for row in zip(*values, strict=True)
        )


def _cut(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the pieces of batches that belong to one fragment each."""
    for batch in batches:
        ids = batch.column(_FRAGMENT).to_numpy()
        if not len(ids):
            continue
        starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]
        for start, stop in pairwise(starts):
            yield int(ids[start]), batch.slice(start, stop - start)
