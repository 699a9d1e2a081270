"""Join the text of many chunks into the text of one array in one step.

The compiled function reads offsets and codes where they lie and writes them where they stay. How
long coded text is can only be guessed before it is decoded, so memory is reserved for what a
sample says, and for the most it can be when that was too little.
"""

from collections.abc import Sequence
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
LEAST_TO_GUESS = 1 << 19
SLACK = 1.1

Texts = tuple[npt.NDArray[Any], Bytes]


class TextChunks(NamedTuple):
    """Chunks, each of offsets and then the values; how many values; their symbols if coded."""

    pieces: Ragged
    counts: Integers
    table: fsst.SymbolTable | None = None

    def stored(self, width: int) -> int:
        """Return the most bytes the values can take as they are stored: what offsets leave over."""
        offsets = (int(self.counts.sum()) + len(self.counts)) * width
        return max(int(self.pieces.sizes.sum()) - offsets, 0)


def decode_texts(library: Library, parts: Sequence[TextChunks], width: int) -> Texts:
    """Return the edges and the bytes of the values of chunks, one part behind the other.

    Args:
        library: the compiled functions.
        parts: the chunks; those of a part have one symbol table.
        width: bytes of an offset.

    Raises:
        CorruptError: offsets or codes are damaged.
    """
    checked = [_checked(part, width) for part in parts]
    rooms = [_rooms(part, part.stored(width)) for part in checked]
    most = sum(room for _, room in rooms)
    guess = sum(room for room, _ in rooms) if most > LEAST_TO_GUESS else most
    found = _written(library, checked, width, guess)
    if found is None:
        found = _written(library, checked, width, most)
    if found is None:
        raise _damaged(NO_ROOM)
    return found


def _checked(part: TextChunks, width: int) -> TextChunks:
    (data, starts, sizes), counts, table = part
    check_inside(part.pieces)
    if int(counts.min(initial=0)) < 0 or int(counts.sum()) * width > int(sizes.sum()):
        raise _damaged(DAMAGED)
    pieces = Ragged(data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes))
    is_coded = table is not None and table.is_compressed
    return TextChunks(pieces, np.ascontiguousarray(counts), table if is_coded else None)


def _written(library: Library, parts: Sequence[TextChunks], width: int, room: int) -> Texts | None:
    """Write the text of chunks; return None when it takes more room."""
    values = sum(int(part.counts.sum()) for part in parts)
    kind = np.dtype(np.int32 if room <= LARGEST_SHORT_EDGE else np.int64)
    edges = empty_bytes((values + 1) * kind.itemsize).view(kind)
    text = empty_bytes(room)
    first = size = 0
    for pieces, counts, table in parts:
        last = first + int(counts.sum())
        own = edges[first : last + 1]
        symbols = None if table is None else (table.words, table.lengths)
        total = library.text_write(pieces, counts, width, symbols, (text[size:], own))
        if total == NO_ROOM:
            return None
        if total < 0:
            raise _damaged(total)
        if size:
            own += size
        first, size = last, size + total
    return edges, text[:size]


def _rooms(part: TextChunks, stored: int) -> tuple[int, int]:
    """Return how many bytes to reserve for decoded text: a good guess, then the most it can be."""
    if part.table is None:
        return stored, stored
    most = 8 * stored
    if not stored:
        return most, most
    middle = part.pieces.piece(len(part.pieces.starts) // 2)
    # The first part of a chunk are offsets.
    sample = middle[len(middle) // 4 * 3 :][:SAMPLED_BYTES]
    guess = int(float(part.table.lengths[sample].mean()) * SLACK * stored) if len(sample) else most
    return min(guess, most), most


def _damaged(failure: int) -> CorruptError:
    if failure == NO_SYMBOL:
        return CorruptError("an FSST code has no symbol")
    if failure == ESCAPE_AT_END:
        return CorruptError("an FSST value ends with an escape")
    if failure == DAMAGED:
        return CorruptError("the offsets of a chunk decrease or point outside its bytes")
    return CorruptError("the text of a page does not fit the size it says")
