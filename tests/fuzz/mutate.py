"""Ways to damage bytes: everything a disk, a network or a stranger can do to a file."""

import random
from collections.abc import Callable

Damage = Callable[[random.Random, bytearray, int, int], str]

HUGE = (
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFFF,
    1 << 40,
    1 << 33,
)


def _flip(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    place, bit = chance.randrange(start, stop), chance.randrange(8)
    data[place] ^= 1 << bit
    return f"bit {bit} of byte {place} flipped"


def _set(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    place, value = chance.randrange(start, stop), chance.choice((0, 0xFF, 0x7F, 0x80, 1))
    data[place] = value
    return f"byte {place} set to {value:#x}"


def _number(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    width = chance.choice((2, 4, 8))
    # Numbers stand at multiples of their size, counted from the start of what holds them.
    place = start + chance.randrange(max(1, (stop - start) // width)) * width
    value = chance.choice((*HUGE, len(data), len(data) + 1, chance.randrange(1 << 16)))
    data[place : place + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return f"{width} bytes at {place} set to {value:#x}"


def _noise(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    place = chance.randrange(start, stop)
    size = min(chance.randrange(1, 64), stop - place)
    data[place : place + size] = chance.randbytes(size)
    return f"{size} bytes at {place} are noise"


def _fill(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    place = chance.randrange(start, stop)
    size = min(chance.randrange(1, 256), stop - place)
    value = chance.choice((0, 0xFF))
    data[place : place + size] = bytes([value]) * size
    return f"{size} bytes at {place} are all {value:#x}"


def _splice(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    place, source = chance.randrange(start, stop), chance.randrange(len(data))
    size = min(chance.randrange(1, 128), stop - place, len(data) - source)
    data[place : place + size] = data[source : source + size]
    return f"{size} bytes at {place} copied from {source}"


def _cut(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    place = chance.randrange(start, stop)
    del data[place:]
    return f"cut off at {place}"


def _remove(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    place = chance.randrange(start, stop)
    size = min(chance.choice((1, 2, 4, 8, 16, 64)), stop - place)
    del data[place : place + size]
    return f"{size} bytes at {place} removed"


def _double(chance: random.Random, data: bytearray, start: int, stop: int) -> str:
    place = chance.randrange(start, stop)
    size = min(chance.choice((1, 2, 4, 8, 16, 64)), stop - place)
    data[place:place] = data[place : place + size]
    return f"{size} bytes at {place} doubled"


IN_PLACE: tuple[Damage, ...] = (_flip, _flip, _set, _number, _number, _noise, _fill, _splice)
ANY: tuple[Damage, ...] = (*IN_PLACE, _cut, _remove, _double)


def damage(chance: random.Random, data: bytes, start: int, stop: int) -> tuple[bytes, str]:
    """Damage the bytes of a file between two places in one way."""
    changed = bytearray(data)
    how = chance.choice(ANY)
    text = how(chance, changed, start, stop)
    return bytes(changed), text
