"""Makers of column values: SQL expressions, a function, rows of other data, a cast.

A maker names the columns it reads, and turns a batch of them into one array for each new field.
It is a plain value, so that it can be sent to where the rows are.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError
from lancetable.expression import Expression, columns, evaluate
from lancetable.format.arrays import Offsets
from lancetable.format.schema.model import Field
from lancetable.operations.input.assign import Assignment, assigned, exact_cast
from lancetable.operations.input.fit import write_type
from lancetable.operations.keys.join import KeyIndex
from lancetable.operations.keys.keys import comparable
from lancetable.operations.keys.spill import RowBuffer

_SHOWN = 3


class Maker(Protocol):
    """Computes new columns."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns to read, perhaps system columns."""
        ...

    def make(self, batch: pa.RecordBatch, fields: Sequence[Field], place: str) -> list[pa.Array]:
        """Return the values of the fields for the rows of a batch; ``place`` names the rows."""
        ...


@dataclass(frozen=True, slots=True)
class SqlMaker:
    """Bound expressions, one for each new field."""

    expressions: tuple[Expression, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that the expressions read."""
        return tuple(sorted({path[0] for one in self.expressions for path in columns(one)}))

    def make(self, batch: pa.RecordBatch, fields: Sequence[Field], place: str) -> list[pa.Array]:
        """Evaluate the expressions."""
        del place
        return [
            assigned(field_, evaluate(one, batch))
            for field_, one in zip(fields, self.expressions, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class AssignMaker:
    """New values of existing columns, or of parts of them."""

    assignments: tuple[Assignment, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(sorted({name for one in self.assignments for name in one.inputs()}))

    def make(self, batch: pa.RecordBatch, fields: Sequence[Field], place: str) -> list[pa.Array]:
        """Compute the columns; the fields are those of the assignments."""
        del fields, place
        return [one.values(batch) for one in self.assignments]


@dataclass(frozen=True, slots=True)
class CastMaker:
    """The values of one column under another type."""

    path: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The column, or the struct it is in."""
        return self.path[:1]

    def make(self, batch: pa.RecordBatch, fields: Sequence[Field], place: str) -> list[pa.Array]:
        """Cast the values; none may be lost."""
        del place
        values = batch.column(self.path[0])
        for name in self.path[1:]:
            # A value below a missing struct counts as missing, whatever is stored for it.
            values = pc.struct_field(values, [name])
        (wanted,) = fields
        return [exact_cast(".".join(self.path), values, write_type(wanted))]


@dataclass(frozen=True, slots=True)
class JoinMaker:
    """Columns of other rows that have the same key; without such a row the value is null."""

    on: tuple[str, ...]
    index: KeyIndex
    kept: RowBuffer
    names: tuple[str, ...]
    is_complete: bool = False
    """True when every row must find its values."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The key columns."""
        return self.on

    def make(self, batch: pa.RecordBatch, fields: Sequence[Field], place: str) -> list[pa.Array]:
        """Look the rows up."""
        del place
        keys = [comparable(batch.column(name), name) for name in self.on]
        places, rows = self.index.find_equal(keys)
        again = places[1:][places[1:] == places[:-1]]
        if len(again):
            raise InputError(
                "several rows of the data have the same key, such as "
                f"{self._shown(batch, again)}; keep one row for each key"
            )
        if self.is_complete and len(places) < batch.num_rows:
            missing = np.setdiff1d(np.arange(batch.num_rows), places)
            raise InputError(
                f"the data has no values for {len(missing)} rows of the table, such as those with "
                f"{self._shown(batch, missing)}; give a row for each"
            )
        found = self.kept.take(rows, self.names)
        back = np.full(batch.num_rows, -1, np.int64)
        back[places] = np.arange(len(places))
        order = pa.array(back, mask=back < 0)
        return [
            assigned(field_, found.column(name).take(order))
            for field_, name in zip(fields, self.names, strict=True)
        ]

    def _shown(self, batch: pa.RecordBatch, places: Offsets) -> str:
        """Return the keys of a few rows as text."""
        some = batch.select(list(self.on)).take(pa.array(places[:_SHOWN])).to_pylist()
        texts = dict.fromkeys(", ".join(f"{k} = {v!r}" for k, v in row.items()) for row in some)
        return "; ".join(texts)


Function = Callable[[pa.RecordBatch], Any]


@dataclass(frozen=True, slots=True)
class FunctionMaker:
    """A function of batches; what it gave can be kept in a folder, to go on after a failure."""

    function: Function
    inputs: tuple[str, ...]
    checkpoint: str | None = None
    known: Mapping[str, pa.RecordBatch] = field(default_factory=dict)
    """Results that are known already, by place."""

    def make(self, batch: pa.RecordBatch, fields: Sequence[Field], place: str) -> list[pa.Array]:
        """Call the function, or take what it gave before."""
        result = self.call(batch, place)
        for one in fields:
            if one.name not in result.schema.names:
                raise InputError(
                    f"the function gave the columns {result.schema.names}, {one.name!r} is missing"
                )
        return [assigned(one, result.column(one.name)) for one in fields]

    def call(self, batch: pa.RecordBatch, place: str) -> pa.RecordBatch:
        """Return what the function gives for a batch, its columns by name."""
        if place in self.known:
            return self.known[place]
        path = None if self.checkpoint is None else Path(self.checkpoint) / f"{place}.arrow"
        if path is not None and path.exists():
            return _load(path)
        result = _as_batch(self.function(batch), batch.num_rows)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".part")
            with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, result.schema) as file:
                file.write_batch(result)
            draft.rename(path)
        return result

    def forget(self) -> None:
        """Remove what was kept."""
        if self.checkpoint is not None:
            remove_checkpoint(self.checkpoint)


_KEPT = re.compile(r"\d+-[\w-]+-[0-9a-f]{16}(\.arrow|\.file\.json|(\.file)?\.part)")
"""The names of files in a checkpoint: a place, and what is kept of it or half written."""


def remove_checkpoint(folder: str) -> None:
    """Remove the files of a checkpoint, and its folder unless it holds something else."""
    place = Path(folder)
    if not place.is_dir():
        return
    for path in place.iterdir():
        if _KEPT.fullmatch(path.name):
            path.unlink(missing_ok=True)
    with suppress(OSError):
        place.rmdir()


def _load(path: Path) -> pa.RecordBatch:
    with pa.OSFile(str(path), "rb") as source:
        table = pa.ipc.open_file(source).read_all()
    return table.combine_chunks().to_batches()[0]


def _as_batch(result: object, rows: int) -> pa.RecordBatch:
    if isinstance(result, Mapping):
        table = pa.table(dict(result))
    elif hasattr(result, "__arrow_c_stream__") or hasattr(result, "__arrow_c_array__"):
        table = pa.table(result)
    else:
        raise InputError(
            "the function must return new columns as an Arrow batch, an Arrow table or a dict, "
            f"not a {type(result).__name__}"
        )
    if table.num_rows != rows:
        raise InputError(f"the function got {rows} rows and gave {table.num_rows}")
    return table.combine_chunks().to_batches()[0]


def fingerprint(parts: Sequence[str]) -> str:
    """Return a short digest of some texts."""
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
