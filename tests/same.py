"""Are two Arrow tables the same rows? Layout does not count, every bit of a value does.

Values under nulls, offsets, chunking and the choice of dictionary are layout. The sign of a zero
and the payload of a NaN are values. Extension types are compared by their storage.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

HIDDEN = {b"ARROW:extension:name", b"ARROW:extension:metadata"}


class DifferenceError(AssertionError):
    """Two tables differ; the message says where."""


def assert_same_table(actual: pa.Table, expected: pa.Table) -> None:
    """Fail at the first difference between two tables."""
    if actual.column_names != expected.column_names:
        raise DifferenceError(f"columns {actual.column_names}, expected {expected.column_names}")
    if actual.num_rows != expected.num_rows:
        raise DifferenceError(f"{actual.num_rows} rows, expected {expected.num_rows}")
    for name, found, wanted in zip(
        actual.column_names, actual.columns, expected.columns, strict=True
    ):
        assert_same_array(found, wanted, name)


def assert_same_array(actual: pa.Array, expected: pa.Array, place: str = "array") -> None:
    """Fail at the first difference between two arrays or chunked arrays."""
    if not same_type(actual.type, expected.type):
        raise DifferenceError(f"{place}: type {actual.type}, expected {expected.type}")
    if len(actual) != len(expected):
        raise DifferenceError(f"{place}: {len(actual)} values, expected {len(expected)}")
    left, right = _chunked(actual), _chunked(expected)
    ends = sorted({*_ends(left), *_ends(right)})
    for start, stop in zip([0, *ends], ends, strict=False):
        if stop > start:
            one, other = left.slice(start, stop - start), right.slice(start, stop - start)
            where = f"{place} from {start}" if start else place
            _compare(_single(one), _single(other), where)


def _chunked(array: pa.Array) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _ends(array: pa.ChunkedArray) -> list[int]:
    ends: list[int] = np.cumsum([len(chunk) for chunk in array.chunks], dtype=np.int64).tolist()
    return ends


def _single(array: pa.ChunkedArray) -> pa.Array:
    return next(chunk for chunk in array.chunks if len(chunk))


def plain(array: pa.Array) -> pa.Array:
    """Return an array of the storage type."""
    return plain(array.storage) if isinstance(array, pa.ExtensionArray) else array


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the storage type of an extension type, else the type itself."""
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def same_type(left: pa.DataType, right: pa.DataType) -> bool:
    """Say whether two types are the same; names and nullability of children count."""
    left, right = plain_type(left), plain_type(right)
    if left.id != right.id or left.num_fields != right.num_fields:
        return False
    if left.num_fields == 0 or pa.types.is_dictionary(left):
        return bool(left == right)
    if pa.types.is_fixed_size_list(left) and left.list_size != right.list_size:
        return False
    is_list = pa.types.is_list(left) or pa.types.is_large_list(left)
    for number in range(left.num_fields):
        one, other = left.field(number), right.field(number)
        is_named = not is_list and not pa.types.is_fixed_size_list(left)
        if is_named and not pa.types.is_map(left) and one.name != other.name:
            return False
        if not same_type(one.type, other.type):
            return False
    return True


def _compare(actual: pa.Array, expected: pa.Array, place: str) -> None:
    actual, expected = plain(actual), plain(expected)
    if len(actual) != len(expected):
        raise DifferenceError(f"{place}: {len(actual)} values, expected {len(expected)}")
    if pa.types.is_null(actual.type):
        return
    if pa.types.is_dictionary(actual.type):
        actual, expected = actual.dictionary_decode(), expected.dictionary_decode()
    missing, gaps = _nulls(actual), _nulls(expected)
    if not np.array_equal(missing, gaps):
        row = int(np.flatnonzero(missing != gaps)[0])
        raise DifferenceError(f"{place}[{row}]: null is {missing[row]}, expected {gaps[row]}")
    if missing.any():
        actual, expected = actual.drop_null(), expected.drop_null()
    _compare_values(actual, expected, place)


def _nulls(array: pa.Array) -> np.ndarray:
    found: np.ndarray = array.is_null().to_numpy(zero_copy_only=False)
    return found


def _compare_values(actual: pa.Array, expected: pa.Array, place: str) -> None:
    type_ = actual.type
    if pa.types.is_struct(type_):
        for number in range(type_.num_fields):
            name = f"{place}.{type_.field(number).name}"
            _compare(pc.struct_field(actual, [number]), pc.struct_field(expected, [number]), name)
        return
    if pa.types.is_map(type_):
        _compare_maps(actual, expected, place)
        return
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        lengths = pc.list_value_length(actual), pc.list_value_length(expected)
        _same_or_fail(*lengths, f"{place} lengths")
        _compare(actual.flatten(), expected.flatten(), f"{place}[]")
        return
    if pa.types.is_fixed_size_list(type_):
        _compare(actual.flatten(), expected.flatten(), f"{place}[]")
        return
    if pa.types.is_floating(type_):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type_.bit_width]
        actual, expected = actual.view(bits), expected.view(bits)
    _same_or_fail(actual, expected, place)


def _compare_maps(actual: pa.Array, expected: pa.Array, place: str) -> None:
    parts = []
    for array in (actual, expected):
        offsets = array.offsets.to_numpy()
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        lengths = pa.array(np.diff(offsets))
        parts.append((lengths, array.keys.slice(first, count), array.items.slice(first, count)))
    for name, one, other in zip(("lengths", "keys", "values"), *parts, strict=True):
        _compare(one, other, f"{place} {name}")


def _same_or_fail(actual: pa.Array, expected: pa.Array, place: str) -> None:
    if actual.equals(expected):
        return
    same = pc.equal(actual, expected).to_numpy(zero_copy_only=False)
    row = int(np.flatnonzero(~same.astype(bool))[0])
    found, wanted = str(actual[row])[:80], str(expected[row])[:80]
    raise DifferenceError(f"{place}: value {row} is {found}, expected {wanted}")
