"""Search arrays in ascending order by halving, in place of comparing every value.

A part of a predicate is looked for as single values or as one range of values, when that says all
of it. Numbers are compared as integers, floats as those of their total order in which the two zeros
are equal; texts and bytes are compared byte by byte. Other types and parts are not for this module.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.expression import (
    And,
    Call,
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
)
from lancetable.expression.operators.compare import total_order
from lancetable.index.bounds import prefix_of

Key: TypeAlias = int | bytes
Places: TypeAlias = npt.NDArray[np.int64]


class Points(NamedTuple):
    """Values that are looked for, each once, in ascending order."""

    keys: "Keys"


class Span(NamedTuple):
    """A range of values: from ``low`` up to but not including ``high``; None has no bound."""

    low: Key | None
    high: Key | None


Wanted: TypeAlias = Points | Span


class Numbers:
    """Numbers as integers in ascending order."""

    __slots__ = ("values",)

    def __init__(self, values: npt.NDArray[np.integer[Any]]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_ascending(self) -> bool:
        """Whether the values are in order."""
        return bool((self.values[1:] >= self.values[:-1]).all())

    def below(self, key: Key) -> int:
        """Return how many values are less than one."""
        return int(self.values.searchsorted(self.values.dtype.type(key)))

    def places(self, wanted: "Keys") -> tuple[Places, Places]:
        """Return where runs of some values start and stop."""
        assert isinstance(wanted, Numbers)
        values = self.values
        return values.searchsorted(wanted.values), values.searchsorted(wanted.values, "right")


class Texts:
    """Texts or bytes in ascending order."""

    __slots__ = ("_array", "_data", "_offsets")

    def __init__(self, array: pa.Array) -> None:
        width = np.int64 if _is_large(array.type) else np.int32
        _, offsets, data = array.buffers()
        self._array = array
        self._offsets = np.frombuffer(offsets, width)[array.offset :] if len(array) else np.empty(0)
        self._data = memoryview(data or b"")

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, place: int) -> bytes:
        offsets = self._offsets
        return bytes(self._data[offsets[place] : offsets[place + 1]])

    @property
    def is_ascending(self) -> bool:
        """Whether the values are in order."""
        array = self._array
        ordered = pc.less_equal(array.slice(0, max(len(array) - 1, 0)), array.slice(1))
        return pc.all(ordered).as_py() is not False

    def below(self, key: Key) -> int:
        """Return how many values are less than one."""
        return bisect_left(self, key)

    def places(self, wanted: "Keys") -> tuple[Places, Places]:
        """Return where runs of some values start and stop."""
        assert isinstance(wanted, Texts)
        starts, stops = [], []
        for key in (wanted[place] for place in range(len(wanted))):
            starts.append(bisect_left(self, key))
            stops.append(bisect_right(self, key, starts[-1]))
        return np.array(starts, np.int64), np.array(stops, np.int64)


Keys: TypeAlias = Numbers | Texts


class Ordered:
    """An array in ascending order, its nulls first."""

    __slots__ = ("keys", "nulls")

    def __init__(self, keys: Keys, nulls: int) -> None:
        self.keys = keys
        self.nulls = nulls

    @classmethod
    def of(cls, values: pa.Array) -> Self | None:
        """Return an array to search; None when it is of another type or not in order."""
        nulls = values.null_count
        if nulls and values.slice(0, nulls).null_count != nulls:
            return None
        keys = _keys(values.slice(nulls))
        return cls(keys, nulls) if keys is not None and keys.is_ascending else None

    def below(self, key: Key | None) -> int:
        """Return how many values are less than one, nulls included; all for None."""
        return self.nulls + (len(self.keys) if key is None else self.keys.below(key))

    def not_below(self, key: Key | None) -> int:
        """Return the place of the first value that is not less than one; for None of the first."""
        return self.nulls + (0 if key is None else self.keys.below(key))

    def places(self, wanted: Wanted) -> tuple[Places, Places]:
        """Return where runs of the wanted values start and stop."""
        if isinstance(wanted, Points):
            starts, stops = self.keys.places(wanted.keys)
            return starts + self.nulls, stops + self.nulls
        start, stop = self.not_below(wanted.low), self.below(wanted.high)
        return np.array([start]), np.array([max(start, stop)])


def spread_places(starts: Places, stops: Places) -> Places:
    """Return all places of some runs."""
    if len(starts) == 1:
        return np.arange(starts[0], stops[0])
    sizes = stops - starts
    firsts = np.cumsum(sizes) - sizes
    places: Places = np.arange(int(sizes.sum())) + np.repeat(starts - firsts, sizes)
    return places


def wanted_of(part: Expression, type_: pa.DataType) -> Wanted | None:
    """Return the values for which a part is true; None when they are no points and no range."""
    match part:
        case And(operands):
            each = [wanted_of(one, type_) for one in operands]
            spans = [one for one in each if isinstance(one, Span)]
            return _shared(spans) if len(spans) == len(each) else None
        case Compare(op, Column(), Literal(scalar)) if scalar.is_valid and scalar.type == type_:
            return _compared(op, scalar)
        case In(Column(), _, False, values) if values is not None and values.type == type_:
            keys = _keys(_distinct(values))
            if isinstance(keys, Numbers):
                keys = Numbers(np.unique(keys.values))
            return None if keys is None else Points(keys)
        case Call("starts_with", _) if _is_bytes(type_):
            return _prefixed(prefix_of(part))
        case Like(Column(), Literal() as pattern) if _is_bytes(type_):
            prefix = prefix_of(part)
            return _prefixed(prefix) if pattern.value == f"{prefix}%" else None
        case _:
            return None


def _compared(op: Comparison, scalar: pa.Scalar) -> Wanted | None:
    key = None if op in {Comparison.NE, Comparison.DISTINCT} else _key(scalar)
    if key is None:
        return None
    after = key + b"\0" if isinstance(key, bytes) else _next(key, scalar.type)
    match op:
        case Comparison.LT:
            return Span(None, key)
        case Comparison.LE:
            return Span(None, after)
        case Comparison.GT:
            return Points(Numbers(np.empty(0, np.int64))) if after is None else Span(after, None)
        case _:
            return Span(key, None if op is Comparison.GE else after)


def _key(scalar: pa.Scalar) -> Key | None:
    """Return a constant as it is compared; None for other types."""
    type_ = scalar.type
    if pt.is_integer(type_):
        key: int = scalar.as_py()
        return key
    keys = _keys(pa.repeat(scalar, 1))
    if keys is None:
        return None
    return keys[0] if isinstance(keys, Texts) else int(keys.values[0])


def _next(key: int, type_: pa.DataType) -> int | None:
    """Return what comes next in order; None behind the largest number of a type."""
    bits = type_.bit_width - (0 if pt.is_unsigned_integer(type_) else 1)
    return key + 1 if key < (1 << bits) - 1 else None


def _shared(spans: Sequence[Span]) -> Span:
    low, high = spans[0]
    for one in spans[1:]:
        if one.low is not None and (low is None or one.low > low):  # type: ignore[operator]
            low = one.low
        if one.high is not None and (high is None or one.high < high):  # type: ignore[operator]
            high = one.high
    return Span(low, high)


def _prefixed(prefix: str) -> Span | None:
    start = prefix.encode()
    return Span(start, _after(start)) if start else None


def _after(prefix: bytes) -> bytes:
    """Return the least value that is larger than all with a prefix in UTF-8."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _distinct(values: pa.Array) -> pa.Array:
    """Return values without nulls; texts each once and in order."""
    valid = values.drop_null() if values.null_count else values
    if not _is_bytes(values.type):
        return valid
    unique = pc.unique(valid)
    return unique.take(pc.sort_indices(unique))


def _keys(values: pa.Array) -> Keys | None:
    """Return values without nulls as what is compared; None for other types."""
    type_ = values.type
    if _is_bytes(type_):
        return Texts(values)
    if pt.is_floating(type_) and not pt.is_float16(type_):
        return Numbers(_plain(total_order(values), values.type.bit_width // 8, "i"))
    if pt.is_integer(type_) or pt.is_temporal(type_):
        kind = "u" if pt.is_unsigned_integer(type_) else "i"
        return Numbers(_plain(values, type_.bit_width // 8, kind))
    return None


def _plain(values: pa.Array, width: int, kind: str) -> npt.NDArray[np.integer[Any]]:
    data = values.buffers()[1]
    if data is None or not len(values):
        return np.empty(0, f"{kind}{width}")
    return np.frombuffer(data, f"{kind}{width}", len(values), values.offset * width)


def _is_bytes(type_: pa.DataType) -> bool:
    return _is_large(type_) or pt.is_string(type_) or pt.is_binary(type_)


def _is_large(type_: pa.DataType) -> bool:
    return bool(pt.is_large_string(type_) or pt.is_large_binary(type_))
