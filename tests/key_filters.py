"""Filters of inserted keys in plain Python, key by key, to compare the vectorised ones with."""

from collections.abc import Iterable

from lancetable.commit.rules.rows import _BLOCK, _BLOCK_BYTES, BLOCKS, MOST_EXACT, _place
from lancetable.commit.transaction import BloomFilter, ExactKeys, KeyFilter

_ITEMS_PER_BLOCK = 8
_PROBABILITY = 0.00057


def key_filter(field_ids: Iterable[int], hashes: Iterable[int]) -> KeyFilter:
    """Return the filter of inserted keys, given the hash (XXH64, seed 0) of each."""
    found = frozenset(hashes)
    if len(found) <= MOST_EXACT:
        return KeyFilter(tuple(field_ids), ExactKeys(found))
    blocks = BLOCKS
    while blocks * _ITEMS_PER_BLOCK < len(found):
        blocks *= 2
    return KeyFilter(tuple(field_ids), bloom_filter(found, blocks))


def bloom_filter(hashes: Iterable[int], blocks: int = BLOCKS) -> BloomFilter:
    """Return a split-block bloom filter over hashes."""
    bitmap = bytearray(blocks * _BLOCK_BYTES)
    for hash_ in hashes:
        at, bits = _place(hash_, blocks)
        words = _BLOCK.unpack_from(bitmap, at)
        _BLOCK.pack_into(bitmap, at, *(word | bit for word, bit in zip(words, bits, strict=True)))
    return BloomFilter(bytes(bitmap), 8 * len(bitmap), _ITEMS_PER_BLOCK * blocks, _PROBABILITY)
