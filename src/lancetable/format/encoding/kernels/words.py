"""Find the words of texts, and number the distinct ones.

Texts are UTF-8 bytes one after the other with an edge between neighbours; characters are told apart
by a set of them with a bit for each.
"""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import Array, address

Codes = npt.NDArray[np.int32]
MOST_POINTS = 0x110000
_FIRST_DIGITS, _FIRST_ROOM, _FIRST_BYTES = 12, 1 << 11, 1 << 14


class Spans(NamedTuple):
    """Words inside the bytes of texts."""

    starts: Integers
    sizes: Codes
    documents: Codes
    """The number of the text."""
    positions: Codes
    """The number of the word in its text; words that were left out count."""


def split_words(data: Bytes, edges: Integers, classes: Bytes, most: int) -> Spans:
    """Return the longest runs of characters of a class that have at most so many bytes.

    Args:
        data: the texts.
        edges: where each text starts, and where the last one ends.
        classes: a bit for each character, least significant bit first.
        most: the most bytes of a word; longer ones only count in the positions.
    """
    texts = len(edges) - 1
    if DLL is None:
        return _split_words(data, edges, classes, most)
    room = int(edges[-1] - edges[0]) // 2 + texts
    starts = np.empty(room, np.int64)
    sizes, documents, positions = (np.empty(room, np.int32) for _ in range(3))
    out = [address(one) for one in (starts, sizes, documents, positions)]
    count = DLL.lt_split_words(address(data), address(edges), texts, address(classes), most, *out)
    return Spans(starts[:count], sizes[:count], documents[:count], positions[:count])


def characters(data: Bytes, edges: Integers) -> tuple[Integers, Codes]:
    """Return where each character of texts starts, and the number of its text."""
    inside = data[edges[0] : edges[-1]]
    firsts = np.flatnonzero((inside & 0xC0) != 0x80) + edges[0]
    documents = np.searchsorted(edges[1:], firsts, side="right").astype(np.int32)
    return firsts, documents


def _split_words(data: Bytes, edges: Integers, classes: Bytes, most: int) -> Spans:
    firsts, documents = characters(data, edges)
    padded = np.concatenate([data[: edges[-1]], np.zeros(4, np.uint8)]).astype(np.uint32)
    bytes_ = [padded[firsts + number] for number in range(4)]
    low = [one & 0x3F for one in bytes_]
    points = np.select(
        [bytes_[0] < 0x80, bytes_[0] < 0xE0, bytes_[0] < 0xF0],
        [
            bytes_[0],
            (bytes_[0] & 0x1F) << 6 | low[1],
            (bytes_[0] & 0xF) << 12 | low[1] << 6 | low[2],
        ],
        (bytes_[0] & 7) << 18 | low[1] << 12 | low[2] << 6 | low[3],
    )
    points = np.where(points < MOST_POINTS, points, 0)
    is_inside = np.unpackbits(classes, bitorder="little")[points].astype(np.bool_)
    change = np.diff(documents) != 0
    is_first = is_inside & np.concatenate([[True], ~is_inside[:-1] | change])[: len(firsts)]
    is_last = is_inside & np.concatenate([~is_inside[1:] | change, [True]])[: len(firsts)]
    starts = firsts[is_first]
    sizes = np.append(firsts, edges[-1])[1:][is_last] - starts
    words = documents[is_first]
    positions = np.arange(len(words)) - np.searchsorted(words, words)
    kept = sizes <= most
    found = (sizes.astype(np.int32), words, positions.astype(np.int32))
    return Spans(starts[kept], *(one[kept] for one in found))


class WordNumbers(Protocol):
    """Distinct words, numbered in the order in which they first appear."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        ...

    def number(self, data: Bytes, starts: Integers, sizes: Codes) -> Codes:
        """Return the number of each of some words."""
        ...

    def texts(self, first: int = 0) -> pa.Array:
        """Return the distinct words from a number on."""
        ...


class _Compiled:
    """A table by hash, filled by the compiled kernel."""

    def __init__(self) -> None:
        self._digits, self._count = _FIRST_DIGITS, 0
        self._slots = np.zeros(1 << _FIRST_DIGITS, np.uint64)
        self._edges = np.zeros(_FIRST_ROOM + 1, np.int64)
        self._known = np.empty(_FIRST_BYTES, np.uint8)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes + self._edges.nbytes + self._known.nbytes

    def number(self, data: Bytes, starts: Integers, sizes: Codes) -> Codes:
        out = np.empty(len(starts), np.int32)
        state = np.array([self._count], np.int64)
        self._known = _grown(self._known, int(self._edges[self._count]) + int(sizes.sum()))
        done = 0
        while True:
            done += DLL.lt_number_words(
                address(data),
                address(starts[done:]),
                address(sizes[done:]),
                len(starts) - done,
                address(self._slots),
                self._digits,
                address(self._known),
                address(self._edges),
                len(self._edges) - 1,
                address(state),
                address(out[done:]),
            )
            self._count = int(state[0])
            if done == len(starts):
                return out
            self._make_room()

    def _make_room(self) -> None:
        self._edges = _grown(self._edges, 2 * self._count + 1)
        self._digits += 1
        self._slots = np.zeros(1 << self._digits, np.uint64)
        DLL.lt_enter_words(
            address(self._known),
            address(self._edges),
            self._count,
            address(self._slots),
            self._digits,
        )

    def texts(self, first: int = 0) -> pa.Array:
        edges = self._edges[first : self._count + 1]
        data = self._known[edges[0] : edges[-1]].copy()
        return _texts(data, edges - edges[0])


class _Plain:
    """A dictionary of bytes."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def nbytes(self) -> int:
        return self._bytes

    def number(self, data: Bytes, starts: Integers, sizes: Codes) -> Codes:
        whole, known, before = data.tobytes(), self._numbers, len(self._numbers)
        out = np.fromiter(
            (
                known.setdefault(whole[start : start + size], len(known))
                for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
            ),
            np.int32,
            len(starts),
        )
        self._bytes += 100 * (len(known) - before)
        return out

    def texts(self, first: int = 0) -> pa.Array:
        return pa.array([*self._numbers][first:], pa.binary()).cast(pa.large_string())


def word_numbers() -> WordNumbers:
    """Return a numbering without words."""
    return _Plain() if DLL is None else _Compiled()


def _grown(array: Array, size: int) -> Array:
    """Return an array with the same beginning and at least a size."""
    if size <= len(array):
        return array
    grown = np.empty(max(size, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown


def _texts(data: Bytes, edges: Integers) -> pa.Array:
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(edges) - 1, buffers)
