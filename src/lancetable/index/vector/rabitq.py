"""Codes of rotated vectors: a sign and some more bits for each dimension.

What a vector lies off its centroid is rotated. A code ``u`` of a dimension has the sign as its
highest bit and stands for ``u - shift``; two factors for each vector turn the product of its code
and a rotated query into a distance. Files hold signs and further bits in blocks made for wide
registers; here each dimension is a number of its own.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.records import SearchRecord
from lancetable.index.vector.distance import Floats
from lancetable.index.vector.storage import ROTATED, WIDE_ROTATED, Bytes, Codes, Query, byte_rows
from lancetable.index.vector.types import METRICS, Matrix

_SIGNS, _MORE = "_rabit_codes", "__blocked_ex_codes"
_ORDER = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])
"""The vectors whose low halves come one after the other; 16 more are in the high halves."""
_TOGETHER = 32
_BLOCK = 64
_ROUNDS = 4
_SCALES = tuple(np.linspace(0.9, 2.7, 13).astype(np.float32))
"""How much finer the steps are than those up to the largest number."""


class Rotation:
    """Signs and Walsh-Hadamard transforms in turn, or a matrix."""

    def __init__(self, dim: int, signs: Bytes | None, matrix: Floats | None = None) -> None:
        self.dim = dim
        self.signs = signs
        self._matrix = matrix

    def is_like(self, other: "Rotation") -> bool:
        """Return whether another one has the same signs."""
        if self.signs is None or other.signs is None:
            return False
        return np.array_equal(self.signs, other.signs)

    def __call__(self, vectors: Matrix) -> Floats:
        """Return rotated vectors."""
        if self._matrix is not None or self.signs is None:
            turned: Floats = vectors.astype(np.float32) @ np.asarray(self._matrix).T
            return turned
        found = np.array(vectors, np.float32)
        flips = np.unpackbits(self.signs, bitorder="little").reshape(_ROUNDS, self.dim) * -2.0 + 1
        size = 1 << (self.dim.bit_length() - 1)
        for turn in range(_ROUNDS):
            found *= flips[turn].astype(np.float32)
            first = self.dim - size if turn % 2 else 0
            part = found[:, first : first + size]
            found[:, first : first + size] = _hadamard(part)
            if size != self.dim:
                low, high = found[:, : self.dim // 2], found[:, self.dim // 2 :]
                found = np.concatenate([low + high, low - high], axis=1)
        return found if size == self.dim else found / np.float32(4)


def _hadamard(vectors: Floats) -> Floats:
    count, size = vectors.shape
    found, step = vectors, 1
    while step < size:
        pairs = found.reshape(count, size // (2 * step), 2, step)
        found = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        step *= 2
    scaled: Floats = found.reshape(count, size) * np.float32(1 / math.sqrt(size))
    return scaled


class Rotated:
    """Codes of rotated vectors."""

    query_dtype = np.dtype(np.float32)

    def __init__(
        self, rotation: Rotation, metric: str, bits: int, *, is_packed: bool, of_residual: bool
    ) -> None:
        self.rotation = rotation
        self.dim = rotation.dim
        self.metric = "dot" if metric == "dot" else "l2"
        self._is_packed = is_packed
        self._of_residual = of_residual
        self.is_current = is_packed and not of_residual
        self.bits = 1 if of_residual else bits
        more = self.bits - 1
        self.shift = np.array([2**more - 0.5], np.float32)
        ending = "_ex" if more else ""
        self.columns: tuple[str, ...] = (
            _SIGNS,
            *((_MORE,) if more else ()),
            f"__add_factors{ending}",
            f"__scale_factors{ending}",
        )
        # Older files multiply by this, and compare with what the query lies off the centroid.
        self._residual_scale = 2 / math.sqrt(self.dim * bits)

    def describe(self, record: SearchRecord) -> int:
        """Fill what compiled functions have to know."""
        record.kind = ROTATED if self.bits <= 8 else WIDE_ROTATED
        record.metric = METRICS.index(self.metric)
        record.parameters = address(self.shift)
        return 0

    def load(self, columns: Sequence[pa.Array], centroid: Floats, *, by_row: bool) -> Codes:
        """Return the codes of a partition, one number for each dimension."""
        packed = byte_rows(columns[0], self.dim // 8)
        signs = unpack_signs(packed) if self._is_packed else packed
        codes: Matrix = np.unpackbits(signs, axis=1, bitorder="little")
        more = self.bits - 1
        if more:
            blocks = byte_rows(columns[1], 8 * more * -(-self.dim // _BLOCK))
            wide: Matrix = codes.astype(np.uint16 if more == 8 else np.uint8)
            codes = (wide << more) | unpack_more(blocks, more)[:, : self.dim]
        add, scale = (_floats(one) for one in columns[-2:])
        if self._of_residual:
            scale = scale * np.float32(self._residual_scale)
            turned = self.rotation(centroid[None, :])[0]
            add = add - scale * ((codes.astype(np.float32) - self.shift) @ turned)
        return Codes(np.ascontiguousarray(codes), np.stack([add, scale]).astype(np.float32))

    def estimates(self, codes: Codes, query: Query, centroid: Floats, *, by_row: bool) -> Floats:
        """Return about how far vectors are from a query."""
        assert codes.factors is not None
        assert query.rotated is not None
        add, scale = codes.factors
        near = codes.values.astype(np.float32) @ query.rotated
        near -= self.shift[0] * query.rotated.sum()
        found: Floats
        if self.metric == "dot":
            found = 1 - (query.vector @ centroid) * (2 - add) + scale * near
        else:
            off = query.vector - centroid
            found = add + off @ off + scale * near
        return found

    def rotate(self, queries: Matrix) -> Floats:
        """Return rotated queries."""
        return self.rotation(queries)


def unpack_signs(packed: Bytes) -> Bytes:
    """Return the bytes of signs by rows: blocks of 32 vectors, the rest by bytes of the code."""
    count, width = packed.shape
    whole = count - count % _TOGETHER
    found = np.empty((count, width), np.uint8)
    data = packed.reshape(-1)
    blocks = data[: whole * width].reshape(-1, width, 2, _TOGETHER // 2)
    low, high = blocks & 15, blocks >> 4
    by_row = found[:whole].reshape(-1, _TOGETHER, width)
    for first, halves in ((0, low), (_TOGETHER // 2, high)):
        # The first half of the bytes has the low digits of a byte of the code, then the high ones.
        whole_bytes = halves[:, :, 0] | halves[:, :, 1] << 4
        by_row[:, first + _ORDER] = whole_bytes.transpose(0, 2, 1)
    found[whole:] = data[whole * width :].reshape(width, count - whole).T
    return found


def pack_signs(by_row: Bytes) -> Bytes:
    """Return the bytes of signs as files have them."""
    count, width = by_row.shape
    whole = count - count % _TOGETHER
    found = np.empty(count * width, np.uint8)
    rows = by_row[:whole].reshape(-1, 2, _TOGETHER // 2, width)[:, :, _ORDER]
    first, second = rows[:, 0], rows[:, 1]
    halves = np.stack([first & 15 | (second & 15) << 4, first >> 4 | second >> 4 << 4], axis=1)
    found[: whole * width] = halves.transpose(0, 3, 1, 2).reshape(-1)
    found[whole * width :] = by_row[whole:].T.reshape(-1)
    return found.reshape(count, width)


def unpack_more(blocks: Bytes, bits: int) -> npt.NDArray[Any]:
    """Return the further bits of each dimension, padded to whole blocks of 64."""
    found: npt.NDArray[Any] = _UNPACK[bits](blocks.reshape(-1, 8 * bits))
    return found.reshape(len(blocks), -1)


def pack_more(codes: npt.NDArray[Any], bits: int) -> Bytes:
    """Return the further bits of dimensions as files have them; every bit has its place."""
    blocks = -(-codes.shape[1] // _BLOCK)
    padded = np.zeros((len(codes), blocks * _BLOCK), np.uint8)
    padded[:, : codes.shape[1]] = codes
    spread = np.unpackbits(padded.reshape(-1, _BLOCK, 1), axis=2, bitorder="little")[:, :, :bits]
    placed = spread.reshape(-1, _BLOCK * bits)[:, _places(bits)]
    return np.packbits(placed, axis=1, bitorder="little").reshape(len(codes), -1)


@cache
def _places(bits: int) -> npt.NDArray[np.int64]:
    """Return which bit of the numbers each bit of a block is."""
    count = _BLOCK * bits
    alone = np.packbits(np.eye(count, dtype=np.uint8), axis=1, bitorder="little")
    numbers = unpack_more(alone, bits).astype(np.uint8)
    found = np.unpackbits(numbers[:, :, None], axis=2, bitorder="little")[:, :, :bits]
    places: npt.NDArray[np.int64] = found.reshape(count, count).argmax(axis=1)
    return places


def quantized(rotated: Floats, bits: int) -> npt.NDArray[np.uint16]:
    """Return the codes of rotated vectors: those whose direction is nearest among some scales."""
    most = (1 << (bits - 1)) - 1
    sizes = np.abs(rotated)
    largest = np.maximum(sizes.max(axis=1, keepdims=True), np.float32(1e-30))
    best = np.full(len(rotated), -1, np.float32)
    chosen = np.zeros(rotated.shape, np.uint16)
    for scale in _SCALES if most else _SCALES[:1]:
        steps = np.minimum(np.floor(sizes * ((most + 1) * scale / largest)), most)
        middle = (steps + 0.5).astype(np.float32)
        along = np.einsum("ij,ij->i", sizes, middle)
        quality = along / np.sqrt(np.einsum("ij,ij->i", middle, middle))
        is_better = quality > best
        best[is_better] = quality[is_better]
        chosen[is_better] = steps[is_better]
    is_positive = rotated > 0
    return np.where(is_positive, most + 1 + chosen, most - chosen).astype(np.uint16)


def _one(data: Bytes) -> Bytes:
    return np.unpackbits(data, axis=1, bitorder="little")


def _two(data: Bytes) -> Bytes:
    return np.concatenate([data >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)


def _four(data: Bytes) -> Bytes:
    groups = data.reshape(-1, 4, 1, 8)
    return np.concatenate([groups & 15, groups >> 4], axis=2).reshape(-1, _BLOCK)


def _low_of_five(data: Bytes) -> Bytes:
    groups = data.reshape(-1, 2, 1, 16)
    return np.concatenate([groups & 15, groups >> 4], axis=2).reshape(-1, _BLOCK)


def _six(data: Bytes) -> Bytes:
    top = data.reshape(-1, 3, 16) >> 6
    last = top[:, 0] | top[:, 1] << 2 | top[:, 2] << 4
    return np.concatenate([data & 63, last], axis=1)


def _with_top(low: Bytes, top: Bytes, bits: int) -> Bytes:
    """Join low bits with one more: that of dimension k at place (k mod 8) * 8 + k div 8."""
    spread = np.unpackbits(top, axis=1, bitorder="little").reshape(-1, 8, 8)
    found: Bytes = low | (spread.transpose(0, 2, 1).reshape(-1, _BLOCK) << bits).astype(np.uint8)
    return found


_UNPACK: Mapping[int, Any] = {
    1: _one,
    2: _two,
    3: lambda data: _with_top(_two(data[:, :16]), data[:, 16:], 2),
    4: _four,
    5: lambda data: _with_top(_low_of_five(data[:, :32]), data[:, 32:], 4),
    6: _six,
    7: lambda data: _with_top(_six(data[:, :48]), data[:, 48:], 6),
    8: lambda data: data,
}


def _floats(column: pa.Array) -> Floats:
    if column.type != pa.float32() or column.null_count:
        raise CorruptError(f"factors are of type {column.type}, expected float without nulls")
    found: Floats = column.to_numpy()
    return found
