"""Mini-block pages: chunks put together from levels and values (see ``layouts.miniblock``).

Repetition and definition levels are cut into the pieces that belong to each chunk. They are packed
to the bits of the highest one. A piece is whole packed blocks of 1024 levels, then what remains:
packed too if that is shorter, raw otherwise.
"""

import struct
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lancetable.format.encoding.base import Bytes, Integers, Levels
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.blocks import PageDraft
from lancetable.format.encoding.build.codec import encode_layout
from lancetable.format.encoding.build.shred import Shredded
from lancetable.format.encoding.build.values import ChunkedValues, framed_runs
from lancetable.format.encoding.compressions.bitpacking import OutOfLineBitpacking
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.rle import Rle
from lancetable.format.encoding.kernels.bitpack import BLOCK, pack
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.kernels.ragged import Ragged, empty_bytes
from lancetable.format.encoding.layouts.chunks import ChunkShape
from lancetable.format.encoding.layouts.miniblock import MiniBlock
from lancetable.format.encoding.repdef import Layers, layers_of, visible

LEVEL_BITS = 16


def encode_levels(levels: Levels, edges: Integers) -> tuple[Compression, Ragged]:
    """Encode levels; piece i holds ``levels[edges[i] : edges[i + 1]]``."""
    width = max(int(levels.max()).bit_length() if len(levels) else 0, 1)
    counts = np.diff(edges)
    if width == LEVEL_BITS:
        sizes = counts * 2
        return Flat(LEVEL_BITS), Ragged(_raw(levels), edges[:-1] * 2, sizes)
    return OutOfLineBitpacking(LEVEL_BITS, width), _packed(levels, edges, width)


def encode_block(levels: Levels) -> tuple[Compression, Bytes]:
    """Encode levels as a buffer of their own, in runs or packed, whatever is shorter."""
    runs = framed_runs(levels)
    packed, pieces = encode_levels(levels, np.array([0, len(levels)], np.int64))
    if len(runs) < int(pieces.sizes[0]):
        return Rle(LEVEL_BITS), runs
    return packed, pieces.piece(0)


def _raw(levels: Levels) -> Bytes:
    return np.ascontiguousarray(levels).view(np.uint8)


def _packed(levels: Levels, edges: Integers, width: int) -> Ragged:
    counts = np.diff(edges)
    tails = counts % BLOCK
    is_packed = tails > BLOCK * width // LEVEL_BITS
    blocks = counts // BLOCK + is_packed
    raw = np.where(is_packed, 0, tails)
    packed = pack(_blocks(levels, edges, blocks), width) if blocks.any() else np.empty(0, np.uint16)
    packed_bytes = packed.reshape(-1).view(np.uint8)
    size = 128 * width
    sizes = blocks * size + raw * 2
    starts = np.cumsum(sizes) - sizes
    if not raw.any():
        return Ragged(packed_bytes, starts, sizes)
    parts: list[Bytes] = []
    levels_bytes = _raw(levels)
    first = 0
    for number, (_, stop) in enumerate(pairwise(edges.tolist())):
        last = first + int(blocks[number]) * size
        parts.append(packed_bytes[first:last])
        parts.append(levels_bytes[(stop - int(raw[number])) * 2 : stop * 2])
        first = last
    return Ragged(np.concatenate(parts), starts, sizes)


def _blocks(levels: Levels, edges: Integers, blocks: Integers) -> Levels:
    """Lay the levels of all packed blocks side by side, the last of a piece filled with zeros."""
    counts = np.diff(edges)
    if (counts[:-1] == BLOCK * blocks[:-1]).all() and int(blocks[-1]) * BLOCK >= int(counts[-1]):
        out = np.zeros(int(blocks.sum()) * BLOCK, np.uint16)
        out[: len(levels)] = levels
        return out.reshape(-1, BLOCK)
    number = np.arange(int(blocks.sum())) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    starts = np.repeat(edges[:-1], blocks) + number * BLOCK
    stops = np.minimum(starts + BLOCK, np.repeat(edges[1:], blocks))
    places = starts[:, None] + np.arange(BLOCK)
    found: Levels = levels[np.minimum(places, len(levels) - 1)]
    found[places >= stops[:, None]] = 0
    return found


