"""Write tokens of a full-text index as a finite-state transducer; see ``token_set.py``.

The compiled kernel writes equal nodes once; the path in Python writes a node for each beginning of
a token, which readers take as well.
"""

from itertools import pairwise

import numpy as np

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

_VERSION = 3
_KNOWN_DIGITS = 14
_BYTES_PER_STEP = 28
_ONE_NODE = 1 << 13
_POLYNOMIAL = 0x82F63B78


def encode_tokens(text: Bytes, edges: Integers, numbers: Integers) -> bytes:
    """Return the map of distinct tokens in ascending order to their numbers.

    Args:
        text: the tokens.
        edges: token i is ``text[edges[i]:edges[i + 1]]``; the first edge is 0.
        numbers: the number of each, none of which is negative.
    """
    if DLL is None:
        return _encode(text.tobytes(), edges.tolist(), numbers.tolist())
    count = len(edges) - 1
    longest = int(np.diff(edges).max(initial=0))
    nodes = np.empty((longest + 2) * DLL.lt_token_map_node(), np.uint8)
    steps = np.empty((count + longest + 1) * DLL.lt_token_map_step(), np.uint8)
    known = np.zeros(12 << _KNOWN_DIGITS, np.uint64)
    out = np.empty(_BYTES_PER_STEP * (int(edges[-1]) + count) + _ONE_NODE, np.uint8)
    size = DLL.lt_token_map(
        address(text),
        address(edges),
        count,
        address(numbers),
        address(nodes),
        address(steps),
        address(known),
        _KNOWN_DIGITS,
        address(out),
    )
    return out[:size].tobytes()


class _Node:
    """A node of a tree of tokens."""

    __slots__ = ("number", "steps")

    def __init__(self) -> None:
        self.number: int | None = None
        self.steps: dict[int, _Node] = {}


def _encode(text: bytes, edges: list[int], numbers: list[int]) -> bytes:
    root = _Node()
    for (start, stop), number in zip(pairwise(edges), numbers, strict=True):
        node = root
        for byte in text[start:stop]:
            node = node.steps.setdefault(byte, _Node())
        node.number = number
    out = bytearray(_VERSION.to_bytes(16, "little"))
    waiting = [root]
    order = []
    while waiting:
        order.append(waiting.pop())
        waiting += order[-1].steps.values()
    places: dict[int, int] = {}
    for node in reversed(order):
        out += _written(node, len(out), [places[id(one)] for one in node.steps.values()])
        places[id(node)] = len(out) - 1
    out += len(numbers).to_bytes(8, "little") + places[id(root)].to_bytes(8, "little")
    return bytes(out) + _checksum(out).to_bytes(4, "little")


def _written(node: _Node, start: int, targets: list[int]) -> bytes:
    """Return the bytes of a node; only final ones have an output, which is the whole number."""
    count, is_final = len(targets), node.number is not None
    backs = [start - target for target in targets]
    target = max((_width(back) for back in backs), default=0)
    output = _width(node.number) if node.number else 0
    parts = [(node.number or 0).to_bytes(output, "little")] if is_final else []
    parts.append(bytes(output * count))
    parts += [back.to_bytes(target, "little") for back in reversed(backs)]
    parts.append(bytes(reversed([*node.steps])))
    if count > 32:
        places = {byte: place for place, byte in enumerate(node.steps)}
        parts.append(bytes(places.get(byte, 255) for byte in range(256)))
    parts.append(bytes([target << 4 | output]))
    if not 0 < count <= 63:
        parts.append(bytes([1 if count == 256 else count]))
    parts.append(bytes([is_final << 6 | (count if count <= 63 else 0)]))
    return b"".join(parts)


def _width(value: int) -> int:
    return max((value.bit_length() + 7) // 8, 1)


def _checksum(data: bytes | bytearray) -> int:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)  # noqa: PLW2901
        table.append(byte)
    total = 0xFFFFFFFF
    for byte in data:
        total = total >> 8 ^ table[(total ^ byte) & 255]
    total ^= 0xFFFFFFFF
    return ((total >> 15 | total << 17) + 0xA282EAD8) & 0xFFFFFFFF
