"""Writes the postings of a token in plain Python, as every format of full-text indices has them."""

import struct
from itertools import pairwise

import numpy as np

from lancetable.format.encoding.kernels.postings import Pieces


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def packed(values, lanes, width=None):
    """Return a width and the words of all lanes, which take turns."""
    width = max(int(value).bit_length() for value in values) if width is None else width
    words = []
    for lane in range(lanes):
        stream = sum(
            (int(value) & ((1 << width) - 1)) << (slot * width)
            for slot, value in enumerate(values[lane::lanes])
        )
        words.append(struct.unpack(f"<{width}I", stream.to_bytes(4 * width, "little")))
    turns = [word for row in zip(*words, strict=True) for word in row]
    return bytes([width]), struct.pack(f"<{len(turns)}I", *turns)


def differences(values):
    return [0, *(after - before for before, after in pairwise(values))]


def block_of(ids, frequencies, size, *, plain_tail=False, kept_bits=3):
    """Return one block; ``kept_bits`` of the frequencies in blocks of 256 are packed."""
    score = struct.pack("<f", 1.0) if size == 128 else b""
    steps = differences(ids)
    if len(ids) < size and plain_tail:
        return score + struct.pack(f"<{2 * len(ids)}I", *ids, *frequencies)
    if len(ids) < size:
        return score + b"".join(map(varint, [ids[0], *steps[1:], *frequencies]))
    head = score + struct.pack("<I", ids[0]) + b"".join(packed(steps, size // 32))
    if size == 128:
        return head + b"".join(packed(frequencies, 4))
    high = [(place, one >> kept_bits) for place, one in enumerate(frequencies) if one >> kept_bits]
    patches = b"".join(bytes([place]) + varint(one) for place, one in high)
    width, words = packed(frequencies, 8, kept_bits)
    return head + width + bytes([len(high)]) + words + patches


def pieces(parts):
    edges = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return Pieces(np.frombuffer(b"".join(parts) or b"\0", np.uint8), edges)


def blocks_of(ids, frequencies, size, **options):
    return [
        block_of(ids[at : at + size], frequencies[at : at + size], size, **options)
        for at in range(0, len(ids), size)
    ]


def stream_of(positions, size):
    """Return the parts of a stream of positions, one for each block of documents."""
    parts = []
    for at in range(0, len(positions), size):
        steps = [
            step for one in positions[at : at + size] for step in [one[0], *differences(one)[1:]]
        ]
        whole = len(steps) // 128 * 128
        parts.append(
            b"".join(b"".join(packed(steps[n : n + 128], 4)) for n in range(0, whole, 128))
            + b"".join(map(varint, steps[whole:]))
        )
    return parts


def items_of(positions):
    """Return the items of format 1 for one document."""
    items = [struct.pack("<I", len(positions))]
    for at in range(0, len(positions), 128):
        here = positions[at : at + 128]
        if len(here) < 128:
            items.append(struct.pack(f"<{len(here)}I", *here))
        else:
            packed_steps = b"".join(packed(differences(here), 4))
            items.append(struct.pack("<I", here[0]) + packed_steps)
    return items
