"""Functions on lists."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.expression.functions.signature import Function, Kind, function, listed, spread
from lancetable.expression.operators.compare import compare
from lancetable.expression.tree import Comparison


def _length(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.list_value_length(arguments[0]).cast(pa.uint64())


def _variable(values: pa.Array) -> pa.Array:
    """Return the lists with 64-bit offsets that cover exactly their own elements."""
    return values.cast(pa.large_list(values.type.value_type))


def _any_per_row(lists: pa.Array, hits: pa.Array) -> pa.Array:
    """Return for each list whether any of its flattened elements is a hit."""
    parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    flags = np.zeros(len(lists), np.bool_)
    flags[parents[pc.fill_null(hits, False).to_numpy(zero_copy_only=False)]] = True  # noqa: FBT003
    missing = pc.is_null(lists).to_numpy(zero_copy_only=False)
    return pa.array(flags, pa.bool_(), mask=missing)


def _contains(arguments: Sequence[pa.Array]) -> pa.Array:
    lists, wanted = _variable(arguments[0]), arguments[1]
    if isinstance(wanted, pa.Scalar):
        if not wanted.is_valid:
            return pa.nulls(len(lists), pa.bool_())
        return _any_per_row(lists, compare(Comparison.EQ, pc.list_flatten(lists), wanted))
    spread = wanted.take(pc.list_parent_indices(lists))
    found = _any_per_row(lists, compare(Comparison.EQ, pc.list_flatten(lists), spread))
    return pc.if_else(pc.is_valid(wanted), found, pa.scalar(None, pa.bool_()))


def _has_any(arguments: Sequence[pa.Array]) -> pa.Array:
    lists, wanted = arguments
    if isinstance(wanted, pa.Scalar) and wanted.is_valid:
        large = _variable(lists)
        hits = pc.is_in(pc.list_flatten(large), value_set=wanted.values, skip_nulls=False)
        return _any_per_row(large, hits)
    return _by_pair(lists, wanted, lambda have, want: any(each in have for each in want))


def _has_all(arguments: Sequence[pa.Array]) -> pa.Array:
    lists, wanted = arguments
    return _by_pair(lists, wanted, lambda have, want: all(each in have for each in want))


def _by_pair(
    lists: pa.Array, wanted: pa.Array, test: Callable[["_Members", Sequence[object]], bool]
) -> pa.Array:
    pairs = zip(listed(lists, len(lists)), listed(wanted, len(lists)), strict=True)
    answers = [
        None if have is None or want is None else test(_Members(have), want)  # type: ignore[arg-type]
        for have, want in pairs
    ]
    return pa.array(answers, pa.bool_())


class _Members:
    """The elements of one list; NaN is found like any other number."""

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[object]) -> None:
        self._values = values

    def __contains__(self, wanted: object) -> bool:
        if wanted != wanted:  # noqa: PLR0124 - only NaN differs from itself
            return any(each != each for each in self._values)  # noqa: PLR0124
        return any(each == wanted for each in self._values)


def _position(arguments: Sequence[pa.Array]) -> pa.Array:
    lists, wanted = arguments
    answers: list[int | None] = []
    for have, want in zip(listed(lists, len(lists)), listed(wanted, len(lists)), strict=True):
        place = None
        if isinstance(have, list):
            place = next((n for n, each in enumerate(have, 1) if each == want), None)
        answers.append(place)
    return pa.array(answers, pa.uint64())


def element(lists: pa.Array, index: pa.Array) -> pa.Array:
    """Return the element of each list at an index counted from one, or from -1 backwards."""
    large = _variable(lists)
    offsets = large.offsets.to_numpy()
    lengths = np.diff(offsets)
    if isinstance(index, pa.Scalar):
        # There is no element zero, nor one beyond the longest list.
        place = index.as_py() or 0
        wanted = np.full(len(large), place if abs(place) < 2**62 else 0, np.int64)
    else:
        wanted = pc.fill_null(index.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    inside = (wanted != 0) & (np.abs(wanted) <= lengths)
    inside &= pc.is_valid(large).to_numpy(zero_copy_only=False)
    places = np.where(wanted > 0, offsets[:-1] + wanted - 1, offsets[1:] + wanted)
    return large.values.take(pa.array(np.where(inside, places, 0), pa.int64(), mask=~inside))


def _element(arguments: Sequence[pa.Array]) -> pa.Array:
    return element(arguments[0], arguments[1])


def make_list(arguments: Sequence[pa.Array]) -> pa.Array:
    """Join the arguments of each row to one list."""
    rows = len(arguments[0])
    type_ = arguments[0].type
    arrays = [spread(each, rows) for each in arguments]
    joined = pa.concat_arrays(arrays) if arrays else pa.array([], type_)
    order = np.arange(len(arrays) * rows).reshape(len(arrays), rows).T.ravel()
    offsets = np.arange(0, (rows + 1) * len(arrays), len(arrays), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), joined.take(pa.array(order)))


def _to_string(arguments: Sequence[pa.Array]) -> pa.Array:
    lists, separator = arguments
    pairs = zip(listed(lists, len(lists)), listed(separator, len(lists)), strict=True)
    texts = [
        str(mark).join(str(each) for each in have if each is not None)
        if isinstance(have, list) and mark is not None
        else None
        for have, mark in pairs
    ]
    return pa.array(texts, pa.string())


_LENGTH = function(_length, Kind.LIST)
_CONTAINS = function(_contains, Kind.LIST, Kind.ANY)
_ANY = function(_has_any, Kind.LIST, Kind.LIST)
_ALL = function(_has_all, Kind.LIST, Kind.LIST)
_POSITION = function(_position, Kind.LIST, Kind.ANY)
_ELEMENT = function(_element, Kind.LIST, Kind.INTEGER)

LIST_FUNCTIONS: Mapping[str, Function] = {
    "array_length": _LENGTH,
    "list_length": _LENGTH,
    "cardinality": _LENGTH,
    "array_contains": _CONTAINS,
    "array_has": _CONTAINS,
    "list_contains": _CONTAINS,
    "list_has": _CONTAINS,
    "array_has_any": _ANY,
    "list_has_any": _ANY,
    "array_has_all": _ALL,
    "list_has_all": _ALL,
    "array_position": _POSITION,
    "list_position": _POSITION,
    "array_element": _ELEMENT,
    "list_element": _ELEMENT,
    "array_to_string": function(_to_string, Kind.LIST, Kind.TEXT),
    "make_array": function(make_list, Kind.SAME, least=0, variadic=True),
}
