"""The values of a page in chunks: one function per encoding, all chunks at once.

A chunk holds a power of two of values, only the last one fewer. Every function returns how many
values each chunk has and, per value buffer, the piece of each chunk.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.blocks import FixedValues, VariableValues
from lancetable.format.encoding.compressions.bitpacking import InlineBitpacking
from lancetable.format.encoding.compressions.byte_stream_split import ByteStreamSplit
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.rle import Rle
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.kernels.bitpack import BLOCK, pack
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.kernels.ragged import Ragged, empty_bytes

CHUNK_BYTES = 8186
"""A chunk of fixed-width values stays below this, so that it fits two memory pages."""
MOST_VALUES = 4096
TEXT_BYTES = 4096
"""What the offsets and bytes of a chunk of text should add up to."""
MOST_TEXT_BYTES = 30 * 1024
"""What they must not exceed: a chunk word of 2.1 cannot say more than 32 KiB."""
LONGEST_RUN = 255
_ZEROS = bytes(8)
MOST_RUNS = 64
"""Up to here runs of blocks of one width are packed run by run."""


class ChunkedValues(NamedTuple):
    """Encoded values: the encoding, values per chunk, and the pieces of each value buffer."""

    compression: Compression
    counts: Integers
    buffers: tuple[Ragged, ...]


def chunk_counts(total: int, each: int) -> Integers:
    """Split values into chunks of equal size and a last one with the rest."""
    chunks = max(1, -(-total // each))
    counts = np.full(chunks, each, np.int64)
    counts[-1] = total - each * (chunks - 1)
    return counts


def values_per_chunk(width: int) -> int:
    """Return the largest power of two of values of some bytes that fit a chunk."""
    each = 1
    while each * 2 * width < CHUNK_BYTES and each < MOST_VALUES:
        each *= 2
    return max(each, 2)


def _pieces(data: Bytes, sizes: Integers) -> Ragged:
    return Ragged(data, np.cumsum(sizes) - sizes, sizes)


def encode_flat(values: FixedValues) -> ChunkedValues:
    """Store values as they are."""
    counts = chunk_counts(len(values.raw) // values.width, values_per_chunk(values.width))
    pieces = _pieces(values.raw, counts * values.width)
    return ChunkedValues(Flat(values.width * 8), counts, (pieces,))


def encode_bits(bits: Bytes, count: int) -> ChunkedValues:
    """Store booleans as the bits they are."""
    counts = chunk_counts(count, MOST_VALUES)
    pieces = _pieces(bits, (counts + 7) // 8)
    return ChunkedValues(Flat(1), counts, (pieces,))


def block_widths(words: npt.NDArray[Any]) -> Integers:
    """Return the bits that the widest value of every 1024 needs."""
    whole = len(words) // BLOCK * BLOCK
    tops = np.zeros(-(-len(words) // BLOCK), np.uint64)
    tops[: whole // BLOCK] = np.bitwise_or.reduce(words[:whole].reshape(-1, BLOCK), axis=1)
    if whole < len(words):
        tops[-1] = np.bitwise_or.reduce(words[whole:])
    return _bit_lengths(tops)


def _bit_lengths(numbers: npt.NDArray[np.uint64]) -> Integers:
    """Return how many bits each number needs, halving the place of the highest one."""
    lengths = np.zeros(len(numbers), np.int64)
    for shift in (32, 16, 8, 4, 2, 1):
        is_higher = numbers >= np.uint64(1 << shift)
        lengths[is_higher] += shift
        numbers = np.where(is_higher, numbers >> np.uint64(shift), numbers)
    return lengths + (numbers > 0)


def encode_bitpacked(words: npt.NDArray[Any], widths: Integers) -> ChunkedValues:
    """Store integers in the bits their block needs, the width in front of each block."""
    size = words.dtype.itemsize
    counts = chunk_counts(len(words), BLOCK)
    whole = len(words) // BLOCK
    sizes = size + 128 * widths
    starts = np.cumsum(sizes) - sizes
    out = empty_bytes(int(sizes.sum()))
    target = out.view(words.dtype)
    edges = np.flatnonzero(np.diff(widths[:whole])) + 1
    if len(edges) > MOST_RUNS:
        _pack_scattered(words[: whole * BLOCK].reshape(-1, BLOCK), widths, starts, target)
    else:
        for first, stop in pairwise([0, *edges.tolist(), whole]):
            _pack_run(words[first * BLOCK : stop * BLOCK], widths[first:], starts[first:], target)
    if whole < len(counts):
        last = np.zeros(BLOCK, words.dtype)
        last[: int(counts[-1])] = words[whole * BLOCK :]
        _pack_run(last, widths[whole:], starts[whole:], target)
    pieces = Ragged(out, starts, sizes)
    return ChunkedValues(InlineBitpacking(size * 8), counts, (pieces,))


def _packed_row_size(width: int, size: int) -> int:
    """Return the words that a packed block and the width in front of it take."""
    return 1 + 128 * width // size


def _pack_run(
    words: npt.NDArray[Any], widths: Integers, starts: Integers, target: npt.NDArray[Any]
) -> None:
    """Pack neighbouring blocks of one width."""
    blocks = words.reshape(-1, BLOCK)
    if not len(blocks):
        return
    width, size = int(widths[0]), words.dtype.itemsize
    row = _packed_row_size(width, size)
    first = int(starts[0]) // size
    table = target[first : first + len(blocks) * row].reshape(-1, row)
    table[:, 0] = width
    if width:
        table[:, 1:] = pack(blocks, width)


def _pack_scattered(
    blocks: npt.NDArray[Any], widths: Integers, starts: Integers, target: npt.NDArray[Any]
) -> None:
    """Pack blocks whose widths change all the time, those of one width together."""
    size = blocks.dtype.itemsize
    widths = widths[: len(blocks)]
    for width in np.unique(widths).tolist():
        members = np.flatnonzero(widths == width)
        row = np.empty((len(members), _packed_row_size(width, size)), blocks.dtype)
        row[:, 0] = width
        if width:
            row[:, 1:] = pack(blocks[members], width)
        target[(starts[members] // size)[:, None] + np.arange(row.shape[1])] = row


def run_starts(words: npt.NDArray[Any]) -> Integers:
    """Return where the runs of equal values start, runs cut at the ends of chunks."""
    is_start = np.empty(len(words), np.bool_)
    is_start[:1] = True
    np.not_equal(words[1:], words[:-1], out=is_start[1:])
    is_start[::MOST_VALUES] = True
    return np.flatnonzero(is_start)


def encode_runs(words: npt.NDArray[Any], starts: Integers) -> ChunkedValues:
    """Store every run as its value and its length, long runs as several."""
    parts, runs, sizes = _short_runs(words, starts)
    counts = chunk_counts(len(words), MOST_VALUES)
    per_chunk = np.bincount(np.repeat(starts // MOST_VALUES, parts), minlength=len(counts))
    width = words.dtype.itemsize
    values = _pieces(np.ascontiguousarray(runs).view(np.uint8), per_chunk * width)
    lengths_of = _pieces(sizes, per_chunk.astype(np.int64))
    return ChunkedValues(Rle(width * 8), counts, (values, lengths_of))


def _short_runs(
    words: npt.NDArray[Any], starts: Integers
) -> tuple[Integers, npt.NDArray[Any], Bytes]:
    """Return in how many parts each run is stored, and the value and length of all parts."""
    lengths = np.diff(np.append(starts, len(words)))
    parts = -(-lengths // LONGEST_RUN)
    sizes = np.full(int(parts.sum()), LONGEST_RUN, np.int64)
    sizes[np.cumsum(parts) - 1] = lengths - (parts - 1) * LONGEST_RUN
    return parts, np.repeat(words[starts], parts), sizes.astype(np.uint8)


def framed_runs(words: npt.NDArray[Any]) -> Bytes:
    """Return runs as a buffer of their own: the size of the values, the values, the lengths."""
    starts = np.append(0, np.flatnonzero(words[1:] != words[:-1]) + 1)
    _, runs, sizes = _short_runs(words, starts)
    head = np.array([runs.nbytes], np.uint64).view(np.uint8)
    return np.concatenate([head, np.ascontiguousarray(runs).view(np.uint8), sizes])


def encode_split(values: FixedValues) -> ChunkedValues:
    """Store byte j of all values of a chunk, for each j."""
    table = values.raw.reshape(-1, values.width)
    counts = chunk_counts(len(table), 1024 if values.width == 4 else 512)
    out = np.empty(table.size, np.uint8)
    first = 0
    for count in counts.tolist():
        stop = first + count
        out[first * values.width : stop * values.width] = table[first:stop].T.reshape(-1)
        first = stop
    return ChunkedValues(
        ByteStreamSplit(values.width * 8), counts, (_pieces(out, counts * values.width),)
    )


def encode_variable(values: VariableValues) -> ChunkedValues:
    """Store offsets and bytes of every chunk, all chunks of the same number of values."""
    total = len(values.offsets) - 1
    counts = chunk_counts(total, _texts_per_chunk(values))
    size = values.bits // 8
    edges = np.append(0, np.cumsum(counts))
    first, last = values.offsets[edges[:-1]], values.offsets[edges[1:]]
    heads = (counts + 1) * size
    sizes = (heads + last - first + size - 1) // size * size
    starts = np.cumsum(sizes) - sizes
    if LIBRARY is not None:
        out = empty_bytes(int(sizes.sum()))
        text = (np.ascontiguousarray(values.offsets), np.ascontiguousarray(values.data))
        LIBRARY.text_chunks(out, (starts, sizes), counts, text, values.bits)
        return ChunkedValues(Variable(values.bits), counts, (Ragged(out, starts, sizes),))
    offsets, data = _chunk_offsets(values, counts).data, np.ascontiguousarray(values.data).data
    parts: list[memoryview | bytes] = []
    place = 0
    for head, begin, end, whole in zip(
        heads.tolist(), first.tolist(), last.tolist(), sizes.tolist(), strict=True
    ):
        parts += (
            offsets[place : place + head],
            data[begin:end],
            _ZEROS[: whole - head - end + begin],
        )
        place += head
    out = np.frombuffer(b"".join(parts), np.uint8)
    return ChunkedValues(Variable(values.bits), counts, (Ragged(out, starts, sizes),))


def _texts_per_chunk(values: VariableValues) -> int:
    """Return a power of two of values that fill a chunk well and never overfill one."""
    total = len(values.offsets) - 1
    size = values.bits // 8
    mean = (int(values.offsets[-1]) - int(values.offsets[0])) / max(total, 1) + size
    each = 2
    while each * 2 * mean + size <= TEXT_BYTES and each < MOST_VALUES:
        each *= 2
    while each > 2:
        edges = values.offsets[np.minimum(np.arange(0, total + each, each), total)]
        if int(np.diff(edges).max(initial=0)) + (each + 1) * size <= MOST_TEXT_BYTES:
            break
        each //= 2
    return each


def _chunk_offsets(values: VariableValues, counts: Integers) -> Bytes:
    """Return the offsets of all chunks, each counted from the start of its own buffer."""
    size = values.bits // 8
    each, offsets = int(counts[0]), values.offsets
    whole = len(counts) if int(counts[-1]) == each else len(counts) - 1
    out = np.empty(len(offsets) - 1 + len(counts), f"<u{size}")
    if whole:
        table = out[: whole * (each + 1)].reshape(whole, each + 1)
        starts = offsets[: whole * each].reshape(whole, each)
        moves = (each + 1) * size - starts[:, :1]
        np.add(starts, moves, out=table[:, :-1], casting="unsafe")
        np.add(
            offsets[each : whole * each + 1 : each], moves[:, 0], out=table[:, -1], casting="unsafe"
        )
    if whole < len(counts):
        edges = offsets[whole * each :]
        out[whole * (each + 1) :] = edges - edges[0] + len(edges) * size
    return out.view(np.uint8)