MOST_LEVELS = 65535
_ZEROS = bytes(8)
LARGEST_CHUNK_WORD = {False: 32 * 1024, True: 1 << 31}


class DictionaryDraft(NamedTuple):
    """The items of a dictionary page, encoded."""

    compression: Compression
    data: Bytes
    items: int


def build_miniblock(
    leaf: Shredded,
    values: ChunkedValues,
    rows: int,
    *,
    is_large: bool,
    dictionary: DictionaryDraft | None = None,
) -> PageDraft | None:
    """Build a page; None when its levels or chunks are too many or too large for this layout."""
    layers = layers_of(leaf.layers)
    edges = _level_edges(leaf, values.counts, layers)
    levels = np.diff(edges)
    rep = def_ = None
    parts: list[Ragged] = []
    if leaf.rep is not None:
        rep, pieces = encode_levels(leaf.rep, edges)
        parts.append(pieces)
    if leaf.def_ is not None:
        def_, pieces = encode_levels(leaf.def_, edges)
        parts.append(pieces)
    if parts and (
        int(levels.max()) > MOST_LEVELS or max(int(p.sizes.max()) for p in parts) > MOST_LEVELS
    ):
        return None
    shape = ChunkShape(rep, def_, len(values.buffers), is_large)
    stored = levels if parts else np.zeros(len(levels), np.int64)
    words, chunks = _lay_chunks(shape, stored, [*parts, *values.buffers], values.counts)
    if chunks is None:
        return None
    buffers = [words, chunks]
    if dictionary is not None:
        buffers.append(dictionary.data)
    if leaf.rep is not None:
        buffers.append(_row_index(leaf.rep, edges, layers.max_rep))
    layout = MiniBlock(
        shape=shape,
        values=values.compression,
        dictionary=None if dictionary is None else dictionary.compression,
        dictionary_items=0 if dictionary is None else dictionary.items,
        layers=layers,
        has_row_index=leaf.rep is not None,
        items=int(values.counts.sum()),
    )
    return PageDraft(rows, buffers, encode_layout(layout))


def _level_edges(leaf: Shredded, counts: Integers, layers: Layers) -> Integers:
    """Return where the entries of each chunk start, and where the last ones end."""
    if len(counts) == 1:
        entries = leaf.def_ if leaf.def_ is not None else leaf.rep
        return np.array([0, int(counts[0]) if entries is None else len(entries)], np.int64)
    values = np.append(0, np.cumsum(counts))
    shown = None if leaf.def_ is None else visible(leaf.def_, layers)
    if shown is None:
        return values
    # Entries without a value that follow the last value of a chunk belong to the next one.
    places = np.flatnonzero(shown)
    edges = np.zeros(len(counts) + 1, np.int64)
    edges[1:-1] = places[values[1:-1] - 1] + 1
    edges[-1] = len(shown)
    return edges


