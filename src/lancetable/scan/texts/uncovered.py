"""Partitions in memory of the rows that no index describes."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.expression.analysis.parameters import Analysis
from lancetable.format.schema.types import without_extensions
from lancetable.fragment.projection import ROW_ID
from lancetable.index.base import Numbers
from lancetable.index.files import Pages
from lancetable.index.text.memory import MemoryPartition, Wanted, partition_of
from lancetable.scan.fragments import readers_of
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.scanner import Scan

CHUNK_BYTES = 16 << 20
"""About how many bytes of values make a partition."""

PARTITIONS = Pages(64 << 20)
"""Those of this process."""


class Uncovered:
    """The rows of some fragments of a version."""

    def __init__(
        self, snapshot: Snapshot, column: str, analysis: Analysis, fragments: frozenset[int]
    ) -> None:
        self._snapshot = snapshot
        self._column = column
        self._analysis = analysis
        self._fragments = fragments
        self._chunks: int | None = None
        self._key = object()

    @property
    def fragments(self) -> int:
        """The number of the fragments."""
        return len(self._fragments)

    def partitions(self, wanted: Wanted, options: ScanOptions) -> Iterator[MemoryPartition]:
        """Yield partitions with the words that are wanted.

        Raises:
            CorruptError: a value is damaged.
            UnsupportedError: this release does not have the tokenizer.
        """
        if not self._fragments:
            return
        known = [PARTITIONS.get((self._key, number)) for number in range(self._chunks or 0)]
        if self._chunks is not None and all(one is not None for one in known):
            yield from (one.only(wanted) for one in known if one is not None)
            return
        number = 0
        for number, batches in enumerate(_chunks(self._batches(options)), 1):
            made = partition_of(self._analysis, batches)
            PARTITIONS.put((self._key, number - 1), made, made.nbytes)
            yield made.only(wanted)
        self._chunks = number

    def _batches(self, options: ScanOptions) -> Iterator[tuple[pa.Array, Numbers]]:
        readers = readers_of(self._snapshot, sorted(self._fragments))
        request = ScanRequest(columns=(self._column, ROW_ID))
        for batch in Scan(readers, request, options).to_batches():
            yield without_extensions(batch.column(0)), np.asarray(batch.column(1))


def _chunks(
    batches: Iterable[tuple[pa.Array, Numbers]],
) -> Iterator[list[tuple[pa.Array, Numbers]]]:
    """Group batches."""
    group: list[tuple[pa.Array, Numbers]] = []
    bytes_ = 0
    for batch in batches:
        group.append(batch)
        bytes_ += batch[0].nbytes
        if bytes_ >= CHUNK_BYTES:
            yield group
            group, bytes_ = [], 0
    if group:
        yield group
