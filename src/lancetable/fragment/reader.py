"""Read rows of one fragment: data files side by side, nulls for what none of them has."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.file import FileReader
from lancetable.file.read.codes import CodedChunk, has_codes, read_coded
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type
from lancetable.fragment.assemble import assemble
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import ROW_OFFSET, ColumnTests, FragmentPlan, Mixed, Projection
from lancetable.fragment.select import Columns, Mask, keep, keep_coded
from lancetable.fragment.system import Rows, row_offsets, system_column

GATHER_BELOW = 0.1
"""When fewer rows of a range than this are live, they are fetched one by one."""


class ColumnSource(Protocol):
    """A table that holds columns of the rows of another."""

    def read(self, opened: OpenFragment, field: Field, rows: Rows) -> pa.Array:
        """Return a column for rows of a fragment of the other table."""
        ...


class FragmentReader:
    """The rows of one fragment by their offsets."""

    __slots__ = ("_blob_dataset", "_first_live_row", "opened")

    def __init__(
        self,
        opened: OpenFragment,
        first_live_row: Callable[[], int],
        blob_dataset: ColumnSource | None = None,
    ) -> None:
        """Prepare to read; ``blob_dataset`` has the columns of storage class blob."""
        self.opened = opened
        self._first_live_row = first_live_row
        self._blob_dataset = blob_dataset

    def read(self, projection: Projection, rows: Rows) -> Columns:
        """Return the given rows, deleted or not: a range, or strictly increasing offsets."""
        opened = self.opened
        columns: Columns = []
        if projection.fields:
            plan = projection.plan(opened.files)
            if plan.single_file is not None:
                columns = opened.file(plan.single_file).read(projection.fields, rows)
            else:
                columns = self._read_several(projection, plan, rows)
        for name in projection.system:
            columns.append([self._system(name, rows)])
        return columns

    def read_live(self, projection: Projection, start: int, stop: int) -> Columns:
        """Return the rows of a range that are not deleted."""
        live = self._live_mask(start, stop) if self.opened.fragment.deletion_file else None
        if live is None:
            return self.read(projection, range(start, stop))
        if np.count_nonzero(live) < GATHER_BELOW * len(live):
            return self.read(projection, np.flatnonzero(live) + start)
        return keep(self.read(projection, range(start, stop)), live)

    def read_coded(
        self, projection: Projection, start: int, stop: int
    ) -> Callable[[int], list[CodedChunk]] | None:
        """Return what reads the rows of a range that are not deleted, as pages store them, by slot.

        None when no page holds codes or runs, or the columns are in several files.
        """
        number = projection.plan(self.opened.files).single_file
        file = None if number is None else self.opened.file(number)
        if projection.system or not isinstance(file, FileReader):
            return None
        if not any(has_codes(file, field) for field in projection.fields):
            return None
        live = self._live_mask(start, stop)

        def read(slot: int) -> list[CodedChunk]:
            column = read_coded(file, projection.fields[slot], range(start, stop))
            return column if live is None else keep_coded(column, live)

        return read

    def match(self, every: Sequence[ColumnTests], start: int, stop: int) -> tuple[Mask, int] | None:
        """Return which live rows of a range pass all tests, and how many; None to read them."""
        both: Mask | None = None
        found = 0
        for column, tests in every:
            single = column.plan(self.opened.files).single_file
            file = None if single is None else self.opened.file(single)
            if not isinstance(file, FileReader):
                return None
            matched = file.match(column.fields[0], range(start, stop), tests)
            if matched is None:
                return None
            mask, found = matched
            both = mask if both is None else both & mask
        live = self._live_mask(start, stop)
        if both is None or (live is None and len(every) == 1):
            return None if both is None else (both, found)
        both = both if live is None else both[live]
        return both, int(np.count_nonzero(both))

    def live_offsets(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the offsets in a range that are not deleted."""
        live = self._live_mask(start, stop)
        return np.arange(start, stop) if live is None else np.flatnonzero(live) + start

    def live_among(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return which of some ascending offsets are not deleted."""
        deletions = self.opened.deletions
        if deletions is None or not len(offsets):
            return offsets
        live = self._live_mask(int(offsets[0]), int(offsets[-1]) + 1)
        return offsets if live is None else offsets[live[offsets - offsets[0]]]

    def chosen_offsets(self, start: int, stop: int, mask: Mask) -> npt.NDArray[np.int64]:
        """Return the offsets of the live rows of a range that a mask over them keeps."""
        live = self._live_mask(start, stop)
        chosen = np.flatnonzero(mask)
        return chosen + start if live is None else np.flatnonzero(live)[chosen] + start

    def live_rows_within(self, start: int, stop: int) -> int:
        """Return how many rows of a range are not deleted."""
        deletions = self.opened.deletions
        gone = 0 if deletions is None else len(deletions.within(start, stop))
        return stop - start - gone

    def physical_range(self, first: int, last: int) -> tuple[int, int]:
        """Return the range of offsets that spans the live rows from ``first`` to ``last``."""
        deletions = self.opened.deletions
        if deletions is None or first == last:
            return first, last
        start, stop = deletions.physical(np.array([first, last - 1])).tolist()
        return start, stop + 1

    def _live_mask(self, start: int, stop: int) -> Mask | None:
        """Return which rows of a range are live; None when all are."""
        deletions = self.opened.deletions
        if deletions is None:
            return None
        gone = deletions.within(start, stop)
        if not len(gone):
            return None
        live = np.ones(stop - start, np.bool_)
        live[gone] = False
        return live

    def _system(self, name: str, rows: Rows) -> pa.Array:
        if name == ROW_OFFSET:
            return row_offsets(self.opened, self._first_live_row(), rows)
        return system_column(self.opened, name, rows)

    def _read_several(self, projection: Projection, plan: FragmentPlan, rows: Rows) -> Columns:
        columns: Columns = [[] for _ in projection.fields]
        for read in plan.reads:
            for slot, column in zip(
                read.slots, self.opened.file(read.file).read(read.fields, rows), strict=True
            ):
                columns[slot] = column
        for mixed in plan.mixed:
            columns[mixed.slot] = [self._assembled(mixed, rows)]
        return columns

    def _assembled(self, mixed: Mixed, rows: Rows) -> pa.Array:
        if self._blob_dataset is not None and not mixed.parts and mixed.field.is_in_blob_dataset:
            return self._blob_dataset.read(self.opened, mixed.field, rows)
        parts = []
        for number, field in mixed.parts:
            chunks = self.opened.file(number).read([field], rows)[0]
            array = pa.concat_arrays(chunks) if chunks else pa.nulls(0, arrow_type(field))
            parts.append((field, array))
        try:
            return assemble(mixed.field, parts, len(rows))
        except CorruptError as error:
            raise error.at(f"fragment {self.opened.fragment.id}") from error
