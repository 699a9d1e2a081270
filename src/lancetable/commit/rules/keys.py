"""Compare filters of key hashes: may two operations have inserted the same key?

A split-block bloom filter is a list of blocks of eight words (u32). The upper half of a hash picks
the block; the lower half, times one odd number per word, picks one bit of each word.
"""

import struct

from lancetable.commit.transaction import BloomFilter, ExactKeys, KeyFilter

MOST_EXACT = 4096
"""Up to so many keys the hashes themselves take no more room than a filter."""
BLOCKS = 1024
_BLOCK_BYTES = 32
_SALT = (
    *(0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D),
    *(0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31),
)
_BLOCK = struct.Struct("<8I")


def may_share(mine: KeyFilter, theirs: KeyFilter) -> bool:
    """Say whether a key may be in both filters; filters that cannot be compared may share one."""
    if mine.field_ids != theirs.field_ids:
        return True
    match mine.keys, theirs.keys:
        case ExactKeys(own), ExactKeys(other):
            return not own.isdisjoint(other)
        case ExactKeys(own), BloomFilter() as other:
            return any(_may_hold(other, hash_) for hash_ in own)
        case BloomFilter() as own, ExactKeys(other):
            return any(_may_hold(own, hash_) for hash_ in other)
        case BloomFilter() as own, BloomFilter() as other:
            return _may_meet(own, other)
    return True


def _place(hash_: int, blocks: int) -> tuple[int, list[int]]:
    block = ((hash_ >> 32) * blocks) >> 32
    key = hash_ & 0xFFFFFFFF
    return block * _BLOCK_BYTES, [1 << ((key * salt & 0xFFFFFFFF) >> 27) for salt in _SALT]


def _may_hold(bloom: BloomFilter, hash_: int) -> bool:
    blocks, rest = divmod(len(bloom.bitmap), _BLOCK_BYTES)
    if not blocks or rest:
        return True
    at, bits = _place(hash_, blocks)
    words = _BLOCK.unpack_from(bloom.bitmap, at)
    return all(word & bit for word, bit in zip(words, bits, strict=True))


def _may_meet(own: BloomFilter, other: BloomFilter) -> bool:
    """Compare block by block: a shared key has a bit in each word of its block in both."""
    if len(own.bitmap) != len(other.bitmap) or own[1:] != other[1:]:
        return True
    if not own.bitmap or len(own.bitmap) % _BLOCK_BYTES:
        return True
    both = int.from_bytes(own.bitmap, "little") & int.from_bytes(other.bitmap, "little")
    if not both:
        return False
    shared = both.to_bytes(len(own.bitmap), "little")
    return any(all(words) for words in _BLOCK.iter_unpack(shared))
