"""How does the text of many chunks become the text of one array, in one step?

The compiled function reads offsets and codes where they lie and writes them where they stay. How
long coded text is can only be guessed before it is decoded, so memory is reserved for what a
sample says, and for the most it can be when that was too little.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels import fsst
from lancetable.format.encoding.kernels.compiled import Library
from lancetable.format.encoding.kernels.ragged import Ragged, check_inside, empty_bytes

DAMAGED = -1
NO_SYMBOL = -2
ESCAPE_AT_END = -3
NO_ROOM = -4

LARGEST_SHORT_EDGE = 2**31 - 1
SAMPLED_BYTES = 4096
GUESS_FROM_BYTES = 1 << 16
SLACK = 1.1

Texts = tuple[npt.NDArray[Any], Bytes]


def decode_texts(
    library: Library,
    pieces: Ragged,
    counts: Integers,
    width: int,
    table: fsst.SymbolTable | None = None,
) -> Texts:
    """Return the edges and the bytes of the values of chunks.

    Args:
        library: the compiled functions.
        pieces: the chunks: offsets of ``width`` bytes, then the values.
        counts: how many values each chunk holds.
        width: bytes of an offset.
        table: the symbols, when the values are coded.

    Raises:
        CorruptError: offsets or codes are damaged.
    """
    check_inside(pieces)
    starts, sizes = np.ascontiguousarray(pieces.starts), np.ascontiguousarray(pieces.sizes)
    counts = np.ascontiguousarray(counts)
    chunks = _TextChunks(Ragged(pieces.data, starts, sizes), counts, width)
    if table is None or not table.is_compressed:
        return _written(library, chunks, None, chunks.stored)[0]
    guess, most = _rooms(table, pieces, chunks.stored)
    found, total = _written(library, chunks, table, guess)
    return _written(library, chunks, table, most)[0] if total == NO_ROOM else found


class _TextChunks(NamedTuple):
    pieces: Ragged
    counts: Integers
    width: int

    @property
    def stored(self) -> int:
        """The most bytes the values can take as they are stored: what offsets leave over."""
        offsets = (int(self.counts.sum()) + len(self.counts)) * self.width
        return max(int(self.pieces.sizes.sum()) - offsets, 0)


def _written(
    library: Library, chunks: _TextChunks, table: fsst.SymbolTable | None, room: int
) -> tuple[Texts, int]:
    """Write the text of chunks; return it and its size, or NO_ROOM when it takes more."""
    pieces, counts, width = chunks
    if int(counts.min(initial=0)) < 0 or int(counts.sum()) * width > int(pieces.sizes.sum()):
        raise _damaged(DAMAGED)
    edge = np.dtype(np.int32 if room <= LARGEST_SHORT_EDGE else np.int64)
    edges = empty_bytes((int(counts.sum()) + 1) * edge.itemsize).view(edge)
    text = empty_bytes(room)
    symbols = None if table is None else (table.words, table.lengths)
    total = library.text_write(pieces, counts, width, symbols, (text, edges))
    if total < 0 and total != NO_ROOM:
        raise _damaged(total)
    return (edges, text[:total]), total


def _rooms(table: fsst.SymbolTable, pieces: Ragged, stored: int) -> tuple[int, int]:
    """Return how many bytes to reserve for decoded text: a good guess, then the most it can be."""
    most = 8 * stored
    if stored < GUESS_FROM_BYTES:
        return most, most
    middle = pieces.piece(len(pieces.starts) // 2)
    # The first part of a chunk are offsets.
    sample = middle[len(middle) // 4 * 3 :][:SAMPLED_BYTES]
    guess = int(float(table.lengths[sample].mean()) * SLACK * stored)
    return min(guess, most), most


def _damaged(failure: int) -> CorruptError:
    if failure == NO_SYMBOL:
        return CorruptError("an FSST code has no symbol")
    if failure == ESCAPE_AT_END:
        return CorruptError("an FSST value ends with an escape")
    if failure == DAMAGED:
        return CorruptError("the offsets of a chunk decrease or point outside its bytes")
    return CorruptError("the text of a page does not fit the size it says")
