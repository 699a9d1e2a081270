"""Where are the rows of a source kept while they are needed more than once.

In memory while they fit into the limit; else in a file of Arrow batches on the local disk, which
is mapped, so that the system may drop its pages again.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from lancetable.operations.parts import Offsets

ROWS_AT_A_TIME = 64 * 1024


class Kept:
    """Rows that can be read again and in any order; used in a ``with`` block."""

    def __init__(self, schema: pa.Schema, memory_limit: int) -> None:
        self.schema = schema
        self._limit = memory_limit
        self._batches: list[pa.RecordBatch] = []
        self._starts = np.zeros(1, np.int64)
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._batches = []
        if self._folder is not None:
            self._folder.cleanup()

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self.schema, self._limit, self._batches)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._starts[-1])

    @property
    def is_spilled(self) -> bool:
        """True when the rows are on disk."""
        return self._folder is not None

    def fill(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Take all rows in; called once."""
        held = 0
        waiting = iter(batches)
        for batch in waiting:
            self._batches.append(batch)
            held += batch.nbytes
            if held > self._limit:
                self._spill(waiting)
                break
        self._batches = [batch for batch in self._batches if batch.num_rows]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])

    def _spill(self, more: Iterator[pa.RecordBatch]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lancetable-")
        path = str(Path(self._folder.name) / "source.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, self.schema) as writer:
            while self._batches:
                writer.write_batch(self._batches.pop(0))
            for batch in more:
                writer.write_batch(batch)
        reader = pa.ipc.open_file(pa.memory_map(path))
        self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]

    def range(self, start: int, stop: int, names: Sequence[str]) -> list[pa.RecordBatch]:
        """Return the rows from ``start`` to ``stop`` without a copy."""
        found = []
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        for number in range(first, len(self._batches)):
            begin = int(self._starts[number])
            if begin >= stop:
                break
            batch = self._batches[number].select(list(names))
            low, high = max(start - begin, 0), min(stop - begin, batch.num_rows)
            found.append(batch.slice(low, high - low))
        return found

    def take(self, rows: Offsets, names: Sequence[str]) -> pa.RecordBatch:
        """Return rows in the given order."""
        if len(self._batches) == 1:
            return self._batches[0].select(list(names)).take(pa.array(rows))
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        edges = np.searchsorted(ascending, self._starts)
        pieces = []
        for number, batch in enumerate(self._batches):
            low, high = int(edges[number]), int(edges[number + 1])
            if low < high:
                places = pa.array(ascending[low:high] - self._starts[number])
                pieces.append(batch.select(list(names)).take(places))
        schema = pa.schema([self.schema.field(name) for name in names])
        if not pieces:
            nothing = [pa.nulls(0, one.type) for one in schema]
            return pa.RecordBatch.from_arrays(nothing, schema=schema) if names else _no_columns(0)
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        joined = pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
        return joined.take(pa.array(back))

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield ranges that cover all rows."""
        for start in range(0, self.rows, ROWS_AT_A_TIME):
            yield start, min(start + ROWS_AT_A_TIME, self.rows)


def _no_columns(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def _unpickled(schema: pa.Schema, limit: int, batches: list[pa.RecordBatch]) -> Kept:
    kept = Kept(schema, 2**62)
    kept.fill(batches)
    kept._limit = limit  # noqa: SLF001 - the same class
    return kept
