"""Build a full-text index from texts.

1. Analyse batch by batch; documents without words are left out.
2. Group words by their number once a share of the memory is full: that makes a run.
3. Write the lists of all runs, word by word. When the distinct words or the documents of a
   partition fill their share of the memory, the next one begins.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lancetable.expression.analysis.analyzer import Analyzer
from lancetable.format.encoding.kernels.foreign import Array
from lancetable.format.encoding.kernels.postings_encode import group_words
from lancetable.index.base import ROW, VALUE, Numbers, Sink
from lancetable.index.specs import FullText
from lancetable.index.text.runs import Runs
from lancetable.index.text.write import Documents, PartitionWriter

_RUN_SHARE, _KEPT_SHARE, _CHUNK_SHARE = 4, 4, 8
_MOST_RUN_BYTES, _MOST_CHUNK_BYTES, _PIECE_BYTES = 64 << 20, 32 << 20, 1 << 20
_BYTES_PER_WORD, _BYTES_PER_POSITION = 12, 8
_BYTES_PER_DOCUMENT = 32


class _Growing:
    """Numbers of one type that grow in place, so that memory is not torn into small pieces."""

    def __init__(self, type_: type[np.generic]) -> None:
        self._array = np.empty(1 << 10, type_)
        self.size = 0

    def add(self, values: Array) -> None:
        """Append numbers."""
        stop = self.size + len(values)
        if stop > len(self._array):
            self._array.resize(max(stop, len(self._array) * 3 // 2), refcheck=False)
        self._array[self.size : stop] = values
        self.size = stop

    @property
    def values(self) -> Array:
        """All numbers, over the same memory."""
        return self._array[: self.size]


class _Partition:
    """A partition in the making."""

    def __init__(self, spec: FullText, sink: Sink, memory_bytes: int) -> None:
        self._analyzer = Analyzer(spec)
        self._has_positions = bool(spec.with_position)
        self._rows, self._lengths = _Growing(np.uint64), _Growing(np.int32)
        self._words, self._positions = _Growing(np.int32), _Growing(np.int32)
        self._grouped = 0
        """How many documents are in runs."""
        width = _BYTES_PER_WORD + _BYTES_PER_POSITION * self._has_positions
        self._most = max(min(memory_bytes // _RUN_SHARE, _MOST_RUN_BYTES) // width, 1)
        self._most_kept = memory_bytes // _KEPT_SHARE
        self._runs = Runs(sink, memory_bytes // _RUN_SHARE)

    @property
    def is_full(self) -> bool:
        """Whether the next partition should begin."""
        return self._analyzer.nbytes + _BYTES_PER_DOCUMENT * self._rows.size > self._most_kept

    def add(self, values: pa.Array, rows: Numbers) -> None:
        """Add documents."""
        found = self._analyzer.add(values)
        lengths = np.bincount(found.documents, minlength=len(values))
        has_words = lengths > 0
        self._rows.add(rows[has_words])
        self._lengths.add(lengths[has_words])
        self._words.add(found.codes)
        if self._has_positions:
            self._positions.add(found.positions)
        if self._words.size >= self._most:
            self._close_run()

    def _close_run(self) -> None:
        lists = group_words(
            self._words.values,
            self._lengths.values[self._grouped :],
            self._grouped,
            len(self._analyzer.words),
            self._positions.values if self._has_positions else None,
        )
        self._grouped = self._rows.size
        self._words.size = self._positions.size = 0
        self._runs.add(lists)
        pa.default_memory_pool().release_unused()  # what the batches of the run leave behind

    def write(self, writer: PartitionWriter, number: int) -> bool:
        """Write the partition; False, with nothing written, when it has no documents."""
        if self._words.size:
            self._close_run()
        if not self._rows.size:
            return False
        documents = Documents(self._rows.values, self._lengths.values.view(np.uint32))
        writer.write_partition(number, documents, self._analyzer.words.texts(), self._runs)
        return True


def build(batches: Iterable[pa.RecordBatch], spec: FullText, sink: Sink, memory_bytes: int) -> None:
    """Write the files of a segment.

    Raises:
        CorruptError: a text is not UTF-8, or a JSON document is damaged.
    """
    writer = PartitionWriter(sink, spec, min(memory_bytes // _CHUNK_SHARE, _MOST_CHUNK_BYTES))
    written: list[int] = []
    partition = _Partition(spec, sink, memory_bytes)
    for batch in _pieces(batches):
        partition.add(batch.column(VALUE), batch.column(ROW).to_numpy())
        if partition.is_full:
            if partition.write(writer, len(written)):
                written.append(len(written))
            partition = _Partition(spec, sink, memory_bytes)
    if partition.write(writer, len(written)):
        written.append(len(written))
    writer.write_metadata(written)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in pieces of about a size."""
    for batch in batches:
        rows = max(batch.num_rows * _PIECE_BYTES // max(batch.nbytes, 1), 1)
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)
