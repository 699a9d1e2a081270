"""Lists of words that grow run by run; those that do not fit in memory wait in local files.

The documents of a run are behind those of the runs before it. A list of all is that of each run,
one behind the other.
"""

from collections.abc import Iterator
from io import SEEK_END
from typing import IO, Any, Protocol

import numpy as np

from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.postings_encode import PostingLists, Words
from lancetable.format.encoding.kernels.ragged import Ragged, join
from lancetable.index.base import Sink

_WORD = 4


class _Run(Protocol):
    @property
    def edges(self) -> Integers:
        """The documents of each word, or of the first words, are from one edge to the next."""
        ...

    def of_words(self, first: int, stop: int) -> PostingLists:
        """Return the lists of neighbouring words."""
        ...


class _Held:
    """A run in memory, its numbers in as few bytes as the largest ones need."""

    def __init__(self, lists: PostingLists) -> None:
        self._lists = lists._replace(
            ids=lists.ids.copy(),
            frequencies=_narrow(lists.frequencies),
            positions=None if lists.positions is None else _narrow(lists.positions),
        )
        self.edges = lists.edges

    @property
    def nbytes(self) -> int:
        """The bytes of all numbers."""
        positions = self._lists.positions
        size = self._lists.ids.nbytes + self._lists.frequencies.nbytes
        return size if positions is None else size + positions.nbytes

    def of_words(self, first: int, stop: int) -> PostingLists:
        found = self._lists.of_words(first, stop)
        positions = found.positions
        return found._replace(
            frequencies=found.frequencies.astype(np.uint32),
            positions=None if positions is None else positions.astype(np.uint32),
        )

    def all(self) -> PostingLists:
        """Return the lists of all words."""
        return self.of_words(0, len(self.edges) - 1)


class _Spilled:
    """A run in a file: documents, frequencies, positions."""

    def __init__(self, lists: PostingLists, file: IO[bytes]) -> None:
        self.edges, self._starts = lists.edges, lists.starts
        self._file, self._place = file, file.seek(0, SEEK_END)
        file.write(lists.ids.data)
        file.write(lists.frequencies.data)
        if lists.positions is not None:
            file.write(lists.positions.data)

    def of_words(self, first: int, stop: int) -> PostingLists:
        edges, documents = self.edges[first : stop + 1], int(self.edges[-1])
        begin, end = int(edges[0]), int(edges[-1])
        ids = self._read(begin, end)
        frequencies = self._read(documents + begin, documents + end)
        if self._starts is None:
            return PostingLists(edges - begin, ids, frequencies)
        starts = self._starts[first : stop + 1]
        positions = self._read(2 * documents + int(starts[0]), 2 * documents + int(starts[-1]))
        return PostingLists(edges - begin, ids, frequencies, positions, starts - starts[0])

    def _read(self, first: int, stop: int) -> Words:
        self._file.seek(self._place + _WORD * first)
        return np.frombuffer(self._file.read(_WORD * (stop - first)), np.uint32)


class Runs:
    """The lists of all words, by the numbers of the words."""

    def __init__(self, sink: Sink, memory_bytes: int) -> None:
        self._sink = sink
        self._memory_bytes = memory_bytes
        self._runs: list[_Run] = []
        self._held: list[_Held] = []
        self._file: IO[bytes] | None = None

    def add(self, lists: PostingLists) -> None:
        """Add the lists of the words that are known so far, with documents behind all others."""
        self._held.append(_Held(lists))
        if sum(one.nbytes for one in self._held) > self._memory_bytes:
            file = self._file = self._file or self._sink.spill()
            self._runs += [_Spilled(one.all(), file) for one in self._held]
            self._held = []

    def counts(self, words: int) -> Integers:
        """Return how many documents have each word."""
        counts = np.zeros(words, np.int64)
        for run in self._all():
            counts[: len(run.edges) - 1] += np.diff(run.edges)
        return counts

    def chunks(self, words: int, documents: int) -> Iterator[PostingLists]:
        """Yield the lists of neighbouring words with about so many documents, in turn."""
        ends = np.cumsum(self.counts(words))
        first = 0
        while first < words:
            before = int(ends[first - 1]) if first else 0
            stop = int(np.searchsorted(ends, before + documents, side="right"))
            stop = min(max(stop, first + 1), words)
            yield self._of_words(first, stop)
            first = stop

    def _all(self) -> list[_Run]:
        return [*self._runs, *self._held]

    def _of_words(self, first: int, stop: int) -> PostingLists:
        parts = []
        for run in self._all():
            known = len(run.edges) - 1
            if first < known:
                parts.append(_padded(run.of_words(first, min(stop, known)), stop - first))
        return parts[0] if len(parts) == 1 else _joined(parts)


def _narrow(values: Words) -> Any:  # noqa: ANN401 - of a narrower type
    """Return a copy in the narrowest type that holds all values."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _padded(lists: PostingLists, words: int) -> PostingLists:
    """Return the same lists and empty ones of words that were not known yet."""
    missing = words + 1 - len(lists.edges)
    if not missing:
        return lists
    edges = np.append(lists.edges, np.full(missing, lists.edges[-1]))
    starts = lists.starts
    if starts is not None:
        starts = np.append(starts, np.full(missing, starts[-1]))
    return lists._replace(edges=edges, starts=starts)


def _joined(parts: list[PostingLists]) -> PostingLists:
    """Return the lists of each word of all parts, one behind the other."""
    edges = [part.edges for part in parts]
    ids = _woven([part.ids for part in parts], edges)
    frequencies = _woven([part.frequencies for part in parts], edges)
    positions = [part.positions for part in parts if part.positions is not None]
    starts = [part.starts for part in parts if part.starts is not None]
    if not starts:
        return PostingLists(np.sum(edges, axis=0), ids, frequencies)
    return PostingLists(
        np.sum(edges, axis=0), ids, frequencies, _woven(positions, starts), np.sum(starts, axis=0)
    )


def _woven(arrays: list[Words], edges: list[Integers]) -> Words:
    before = np.cumsum([0, *map(len, arrays[:-1])])
    starts = np.stack(edges)[:, :-1] + before[:, None]
    sizes = np.stack([np.diff(one) for one in edges])
    whole = np.concatenate(arrays).view(np.uint8)
    pieces = Ragged(whole, starts.T.ravel() * _WORD, sizes.T.ravel() * _WORD)
    return join(pieces).view(np.uint32)