def _lay_chunks(
    shape: ChunkShape, levels: Integers, parts: list[Ragged], counts: Integers
) -> tuple[Bytes, Bytes | None]:
    """Return the chunk words and the chunks."""
    if len(counts) == 1:
        return _lay_chunk(shape, int(levels[0]), [part.piece(0) for part in parts])
    head = shape.header_bytes
    padded = [(part.sizes + 7) // 8 * 8 for part in parts]
    sizes = head + np.sum(padded, axis=0)
    kind = "<u4" if shape.is_large else "<u2"
    if int(sizes.max()) > LARGEST_CHUNK_WORD[shape.is_large]:
        return np.empty(0, np.uint8), None
    logs = np.log2(counts).astype(np.int64)
    logs[-1] = 0
    words = ((sizes // 8 - 1) << 4 | logs).astype(kind).view(np.uint8)
    starts = np.cumsum(sizes) - sizes
    out = empty_bytes(int(sizes.sum()))
    place = starts + head
    for part, room in zip(parts, padded, strict=True):
        _scatter(out, place, part, room)
        place = place + room
    _lay_headers(out, shape, starts, [levels, *(part.sizes for part in parts)])
    return words, out


def _lay_chunk(shape: ChunkShape, levels: int, pieces: list[Bytes]) -> tuple[Bytes, Bytes | None]:
    """Do the same for a single chunk, without arrays of one number each."""
    level_parts = (shape.rep is not None) + (shape.def_ is not None)
    kinds = "H" * (1 + level_parts) + ("I" if shape.is_large else "H") * (len(pieces) - level_parts)
    size = shape.header_bytes + sum(-(-len(piece) // 8) * 8 for piece in pieces)
    if size > LARGEST_CHUNK_WORD[shape.is_large]:
        return np.empty(0, np.uint8), None
    header = struct.pack(f"<{kinds}", levels, *map(len, pieces))
    parts: list[bytes | memoryview] = [header.ljust(shape.header_bytes, b"\0")]
    for piece in pieces:
        parts += (np.ascontiguousarray(piece).data, _ZEROS[: -len(piece) % 8])
    word = ((size // 8 - 1) << 4).to_bytes(4 if shape.is_large else 2, "little")
    return np.frombuffer(word, np.uint8), np.frombuffer(b"".join(parts), np.uint8)


def _lay_headers(out: Bytes, shape: ChunkShape, starts: Integers, numbers: list[Integers]) -> None:
    """Write the header of every chunk: level count, sizes of the parts."""
    header = np.zeros((len(starts), shape.header_bytes), np.uint8)
    level_parts = 1 + (shape.rep is not None) + (shape.def_ is not None)
    place = 0
    for number, values in enumerate(numbers):
        width = 4 if shape.is_large and number >= level_parts else 2
        header[:, place : place + width] = (
            values.astype(f"<u{width}").view(np.uint8).reshape(-1, width)
        )
        place += width
    words = header.view(np.uint64)
    target = out.view(np.uint64)
    target[(starts // 8)[:, None] + np.arange(words.shape[1])] = words


def _scatter(out: Bytes, places: Integers, pieces: Ragged, rooms: Integers) -> None:
    """Copy every piece to its place, the rest of its room filled with zeros."""
    if LIBRARY is not None:
        source = Ragged(
            np.ascontiguousarray(pieces.data),
            np.ascontiguousarray(pieces.starts),
            np.ascontiguousarray(pieces.sizes),
        )
        LIBRARY.scatter(out, np.ascontiguousarray(places), np.ascontiguousarray(rooms), source)
        return
    data, starts, sizes = pieces
    # Memory views copy short pieces faster than arrays do.
    target, content = out.data, np.ascontiguousarray(data).data
    for place, start, size, room in zip(
        places.tolist(), starts.tolist(), sizes.tolist(), rooms.tolist(), strict=True
    ):
        target[place : place + size] = content[start : start + size]
        if room > size:
            target[place + size : place + room] = _ZEROS[: room - size]


def _row_index(rep: Levels, edges: Integers, max_rep: int) -> Bytes:
    """Return for each chunk how many rows end in it and how many entries are left over."""
    is_start = rep == max_rep
    total = len(rep)
    seen = np.append(0, np.cumsum(is_start))
    first, last = edges[:-1], edges[1:]
    # A row ends where the next one starts, so a start at the very edge ends a row before it.
    next_starts = np.append(is_start, True)[last]
    ended = seen[last] - seen[first]
    begins_new = is_start[np.minimum(first, total - 1)]
    rows = ended - begins_new + next_starts
    starts = np.flatnonzero(is_start)
    latest = starts[np.maximum(seen[last] - 1, 0)]
    leftover = np.where(next_starts, 0, last - np.maximum(latest, first))
    out = np.empty((len(first), 2), np.uint64)
    out[:, 0] = rows
    out[:, 1] = leftover
    return out.reshape(-1).view(np.uint8)
