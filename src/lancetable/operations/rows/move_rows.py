"""Move rows to new fragments, preserving their row ids.

In a table with stable row ids the new fragments carry the ids of the moved rows and the versions
that created them; rows that are inserted after them get theirs with the commit.

With the setting ``lance.row_lineage.spill`` of the table, a sequence of ids or versions that would
take more than ``lance.row_lineage.inline_max_bytes`` is stored as a hidden column in one more file
of the fragment instead of in the manifest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.blob_dataset import check_rows_stay
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.file.model import file_version
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import ColumnSequence, Fragment, InlineSequence, Manifest
from lancetable.format.manifest.flags import Feature
from lancetable.format.manifest.rowids import encode_row_ids, encode_versions
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.projection import CREATED_AT, ROW_ID, SPILLED_IDS
from lancetable.fragment.readers import Readers
from lancetable.fragment.system import FIRST_VERSION
from lancetable.fragment.write.writer import (
    WriteOptions,
    WriteTarget,
    new_file_name,
    new_fragment,
    open_writer,
    remove_fragments,
    write_fragments,
)
from lancetable.operations.input.write import table_options
from lancetable.operations.rows.parts import cut_offsets, read_rows
from lancetable.operations.run.runner import read_ahead
from lancetable.scan.plan import ScanPlan
from lancetable.scan.result import Piece, aligned

SPILL = "lance.row_lineage.spill"
INLINE_MAX_BYTES = "lance.row_lineage.inline_max_bytes"
DEFAULT_MAX_BYTES = 200 * 1024
_TRUE = frozenset({"true", "1", "yes"})

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Spill:
    """Limit for sequences in the manifest, and the target of larger ones."""

    most: int
    target: WriteTarget
    options: WriteOptions

    @classmethod
    def of(cls, part: Snapshot, options: WriteOptions) -> Self | None:
        """Return the settings of a table, ``None`` when everything stays in the manifest.

        Raises:
            InputError: the setting of the table is not a number.
        """
        config = part.manifest.config or {}
        if config.get(SPILL, "").lower() not in _TRUE:
            return None
        text = config.get(INLINE_MAX_BYTES, str(DEFAULT_MAX_BYTES))
        if not text.isdigit():
            raise InputError(f"the setting {INLINE_MAX_BYTES} is {text!r}; make it a number")
        return cls(int(text), WriteTarget(part.store), table_options(part.manifest, options))

    def kept_outside(self, fragment: Fragment, columns: Mapping[str, Numbers]) -> Fragment:
        """Return a fragment with one more file, which holds sequences by the name of their column.

        Raises:
            StoreError: the file cannot be written; nothing of it stays behind.
        """
        fields = tuple(Field(name, SPILLED_IDS[name], "uint64", nullable=False) for name in columns)
        name = new_file_name()
        version = file_version(self.options.storage_version or "")
        writer = open_writer(version, name, Schema(fields), self.target, self.options)
        try:
            arrays = [pa.array(numbers) for numbers in columns.values()]
            schema = pa.schema([pa.field(one, pa.uint64(), nullable=False) for one in columns])
            writer.write(pa.record_batch(arrays, schema=schema))
            file = new_fragment(name, writer.finish(), self.target).files[0]
        except BaseException:
            writer.abort()
            raise
        return fragment._replace(files=(*fragment.files, file))


OUTSIDE = ColumnSequence()
"""Marks a sequence of a fragment that is a column of its files."""


def has_stable_row_ids(manifest: Manifest) -> bool:
    """Say whether rows of a table keep their ids when they move."""
    return bool(manifest.reader_flags & Feature.STABLE_ROW_IDS)


class RowsOf(NamedTuple):
    """Rows of a fragment, by its place in the manifest and their ascending offsets."""

    position: int
    offsets: Offsets
    is_last: bool = True
    """Whether no other rows of the fragment follow."""


def row_batches(
    plan: ScanPlan, readers: Readers, wanted: Iterable[RowsOf]
) -> Iterator[pa.RecordBatch]:
    """Yield rows of fragments, in batches of the plan's columns; the next ones are read ahead."""

    def read(rows: RowsOf) -> Piece:
        reader = readers[rows.position]
        piece = read_rows(plan, reader, rows.offsets)
        if rows.is_last:
            reader.opened.release()
        return piece

    runs = (run for rows in wanted for run in _cut(plan, readers, rows))
    names = plan.schema.names
    for piece in read_ahead(read, runs, readers.source.manifest.fragments):
        rows, columns = piece
        del piece
        yield from aligned(dict(zip(names, columns, strict=True)), rows)


