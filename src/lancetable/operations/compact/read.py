"""Read the live rows of some fragments, window by window.

Neighbouring fragments that fit into one window are read together, large ones in several windows.
The next window is read while the rows of the last one are written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.format.schema.model import Field
from lancetable.fragment.blobs import read_payloads
from lancetable.fragment.joined_files import read_live_together
from lancetable.fragment.readers import Readers
from lancetable.fragment.select import Columns
from lancetable.operations.rows.move_rows import Numbers
from lancetable.operations.run.memory import give_back
from lancetable.operations.run.runner import AHEAD, read_ahead
from lancetable.scan.plan import ScanPlan, Window, windows
from lancetable.scan.result import aligned, finish
from lancetable.scan.row_size import Pace, bytes_of, measured

LEAST_SHARED = 64 * 1024
"""Arrays from so many bytes on may look into a mapped file while they wait for their page."""


class _Read(NamedTuple):
    """Columns of the live rows of one window, or of all rows of neighbouring fragments."""

    position: int
    columns: Columns
    bytes_: int


@dataclass(frozen=True)
class LiveRows:
    """Reads the live rows of a part."""

    plan: ScanPlan
    readers: Readers
    window_bytes: int

    @cached_property
    def _pace(self) -> Pace:
        return measured((self.plan.early, self.plan.late), self.readers.source)

    def rows_of(self, bytes_: int) -> int:
        """Return how many rows take so many bytes, by what is known from those that were read."""
        return self._pace.rows(bytes_)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all live rows in order."""
        handled = 0
        fragments = self.readers.source.manifest.fragments
        for several in read_ahead(self._read, self._jobs(), fragments):
            while several:
                position, columns, bytes_ = several.pop(0)
                yield from self._finished(position, columns)
                # The encoded rows no longer need the mapped bytes.
                del columns
                self.readers[position].opened.release()
                handled += bytes_
                if handled >= AHEAD * self.window_bytes:
                    handled = 0
                    give_back()

    def _jobs(self) -> Iterator[range | Window]:
        """Yield what is read at a time: several whole fragments, or a window of one."""
        position = 0
        while position < len(self.readers):
            stop = self._fitting(position)
            if stop > position + 1 and not self.plan.blobs:
                yield range(position, stop)
            else:
                for each in range(position, stop):
                    yield from self._windows(each)
            position = stop

    def _fitting(self, first: int) -> int:
        """Return the end of the fragments that fit into one window, or of a single one."""
        fragments = self.readers.source.manifest.fragments
        room = self._pace.rows(self.window_bytes)
        stop = first
        while stop < len(fragments):
            room -= fragments[stop].physical_rows or room + 1
            if room < 0:
                break
            stop += 1
        return max(stop, first + 1)

    def _windows(self, position: int) -> Iterator[Window]:
        rows = self.readers[position].opened.rows
        start = 0
        while start < rows:
            step = self._pace.rows(self.window_bytes)
            window = next(windows(position, start, min(start + step, rows), step))
            yield window
            start = window.stop

    def _read(self, job: range | Window) -> list[_Read]:
        if isinstance(job, Window):
            return [self._window(job)]
        together = self._together(job)
        if together is not None:
            return [together]
        return [self._window(window) for position in job for window in self._windows(position)]

    def _together(self, positions: range) -> _Read | None:
        """Return the rows of several fragments; None when they must be read one by one."""
        readers = [self.readers[position] for position in positions]
        columns = read_live_together(readers, self.plan.late)
        for reader in readers:
            reader.opened.release()
        if columns is None:
            return None
        return self._learned(positions[0], columns, sum(map(len, columns[0])))

    def _window(self, window: Window) -> _Read:
        reader = self.readers[window.fragment]
        columns = reader.read_live(self.plan.late, window.start, window.stop)
        columns = [[_own(chunk) for chunk in column] for column in columns]
        return self._learned(window.fragment, columns, window.stop - window.start)

    def _learned(self, position: int, columns: Columns, rows: int) -> _Read:
        bytes_ = bytes_of(columns)
        self._pace.learn(rows, bytes_)
        return _Read(position, columns, bytes_)

    def _finished(self, position: int, columns: Columns) -> Iterator[pa.RecordBatch]:
        rows = sum(map(len, columns[0]))
        if not rows:
            return
        for batch in aligned(dict(zip(self.plan.names, columns, strict=True)), rows):
            for piece in self._pieces(batch):
                done = [[array] for array in piece.columns]
                for slot, field in self.plan.blobs:
                    opened = self.readers[position].opened
                    done[slot] = read_payloads(opened, field, done[slot])
                shown = finish(self.plan, piece.num_rows, done)
                names = self.plan.schema.names
                yield from aligned(dict(zip(names, shown.columns, strict=True)), shown.rows)

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Cut a batch where the blobs of its rows are more than a window may hold."""
        weights = _blob_bytes(batch, self.plan.blobs)
        if weights is None or weights.sum() <= self.window_bytes:
            yield batch
            return
        first = held = 0
        for row, weight in enumerate(weights.tolist()):
            if row > first and held + weight > self.window_bytes:
                yield batch.slice(first, row - first)
                first, held = row, 0
            held += weight
        yield batch.slice(first)


def _own(array: pa.Array) -> pa.Array:
    """Return a small array in memory of its own; a large one is stored soon.

    Until its page is full an array may wait long, and one that looks into a mapped file keeps all
    of it that was read.
    """
    return pa.concat_arrays([array, array[:0]]) if array.nbytes < LEAST_SHARED else array


def _blob_bytes(batch: pa.RecordBatch, blobs: Sequence[tuple[int, Field]]) -> Numbers | None:
    """Return the bytes of the blobs of each row, for top-level columns."""
    found = None
    for slot, field in blobs:
        if field.is_blob:
            sizes = pc.fill_null(pc.struct_field(batch.column(slot), ["size"]), 0)
            numbers = sizes.to_numpy(zero_copy_only=False).astype(np.uint64)
            found = numbers if found is None else found + numbers
    return found
