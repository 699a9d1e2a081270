"""Test which of many numbers may be in a set of others.

A table of marks over the low digits of the others rejects most of the many at once. Filters of
hashed keys do the same for other writers: a filter has blocks of eight words of 32 bits, and each
key sets one bit in every word of its block.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

Codes: TypeAlias = npt.NDArray[np.uint64]

_SALTS = np.array(
    [
        *(0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D),
        *(0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31),
    ],
    np.uint32,
)


class Marks(NamedTuple):
    """A bit for each value of the low digits of numbers, least significant bit first."""

    bits: Bytes
    digits: int

    @property
    def mask(self) -> int:
        """The low digits."""
        return (1 << self.digits) - 1


def marks_of(codes: Codes, digits: int) -> Marks:
    """Return the marks of numbers; ``digits`` is at least 3."""
    mask = (1 << digits) - 1
    if DLL is None:
        flags = np.zeros(1 << digits, np.bool_)
        flags[codes & np.uint64(mask)] = True
        return Marks(np.packbits(flags, bitorder="little"), digits)
    bits = np.zeros(1 << (digits - 3), np.uint8)
    whole = np.ascontiguousarray(codes)
    DLL.lt_mark(address(whole), len(whole), address(bits), mask)
    return Marks(bits, digits)


def probe(codes: Codes, marks: Marks) -> Integers:
    """Return the places of the codes whose low digits are marked."""
    if DLL is None:
        # Signed indices within bounds are taken as they are; others would be copied and checked.
        low = (codes & np.uint64(marks.mask)).view(np.int64)
        found = np.take(marks.bits, low >> 3, mode="wrap") >> (low & 7).astype(np.uint8)
        return np.flatnonzero(found & 1)
    # One place more than may be found: the last code is written before it is looked at.
    places = np.empty(len(codes) + 1, np.int64)
    whole, bits = np.ascontiguousarray(codes), np.ascontiguousarray(marks.bits)
    count = DLL.lt_probe(address(whole), len(whole), address(bits), marks.mask, address(places))
    return places[:count].copy() if count < len(codes) // 2 else places[:count]


def mark_keys(words: npt.NDArray[np.uint32], hashes: Codes) -> None:
    """Set the bits of keys in a filter; fastest when their hashes ascend."""
    if not len(hashes):
        return
    by_block = words.reshape(-1, 8)
    if DLL is not None:
        whole = np.ascontiguousarray(hashes)
        DLL.lt_mark_keys(
            address(whole), len(whole), address(_SALTS), address(by_block), len(by_block)
        )
        return
    hashes = np.sort(hashes)  # so that each block comes once
    block = ((hashes >> np.uint64(32)) * np.uint64(len(by_block))) >> np.uint64(32)
    bits = np.uint32(1) << ((hashes.astype(np.uint32) * _SALTS[:, None]) >> np.uint32(27))
    firsts = np.flatnonzero(np.concatenate(([True], block[1:] != block[:-1])))
    by_block[block[firsts]] |= np.bitwise_or.reduceat(bits, firsts, axis=1).T


def may_hold(
    words: npt.NDArray[np.uint32], firsts: Integers, blocks: Integers, hashes: Codes
) -> npt.NDArray[np.bool_]:
    """Return which filters may hold one of some keys.

    The filters lie one after the other in ``words``: each has some blocks from its first on.
    """
    by_block = words.reshape(-1, 8)
    found = np.zeros(len(firsts), np.bool_)
    for hash_ in hashes:
        inside = (hash_ >> np.uint64(32)) * blocks.astype(np.uint64) >> np.uint64(32)
        bits = np.uint32(1) << ((hash_.astype(np.uint32) * _SALTS) >> np.uint32(27))
        found |= (by_block[firsts + inside.astype(np.int64)] & bits == bits).all(axis=1)
    return found
