"""Tokens of a full-text index as a finite-state transducer, which maps each token to a number.

==============  =================================================================================
header          u64 version 3, u64 type
nodes           each behind all nodes that it leads to; the root is the last
footer          u64 number of tokens, u64 address of the root, u32 checksum
==============  =================================================================================

A node is addressed by its last byte, its state, and read backwards. Address 0 is a final node
without transitions. The number of a token is the sum of the outputs on its way.

==============  =================================================================================
``11cccccc``    one transition, without an output, to the node that ends before this one
``10cccccc``    one transition: sizes, target, output
``0fnnnnnn``    n transitions, final if f is set: sizes, a table of 256 bytes if there are more
                than 32, the input bytes, the targets, the outputs, and the output of a final node
==============  =================================================================================

``c`` counts the frequent input bytes from 1; 0 says that the byte follows. Without ``n`` the number
of transitions follows, 1 standing for 256. ``sizes`` has the bytes of a target in its upper half,
and those of an output in the lower one. A target is a distance from the first byte of the node; 0
is address 0.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

COMMON = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGWU"
HEADER, FOOTER = 16, 20
VERSION = 3
LONGEST_WORD = 500
"""Edits are counted for words of at most so many characters."""

_DEPTH = 256
_TOO_DEEP = -3


class Found(NamedTuple):
    """Tokens in ascending order: token i is ``text[edges[i]:edges[i + 1]]``, with its number."""

    numbers: Integers
    edges: Integers
    text: Bytes

    def tokens(self) -> list[bytes]:
        """Return the tokens."""
        text = self.text.tobytes()
        edges = self.edges.tolist()
        return [text[start:stop] for start, stop in pairwise(edges)]


class Near(NamedTuple):
    """The tokens within some edits of a word that begin like the word."""

    word: str
    distance: int
    prefix: int = 0
    """How many characters at the beginning must be equal, at most all of the word."""

    most: int = 50


class Transducer:
    """The map of a set of tokens; ``total_bytes`` is how long all tokens are together."""

    def __init__(self, data: Bytes, total_bytes: int) -> None:
        """Check the frame of the map.

        Raises:
            CorruptError: the bytes are not such a map.
        """
        self._data = data
        self._total = total_bytes
        words = data[:8].tobytes(), data[-FOOTER:-12].tobytes()
        version, self.count = (int.from_bytes(one, "little") for one in words)
        if len(data) < HEADER + FOOTER or version != VERSION:
            raise CorruptError("the tokens of a full-text index are not a map of version 3")
        if self.count > max(len(data), total_bytes + 1):
            raise CorruptError(f"a map of {len(data)} bytes has {self.count} tokens")

    def find(self, token: bytes) -> int | None:
        """Return the number of a token; None when there is no such token.

        Raises:
            CorruptError: the map is damaged.
        """
        if DLL is None:
            return self._find(token)
        found: int = DLL.lt_token_find(address(self._data), len(self._data), token, len(token))
        if found < -1:
            raise _damaged()
        return None if found < 0 else found

    def all(self) -> Found:
        """Return all tokens in ascending order.

        Raises:
            CorruptError: the map is damaged.
        """
        if DLL is None:
            return _found(self._walk(None), self.count + 1)
        depth = _DEPTH
        while True:
            count, found = self._listed(depth)
            if count != _TOO_DEEP or depth > self._total:
                break
            depth *= 16
        if count != self.count:
            raise _damaged()
        return found

    def near(self, near: Near) -> Found:
        """Return the first tokens near a word.

        Raises:
            CorruptError: the map is damaged.
        """
        length = len(near.word)
        if DLL is None:
            return _found(self._walk(near), near.most)
        word = np.frombuffer(near.word.encode("utf-32-le", "surrogatepass"), np.uint32)
        letters = length + near.distance + 1
        rows = np.empty((letters + 1, length + 1), np.uint16)
        depth = 4 * letters + 2
        room = _Room(near.most, depth, (near.most + 3) * depth)
        count = DLL.lt_token_near(
            *self._arguments(room),
            address(np.append(word, np.uint32(0))),
            length,
            near.distance,
            near.prefix,
            address(rows),
        )
        if count < 0:
            raise _damaged()
        return room.found(count)

    def _listed(self, depth: int) -> tuple[int, Found]:
        room = _Room(self.count + 1, depth, self._total + 3 * depth)
        count: int = _dll().lt_token_list(*self._arguments(room))
        return count, room.found(max(count, 0))

    def _arguments(self, room: "_Room") -> tuple[object, ...]:
        return (
            address(self._data),
            len(self._data),
            self._total + 1,
            room.depth,
            address(room.frames),
            room.most,
            address(room.numbers),
            address(room.edges),
            len(room.text),
            address(room.text),
        )

    def _root(self) -> int:
        return int.from_bytes(self._data[-12:-4].tobytes(), "little")

    def _find(self, token: bytes) -> int | None:
        node, total = _Node(self._data, self._root()), 0
        for byte in token:
            step = next((one for one in node.steps() if one[0] == byte), None)
            if step is None:
                return None
            total += step[2]
            node = _Node(self._data, step[1])
        return total + node.output if node.is_final else None

    def _walk(self, near: Near | None) -> Iterator[tuple[bytes, int]]:
        """Yield tokens and their numbers in ascending order."""
        left = self._total
        waiting = [(b"", self._root(), 0)]
        while waiting:
            token, at, total = waiting.pop()
            node = _Node(self._data, at)
            if node.is_final and (near is None or is_near(token, near)):
                yield token, total + node.output
            steps = [
                (token + bytes([byte]), target, total + output)
                for byte, target, output in node.steps()
            ]
            left -= len(steps)
            if left < 0:
                raise _damaged()
            waiting += reversed(steps)


class _Room:
    """Arrays that a walk fills."""

    def __init__(self, most: int, depth: int, bytes_: int) -> None:
        self.most, self.depth = most, depth
        self.frames = np.empty(depth * _dll().lt_token_frame(), np.uint8)
        self.numbers = np.empty(most, np.int64)
        self.edges = np.empty(most + 1, np.int64)
        self.text = np.empty(bytes_, np.uint8)

    def found(self, count: int) -> Found:
        """Return what a walk wrote."""
        edges = self.edges[: count + 1]
        return Found(self.numbers[:count], edges, self.text[: edges[-1]])


def _dll() -> Any:  # noqa: ANN401 - the compiled functions
    return DLL


class _Node:
    """One node of a map."""

    def __init__(self, data: Bytes, at: int) -> None:
        self._data = data
        self.is_final, self.output, self._count = at == 0, 0, 0
        self._common = -1
        if at == 0:
            return
        if not HEADER <= at < len(data) - FOOTER:
            raise _damaged()
        state = int(data[at])
        if state & 128:
            self._read_single(at, state)
        else:
            self._read_many(at, state)
        if self._start < HEADER:
            raise _damaged()
        if self.is_final:
            self.output = self._number(self._start, self._output_size)

    def _read_single(self, at: int, state: int) -> None:
        self._count = 1
        self._common = COMMON[(state & 63) - 1] if state & 63 else int(self._data[at - 1])
        at -= not state & 63
        self._target_size = self._output_size = 0
        if not state & 64:
            at -= 1
            self._target_size, self._output_size = divmod(int(self._data[at]), 16)
        self._targets = at - self._target_size
        self._start = self._outputs = self._targets - self._output_size
        self._inputs = 0

    def _read_many(self, at: int, state: int) -> None:
        self.is_final = bool(state & 64)
        self._count = state & 63
        if not self._count:
            at -= 1
            self._count = 256 if self._data[at] == 1 else int(self._data[at])
        at -= 1
        self._target_size, self._output_size = divmod(int(self._data[at]), 16)
        at -= 256 if self._count > 32 else 0
        behind = at - self._count * (1 + self._target_size)
        self._inputs = at - 1
        self._targets = at - self._count - self._target_size
        self._outputs = behind - self._output_size
        self._start = behind - (self._count + self.is_final) * self._output_size

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield the transitions: input byte, address of the target, output."""
        for place in range(self._count):
            byte = self._common if self._common >= 0 else int(self._data[self._inputs - place])
            if not self._target_size:
                yield byte, self._start - 1, 0
                continue
            back = self._number(self._targets - place * self._target_size, self._target_size)
            output = self._number(self._outputs - place * self._output_size, self._output_size)
            yield byte, self._start - back if back else 0, output

    def _number(self, at: int, size: int) -> int:
        return int.from_bytes(self._data[at : at + size].tobytes(), "little")


def is_near(token: bytes, near: Near) -> bool:
    """Return whether a token is near a word: insertions, deletions and replacements count."""
    text = token.decode("utf-8", "replace")
    word = near.word
    if text[: near.prefix] != word[: near.prefix]:
        return False
    if abs(len(text) - len(word)) > near.distance:
        return False
    row = list(range(len(word) + 1))
    for letters, one in enumerate(text, 1):
        before, row = row, [letters]
        for place, other in enumerate(word, 1):
            row.append(min(before[place - 1] + (one != other), before[place] + 1, row[-1] + 1))
    return row[-1] <= near.distance


def _found(tokens: Iterator[tuple[bytes, int]], most: int) -> Found:
    names: list[bytes] = []
    numbers: list[int] = []
    for token, number in tokens:
        names.append(token)
        numbers.append(number)
        if len(names) == most:
            break
    edges = np.cumsum([0, *map(len, names)]).astype(np.int64)
    return Found(np.array(numbers, np.int64), edges, np.frombuffer(b"".join(names), np.uint8))


def _damaged() -> CorruptError:
    return CorruptError("the tokens of a full-text index are damaged")
