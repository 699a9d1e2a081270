"""Convert key columns of any scalar type to a form that can be compared.

========================  ====================================
type                      form
========================  ====================================
whole numbers, times      int64; unsigned ones uint64
floating point            the bits of a double, one zero
text, bytes, decimals     bytes
========================  ====================================

A key with a null in it equals nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.commit.rules.rows import BLOCKS, MOST_EXACT
from lancetable.commit.transaction import BloomFilter, ExactKeys, KeyFilter
from lancetable.errors import InputError
from lancetable.format.arrays import Mask
from lancetable.format.encoding.kernels.ordering import ascending_order
from lancetable.format.encoding.kernels.probing import mark_keys
from lancetable.format.encoding.kernels.xxhash import Hashes, hash_binary, hash_words
from lancetable.format.schema.types import without_extensions

_types = pa.types
_KEYS_PER_BLOCK = 8
MOST_BLOCKS = 1 << 19
"""The largest filter has 16 MiB, for four million keys; more make it fuller, never wrong."""
_PROBABILITY = 0.00057
_MIX = np.uint64(0x9E3779B97F4A7C15)


class KeyCodes(NamedTuple):
    """A number for each key; equal keys have equal numbers."""

    values: Hashes
    is_valid: Mask | None
    """False where a part of the key is null; ``None`` when no part ever is."""
    is_exact: bool
    """True when different keys have different numbers."""


def comparable(array: pa.Array, name: str) -> pa.Array:
    """Return a key column in the form in which keys are compared.

    Raises:
        InputError: the column is of a type that cannot be a key.
    """
    array = without_extensions(array)
    type_ = array.type
    if _types.is_dictionary(type_):
        return comparable(array.dictionary_decode(), name)
    if _types.is_floating(type_):
        return _bits(array)
    if _types.is_integer(type_) or _types.is_boolean(type_):
        is_unsigned = _types.is_unsigned_integer(type_)
        return array.cast(pa.uint64() if is_unsigned else pa.int64())
    if _types.is_temporal(type_) and not _types.is_interval(type_):
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        return array.view(width).cast(pa.int64())
    if _types.is_decimal(type_):
        return array.view(pa.binary(type_.byte_width)).cast(pa.large_binary())
    if _types.is_fixed_size_binary(type_) or _is_bytes(type_):
        return array.cast(pa.large_binary())
    raise InputError(f"column {name!r} of type {type_} cannot be a key; use a scalar column")


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = (
        *(_types.is_string, _types.is_large_string, _types.is_string_view),
        *(_types.is_binary, _types.is_large_binary, _types.is_binary_view),
    )
    return any(is_kind(type_) for is_kind in kinds)


def _bits(array: pa.Array) -> pa.Array:
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if _types.is_float16(array.type):
        array = array.cast(pa.float32())
    values = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    return pa.array(values.view(np.int64), mask=mask)


def codes_of(columns: Sequence[pa.Array]) -> KeyCodes:
    """Return a number for each key; the columns are in comparable form."""
    is_valid = _validity(columns)
    if len(columns) == 1 and not _types.is_large_binary(columns[0].type):
        return KeyCodes(_numbers(columns[0]), is_valid, is_exact=True)
    total = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        total = (total + _MIX) * _MIX ^ _hashes(column)
    return KeyCodes(total, is_valid, is_exact=False)


def _validity(columns: Sequence[pa.Array]) -> Mask | None:
    nullable = [column.is_valid() for column in columns if column.null_count]
    if not nullable:
        return None
    masks = [np.asarray(valid.to_numpy(zero_copy_only=False)) for valid in nullable]
    return np.asarray(np.logical_and.reduce(masks), np.bool_)


def _numbers(column: pa.Array) -> Hashes:
    if column.null_count:
        column = column.fill_null(0)
    values: Hashes = column.to_numpy(zero_copy_only=False).view(np.uint64)
    return values


def _hashes(column: pa.Array) -> Hashes:
    if _types.is_large_binary(column.type):
        return hash_binary(column)
    return hash_words(_numbers(column))


def are_equal(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Mask:
    """Say for each row whether the keys of two sides, in comparable form, are the same."""
    masks = [
        pc.fill_null(pc.equal(one, other), False).to_numpy(zero_copy_only=False)  # noqa: FBT003
        for one, other in zip(left, right, strict=True)
    ]
    return np.asarray(np.logical_and.reduce(masks), np.bool_)


def has_repeats(ascending: Hashes) -> bool:
    """Say whether ascending numbers contain a duplicate."""
    return bool((ascending[1:] == ascending[:-1]).any())


def key_hashes(columns: Sequence[pa.Array]) -> Hashes:
    """Return the hashes of keys without nulls, as filters of inserted keys hold them."""
    if len(columns) == 1:
        return _hashes(columns[0])
    parts = [_as_bytes(column) for column in columns]
    end = pa.repeat(pa.scalar(b"", pa.large_binary()), len(parts[0]))
    separator = pa.scalar(b"\0", pa.large_binary())
    return hash_binary(pc.binary_join_element_wise(*parts, end, separator))


def _as_bytes(column: pa.Array) -> pa.Array:
    if _types.is_large_binary(column.type):
        return column
    return column.view(pa.binary(8)).cast(pa.large_binary())


class InsertedKeys:
    """Collects the hashes of inserted keys: themselves while they are few, else as a bloom filter.

    The filter begins with room for all rows there are, up to a limit beyond which it only gets
    fuller, and is folded to the size that the keys need in the end. When it is not known how many
    there will be, all hashes are kept, to be added to another collection.
    """

    def __init__(self, most: int | None) -> None:
        self._room = None if most is None else min(_blocks_for(most), MOST_BLOCKS)
        self._few: list[Hashes] = []
        self._words: npt.NDArray[np.uint32] | None = None
        self.count = 0

    def add(self, hashes: Hashes) -> None:
        """Take keys in, none of which was there before."""
        found = hashes[ascending_order(hashes)]
        if len(found):
            found = found[np.concatenate(([True], found[1:] != found[:-1]))]
        self.count += len(found)
        self._few.append(found)
        if self._room is not None and self.count > MOST_EXACT:
            if self._words is None:
                self._words = np.zeros(self._room * 8, np.uint32)
            while self._few:
                mark_keys(self._words, self._few.pop())

    def hashes(self) -> Hashes:
        """Return the hashes that did not become bits of the filter."""
        return np.concatenate(self._few) if self._few else np.empty(0, np.uint64)

    def filter(self, field_ids: Sequence[int]) -> KeyFilter:
        """Return the filter of all keys."""
        if self._words is None:
            return KeyFilter(tuple(field_ids), ExactKeys(frozenset(self.hashes().tolist())))
        words = self._words
        # The block of a key is given by the first digits of its hash, so neighbours can be joined.
        while len(words) // 8 > _blocks_for(self.count):
            pairs = words.reshape(-1, 2, 8)
            words = (pairs[:, 0] | pairs[:, 1]).ravel()
        return KeyFilter(tuple(field_ids), _bloom(words))


def _blocks_for(keys: int) -> int:
    blocks = BLOCKS
    while blocks * _KEYS_PER_BLOCK < keys:
        blocks *= 2
    return blocks


def _bloom(words: npt.NDArray[np.uint32]) -> BloomFilter:
    bitmap = words.astype("<u4").tobytes()
    return BloomFilter(bitmap, 8 * len(bitmap), _KEYS_PER_BLOCK * len(words) // 8, _PROBABILITY)
