"""Train FSST symbols and encode text with them.

The reverse of ``kernels.fsst``. All values are encoded side by side: each step finds the longest
symbol at the current position of every value, notes its code there and moves on. Long values are
cut into segments first, so that there are never more than 64 steps. Symbols of three and more bytes
are found by a hash of their first three bytes, shorter ones in a table of all pairs of bytes.

Training starts without symbols and repeats: encode a sample, count symbols and neighbours, keep
those whose bytes add up to the most.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import LIBRARY, Library
from lancetable.format.encoding.kernels.fsst import ESCAPE, TABLE_SIZE, parse_symbol_table
from lancetable.format.encoding.kernels.ragged import empty_bytes, gather_slices

SAMPLE_BYTES = 1 << 15
SAMPLE_PIECES = 64
GENERATIONS = 5
SEGMENT = 64
MOST_SYMBOLS = 255
LONGEST_SYMBOL = 8
_COMPRESSED_TABLE = 0x46535354 << 32 | 1 << 24
_SLOT_BITS = 12
_PRIME = np.uint32(2971215073)
_PAIR = np.uint64(0xFFFF)
_LENGTH_SHIFT = 12
_LITERAL = 256
_NO_CODE = 0xFFFF
_LANES = 1 << 14
"""Values that are encoded side by side; their state fits the cache."""
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(LONGEST_SYMBOL + 1)], np.uint64)
_SINGLE_BYTE_WEIGHT = 8


class Matcher(NamedTuple):
    """A symbol table as arrays; an entry is a code (from 256 on a literal) below a length."""

    slot_words: npt.NDArray[np.uint64]
    slot_masks: npt.NDArray[np.uint64]
    slot_entries: npt.NDArray[np.uint16]
    pairs: npt.NDArray[np.uint16]
    singles: npt.NDArray[np.uint16]


def encode(table: bytes, offsets: Integers, data: Bytes) -> tuple[Integers, Bytes]:
    """Return the codes of all values as offsets and bytes.

    Args:
        table: a symbol table of 2312 bytes.
        offsets: where each value starts in ``data``, and where the last one ends.
        data: the bytes of the values.
    """
    if LIBRARY is not None:
        return _encode_compiled(LIBRARY, table, offsets, data)
    return _joined(_codes(_matcher(table), offsets, data), offsets - int(offsets[0]), data, offsets)


def _encode_compiled(
    library: Library, table: bytes, offsets: Integers, data: Bytes
) -> tuple[Integers, Bytes]:
    parsed = parse_symbol_table(table)
    symbols = (parsed.words, parsed.lengths, len(parsed.symbols))
    first, last = int(offsets[0]), int(offsets[-1])
    text = np.ascontiguousarray(data[first:last])
    # A literal takes two bytes, and nothing takes more.
    codes = empty_bytes(2 * len(text))
    edges = np.empty(len(offsets), np.int64)
    starts = np.ascontiguousarray(offsets - first if first else offsets)
    total = library.fsst_encode(symbols, text, starts, (codes, edges))
    return edges, codes[:total]


def train(offsets: Integers, data: Bytes) -> bytes:
    """Return a symbol table that suits a sample of the values; the same for the same values."""
    offsets, data = sample(offsets, data)
    if LIBRARY is not None:
        return _train_compiled(LIBRARY, offsets, data)
    symbols: list[bytes] = []
    for generation in range(GENERATIONS):
        counts = _count(symbols, offsets, data, has_pairs=generation < GENERATIONS - 1)
        symbols = _best(counts)
    return symbol_table(symbols)


def _train_compiled(library: Library, offsets: Integers, data: Bytes) -> bytes:
    first, last = int(offsets[0]), int(offsets[-1])
    text = np.ascontiguousarray(data[first:last])
    words, lengths = library.fsst_train(text, np.ascontiguousarray(offsets - first))
    header = (_COMPRESSED_TABLE | len(words)).to_bytes(8, "little")
    return (header + words.tobytes() + lengths.tobytes()).ljust(TABLE_SIZE, b"\0")


def sample(offsets: Integers, data: Bytes) -> tuple[Integers, Bytes]:
    """Return some values from all over, about 32 KiB of them."""
    total = int(offsets[-1] - offsets[0])
    if total > SAMPLE_BYTES:
        goals = np.linspace(0, total, SAMPLE_PIECES, endpoint=False).astype(np.int64)
        firsts = np.searchsorted(offsets, goals + int(offsets[0]), "right") - 1
        stops = np.searchsorted(offsets, offsets[firsts] + SAMPLE_BYTES // SAMPLE_PIECES, "right")
        stops = np.minimum(stops, len(offsets) - 1)
        # A long value can be where several pieces start.
        firsts[1:] = np.maximum(firsts[1:], stops[:-1])
        chosen = np.concatenate([np.arange(a, b) for a, b in zip(firsts, stops, strict=True)])
        starts = offsets[chosen]
        ends = np.minimum(offsets[chosen + 1], starts + SAMPLE_BYTES)
        offsets, data = gather_slices(data, starts, ends)
    return offsets, data


def symbol_table(symbols: list[bytes]) -> bytes:
    """Return the bytes that describe symbols."""
    header = (_COMPRESSED_TABLE | len(symbols)).to_bytes(8, "little")
    words = b"".join(symbol.ljust(LONGEST_SYMBOL, b"\0") for symbol in symbols)
    lengths = bytes(map(len, symbols))
    return (header + words + lengths).ljust(TABLE_SIZE, b"\0")


@lru_cache(maxsize=64)
def _matcher(table: bytes) -> Matcher:
    return _match_symbols(parse_symbol_table(table).symbols)


def _slot(prefix: int) -> int:
    return ((prefix << 8) * int(_PRIME) & 0xFFFFFFFF) >> (32 - _SLOT_BITS)


def _slot_of(symbol: bytes) -> int:
    return _slot(int.from_bytes(symbol[:3], "little"))


def _match_symbols(symbols: "tuple[bytes, ...] | list[bytes]") -> Matcher:
    size = 1 << _SLOT_BITS
    words, masks = np.ones(size, np.uint64), np.zeros(size, np.uint64)
    entries = np.zeros(size, np.uint16)
    singles = (np.arange(256) + (_LITERAL | 1 << _LENGTH_SHIFT)).astype(np.uint16)
    for code, symbol in enumerate(symbols):
        if len(symbol) == 1:
            singles[symbol[0]] = code | 1 << _LENGTH_SHIFT
    pairs = np.tile(singles, 256)
    for code, symbol in enumerate(symbols):
        entry = code | len(symbol) << _LENGTH_SHIFT
        if len(symbol) == 2:
            pairs[int.from_bytes(symbol, "little")] = entry
        elif len(symbol) > 2 and not masks[_slot_of(symbol)]:
            slot = _slot_of(symbol)
            words[slot] = int.from_bytes(symbol, "little")
            masks[slot] = _MASKS[len(symbol)]
            entries[slot] = entry
    return Matcher(words, masks, entries, pairs, singles)


def _codes(matcher: Matcher, offsets: Integers, data: Bytes) -> npt.NDArray[np.uint16]:
    """Return the entry of the symbol that starts at each byte, or that none does."""
    first, last = int(offsets[0]), int(offsets[-1])
    padded = np.zeros(last - first + LONGEST_SYMBOL, np.uint8)
    padded[: last - first] = data[first:last]
    words = np.lib.stride_tricks.as_strided(
        padded[:LONGEST_SYMBOL].view("V8"), shape=(last - first,), strides=(1,)
    )
    starts, ends = _segments(offsets - first)
    found = np.full(last - first, _NO_CODE, np.uint16)
    for lane in range(0, len(starts), _LANES):
        _walk(matcher, words, starts[lane : lane + _LANES], ends[lane : lane + _LANES], found)
    return found


def _segments(offsets: Integers) -> tuple[Integers, Integers]:
    """Cut values into segments and drop empty ones."""
    lengths = np.diff(offsets)
    if int(lengths.max(initial=0)) <= SEGMENT:
        kept = lengths > 0
        return offsets[:-1][kept], offsets[1:][kept]
    counts = -(-lengths // SEGMENT)
    number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(offsets[:-1], counts) + number * SEGMENT
    return starts, np.minimum(starts + SEGMENT, np.repeat(offsets[1:], counts))


def _walk(
    matcher: Matcher,
    words: npt.NDArray[Any],
    position: Integers,
    ends: Integers,
    found: npt.NDArray[np.uint16],
) -> None:
    """Move through all segments at once, one symbol per step."""
    while len(position):
        left = ends - position
        word = words[position].view(np.uint64)
        hashed = (word.astype(np.uint32) << np.uint32(8)) * _PRIME
        slot = (hashed >> np.uint32(32 - _SLOT_BITS)).astype(np.int64)
        is_hit = (word & matcher.slot_masks[slot]) == matcher.slot_words[slot]
        is_hit &= matcher.slot_entries[slot] >> _LENGTH_SHIFT <= left
        pair = (word & _PAIR).view(np.int64)
        # No symbol may reach beyond the end; a pair at the last byte does.
        other = np.where(left > 1, matcher.pairs[pair], matcher.singles[pair & 0xFF])
        entry = np.where(is_hit, matcher.slot_entries[slot], other)
        length = (entry >> _LENGTH_SHIFT).astype(np.int64)
        found[position] = entry
        position = position + length
        is_open = position < ends
        position, ends = position[is_open], ends[is_open]


def _joined(
    found: npt.NDArray[np.uint16], edges: Integers, data: Bytes, offsets: Integers
) -> tuple[Integers, Bytes]:
    """Return the codes one after the other, literals behind their escape."""
    places = np.flatnonzero(found != _NO_CODE)
    codes = found[places] & 0x1FF
    is_literal = codes >= _LITERAL
    # How many codes, and with them how many bytes, lie before each value.
    before = np.searchsorted(places, edges)
    if not is_literal.any():
        return before, codes.astype(np.uint8)
    starts = np.arange(len(codes)) + np.cumsum(is_literal) - is_literal
    out = np.empty(len(codes) + int(np.count_nonzero(is_literal)), np.uint8)
    out[starts] = np.where(is_literal, ESCAPE, codes)
    literals = places[is_literal]
    out[starts[is_literal] + 1] = data[literals + int(offsets[0])]
    return np.append(starts, len(out))[before], out


def _count(
    symbols: list[bytes], offsets: Integers, data: Bytes, *, has_pairs: bool
) -> dict[bytes, int]:
    """Return how many bytes of the sample each symbol, or pair of neighbours, would cover."""
    found = _codes(_match_symbols(symbols), offsets, data)
    places = np.flatnonzero(found != _NO_CODE)
    codes = (found[places] & 0x1FF).astype(np.int64)
    texts = [*symbols, *[b""] * (_LITERAL - len(symbols)), *[bytes((byte,)) for byte in range(256)]]
    gains: dict[bytes, int] = {}
    totals = np.bincount(codes, minlength=2 * _LITERAL)
    for code in np.flatnonzero(totals).tolist():
        text = texts[code]
        weight = _SINGLE_BYTE_WEIGHT if len(text) == 1 else len(text)
        gains[text] = gains.get(text, 0) + weight * int(totals[code])
    if has_pairs:
        _count_pairs(texts, codes, _neighbours(places, codes, offsets, data), gains)
    return gains


def _neighbours(
    places: Integers, codes: Integers, offsets: Integers, data: Bytes
) -> tuple[Integers, Integers]:
    """Return what may follow each code: the next code, and the first byte of the next code."""
    value = np.searchsorted(offsets - int(offsets[0]), places, "right")
    is_inside = value[1:] == value[:-1]
    second = np.where(is_inside, codes[1:], -1)
    first_byte = data[places[1:] + int(offsets[0])].astype(np.int64) + _LITERAL
    return second, np.where(is_inside & (codes[1:] < _LITERAL), first_byte, -1)


def _count_pairs(
    texts: list[bytes],
    codes: Integers,
    neighbours: tuple[Integers, Integers],
    gains: dict[bytes, int],
) -> None:
    for following in neighbours:
        is_known = following >= 0
        pairs = codes[:-1][is_known] * (2 * _LITERAL) + following[is_known]
        kinds, counts = np.unique(pairs, return_counts=True)
        often = counts > 1
        for pair, count in zip(kinds[often].tolist(), counts[often].tolist(), strict=True):
            left, right = divmod(pair, 2 * _LITERAL)
            text = (texts[left] + texts[right])[:LONGEST_SYMBOL]
            gains[text] = gains.get(text, 0) + len(text) * count


def _best(gains: dict[bytes, int]) -> list[bytes]:
    """Return the symbols that cover the most; of those with one hash only the best."""
    taken: set[int] = set()
    chosen: list[bytes] = []
    for text, _ in sorted(gains.items(), key=lambda item: (-item[1], item[0])):
        if len(text) > 2:
            slot = _slot_of(text)
            if slot in taken:
                continue
            taken.add(slot)
        chosen.append(text)
        if len(chosen) == MOST_SYMBOLS:
            break
    return chosen