def _cut(plan: ScanPlan, readers: Readers, rows: RowsOf) -> Iterator[RowsOf]:
    runs = list(cut_offsets(plan, readers, rows.offsets))
    for number, run in enumerate(runs, 1):
        yield RowsOf(rows.position, run, is_last=number == len(runs))


class Lineage:
    """The ids of moved rows and the versions that created them, in the order they are written."""

    def __init__(self) -> None:
        self._ids: list[Numbers] = []
        self._created: list[Numbers] = []

    def add(self, readers: Readers, position: int, offsets: Offsets) -> None:
        """Note rows of a fragment."""
        opened = readers[position].opened
        ids = opened.sequence(ROW_ID)
        created = opened.sequence(CREATED_AT)
        if ids is None:
            raise AssertionError("the table promises stable row ids and has none")
        self._ids.append(ids[offsets])
        self._created.append(
            np.full(len(offsets), FIRST_VERSION, np.uint64) if created is None else created[offsets]
        )

    def label(self, fragments: Sequence[Fragment], spill: Spill | None = None) -> list[Fragment]:
        """Return the new fragments with the ids of the moved rows, which they begin with.

        Raises:
            StoreError: ids that are kept outside the manifest cannot be written.
        """
        if not self._ids:
            return list(fragments)
        ids, created = np.concatenate(self._ids), np.concatenate(self._created)
        labelled, first = [], 0
        for fragment in fragments:
            end = min(first + fragment.physical_rows, len(ids))
            if first < end:
                fragment = _labelled(  # noqa: PLW2901 - the same one, labelled
                    fragment, ids[first:end], created[first:end], spill
                )
            labelled.append(fragment)
            first = end
        return labelled


def _labelled(fragment: Fragment, ids: Numbers, created: Numbers, spill: Spill | None) -> Fragment:
    row_ids, created_at = encode_row_ids(ids), encode_versions(created)
    made = fragment._replace(row_ids=InlineSequence(row_ids), created_at=InlineSequence(created_at))
    # Rows that are inserted behind the moved ones are numbered by the commit, in the manifest.
    if spill is None or len(ids) < fragment.physical_rows:
        return made
    outside = {}
    if len(row_ids) > spill.most:
        outside[ROW_ID] = ids
        made = made._replace(row_ids=OUTSIDE)
    if len(created_at) > spill.most:
        outside[CREATED_AT] = created
        made = made._replace(created_at=OUTSIDE)
    return spill.kept_outside(made, outside) if outside else made


def target_of(snapshot: Snapshot) -> WriteTarget:
    """Return where new data files of a table go."""
    return WriteTarget(snapshot.store)


def write_rows(
    part: Snapshot, batches: Iterable[pa.RecordBatch], schema: Schema, options: WriteOptions
) -> list[Fragment]:
    """Write batches, whose columns are in the order of the schema, as files of the table."""
    kept = table_options(part.manifest, options)
    return write_fragments(batches, schema, target_of(part), kept)


def write_labelled(
    part: Snapshot,
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    options: WriteOptions,
    lineage: Lineage,
) -> list[Fragment]:
    """Write batches that begin with moved rows, which keep their row ids.

    Raises:
        StoreError: a file cannot be written; none stays behind.
    """
    check_rows_stay(part.manifest, "add or move rows")
    spill = Spill.of(part, options)
    fragments = write_rows(part, batches, schema, options)
    try:
        return lineage.label(fragments, spill)
    except BaseException:
        remove_fragments(fragments, target_of(part))
        raise
