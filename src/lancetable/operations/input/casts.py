"""Cast arrays to other types without loss.

A step is planned from the two types alone, and then run on every array. Scalars follow the rules of
``is_lossless``; lists, structs and maps are taken apart, and put together again only when something
inside them changes. A step whose result depends on the values (units of time, lengths of lists)
fails on the first value that would be lost.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError
from lancetable.format.schema.types import relabel, storage_type, without_extensions
from lancetable.operations.results import CastNote

Step: TypeAlias = Callable[[pa.Array], pa.Array]
_MANTISSA = {16: 11, 32: 24, 64: 53}
_types = pa.types


class Mismatch(NamedTuple):
    """A column that does not fit, and why."""

    column: str
    reason: str


class CastPlanner:
    """Plans the steps of one schema, collecting what was cast and what cannot be."""

    def __init__(self) -> None:
        self.notes: list[CastNote] = []
        self.mismatches: list[Mismatch] = []

    def plan(self, path: str, source: pa.DataType, target: pa.DataType) -> Step | None:
        """Return how arrays become the target type, ``None`` when they are or cannot be."""
        if source == target:
            return None
        bare = storage_type(source)
        if bare != source:
            return _then(without_extensions, self.plan(path, bare, target))
        for kind in (self._plan_wrapped, self._plan_nested, self._plan_scalar):
            is_planned, step = kind(path, source, target)
            if is_planned:
                return step
        reason = f"has type {target} in the table, the data has {source}"
        self.mismatches.append(Mismatch(path, reason))
        return None

    def _plan_wrapped(
        self, path: str, source: pa.DataType, target: pa.DataType
    ) -> tuple[bool, Step | None]:
        """Plan the cast of the values inside runs and dictionaries."""
        if _types.is_null(source):
            self.notes.append(CastNote(path, source, target))
            return True, lambda array: pa.nulls(len(array), target)
        if _types.is_run_end_encoded(source):
            self.notes.append(CastNote(path, source, target))
            return True, _then(pc.run_end_decode, self._quietly(path, source.value_type, target))
        if _types.is_dictionary(target):
            return self._plan_dictionary(path, source, target)
        if _types.is_dictionary(source):
            self.notes.append(CastNote(path, source, target))
            inner = self._quietly(path, source.value_type, target)
            return True, _then(lambda array: array.dictionary_decode(), inner)
        return False, None

    def _quietly(self, path: str, source: pa.DataType, target: pa.DataType) -> Step | None:
        """Plan a further step of a cast that is noted already."""
        known = len(self.notes)
        step = self.plan(path, source, target)
        del self.notes[known:]
        return step

    def _plan_dictionary(
        self, path: str, source: pa.DataType, target: pa.DataType
    ) -> tuple[bool, Step | None]:
        values = source.value_type if _types.is_dictionary(source) else source
        self.notes.append(CastNote(path, source, target))
        inner = self._quietly(path, values, target.value_type)

        def encode(array: pa.Array) -> pa.Array:
            if _types.is_dictionary(array.type):
                array = array.dictionary_decode()
            encoded = (inner(array) if inner else array).dictionary_encode()
            return _checked(path, encoded, target)

        return True, encode

    def _plan_nested(
        self, path: str, source: pa.DataType, target: pa.DataType
    ) -> tuple[bool, Step | None]:
        if _types.is_struct(target) and _types.is_struct(source):
            return True, self._plan_struct(path, source, target)
        if _types.is_map(target) and _types.is_map(source):
            return True, self._plan_map(path, source, target)
        if _is_list(target) and _is_list(source):
            return True, self._plan_list(path, source, target)
        return False, None

    def _plan_struct(self, path: str, source: pa.DataType, target: pa.DataType) -> Step | None:
        places = {source.field(place).name: place for place in range(source.num_fields)}
        for name in places:
            if target.get_field_index(name) < 0:
                self.mismatches.append(Mismatch(f"{path}.{name}", "is not in the table"))
        picks: list[tuple[int | None, Step | None, pa.Field]] = []
        for child in target:
            place = places.get(child.name)
            step = None
            if place is not None:
                step = self.plan(f"{path}.{child.name}", source.field(place).type, child.type)
            elif not child.nullable:
                reason = "must not be null and is not in the data"
                self.mismatches.append(Mismatch(f"{path}.{child.name}", reason))
            picks.append((place, step, child))
        is_same = len(places) == len(picks) and all(
            place == number and step is None for number, (place, step, _) in enumerate(picks)
        )
        if is_same:
            return None

        def rebuild(array: pa.Array) -> pa.Array:
            parts = array.flatten() if array.null_count else None
            children = []
            for place, step, child in picks:
                if place is None:
                    children.append(pa.nulls(len(array), child.type))
                    continue
                values = array.field(place) if parts is None else parts[place]
                children.append(as_type(step(values) if step else values, child.type))
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)

        return rebuild

    def _plan_map(self, path: str, source: pa.DataType, target: pa.DataType) -> Step | None:
        key = self.plan(f"{path}.key", source.key_type, target.key_type)
        value = self.plan(f"{path}.value", source.item_type, target.item_type)
        if key is None and value is None:
            return None
        fields = [pa.field("key", target.key_type, nullable=False), target.item_field]
        entries = pa.struct([source.key_field, source.item_field])

        def rebuild(array: pa.Array) -> pa.Array:
            listed = array.cast(pa.list_(entries))
            flat = listed.flatten()
            parts = [flat.field(0), flat.field(1)]
            for place, step in ((0, key), (1, value)):
                parts[place] = as_type(
                    step(parts[place]) if step else parts[place], fields[place].type
                )
            return _listed(listed, pa.StructArray.from_arrays(parts, fields=fields), target)

        return rebuild

    def _plan_list(self, path: str, source: pa.DataType, target: pa.DataType) -> Step | None:
        is_fixed = _types.is_fixed_size_list(target)
        inner = self.plan(f"{path}.{target.value_field.name}", source.value_type, target.value_type)
        has_same_frame = source.id == target.id and (
            not is_fixed or source.list_size == target.list_size
        )
        if inner is None and has_same_frame:
            return None
        if is_fixed and _types.is_fixed_size_list(source) and not has_same_frame:
            reason = f"has type {target} in the table, the data has {source}"
            self.mismatches.append(Mismatch(path, reason))
            return None
        if not has_same_frame:
            self.notes.append(CastNote(path, source, target))

        def rebuild(array: pa.Array) -> pa.Array:
            values = array.flatten()
            values = as_type(inner(values) if inner else values, target.value_type)
            if is_fixed:
                return _fixed(path, array, values, target)
            return _listed(array, values, target)

        return rebuild

    def _plan_scalar(
        self, path: str, source: pa.DataType, target: pa.DataType
    ) -> tuple[bool, Step | None]:
        if not is_lossless(source, target):
            return False, None
        self.notes.append(CastNote(path, source, target))
        return True, lambda array: _checked(path, array, target)


def _then(first: Step, second: Step | None) -> Step:
    if second is None:
        return first
    return lambda array: second(first(array))


def as_type(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return an array of the same layout under exactly this type."""
    return array if array.type == type_ else relabel(array, type_)


def _checked(path: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return array.cast(target)
    except pa.ArrowInvalid as cause:
        raise InputError(
            f"column {path!r} cannot be stored as {target} without loss: {cause}"
        ) from cause


def _lengths(array: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    found = pc.fill_null(pc.list_value_length(array), 0)
    return np.asarray(found.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def _listed(array: pa.Array, values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return lists as long as those of ``array``, of the values that they hold all together."""
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(_lengths(array), out=offsets[1:])
    width = np.int64 if _types.is_large_list(target) else np.int32
    if width is np.int32 and offsets[-1] > np.iinfo(np.int32).max:
        raise InputError(f"a batch holds too many list items for {target}; use smaller batches")
    validity = array.is_valid().buffers()[1] if array.null_count else None
    buffers = [validity, pa.py_buffer(offsets.astype(width))]
    return pa.Array.from_buffers(target, len(array), buffers, children=[values])


def _fixed(path: str, array: pa.Array, values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return lists of one length; a list of another length has no place."""
    size = target.list_size
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    lengths = _lengths(array)
    wrong = np.flatnonzero(valid & (lengths != size))
    if len(wrong):
        raise InputError(
            f"column {path!r} takes lists of {size} values, row {wrong[0]} of a batch has "
            f"{lengths[wrong[0]]}"
        )
    if array.null_count:
        places = np.full(len(array) * size, -1, np.int64)
        places[np.repeat(valid, size)] = np.arange(len(values))
        values = values.take(pa.array(places, mask=places < 0))
    mask = array.is_null() if array.null_count else None
    return pa.FixedSizeListArray.from_arrays(values, type=target, mask=mask)


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        _types.is_list(type_)
        or _types.is_large_list(type_)
        or _types.is_fixed_size_list(type_)
        or _types.is_list_view(type_)
        or _types.is_large_list_view(type_)
    )


def is_lossless(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether every value of a scalar type has its equal in another.

    Units of time count as equal: each value is checked when it is cast.
    """
    return any(rule(source, target) for rule in _RULES)


def _bits(type_: pa.DataType) -> int:
    """Return how many binary digits the largest number of an integer type has."""
    return int(type_.bit_width) - bool(_types.is_signed_integer(type_))


def _is_wider_number(source: pa.DataType, target: pa.DataType) -> bool:
    if not (_types.is_integer(source) or _types.is_floating(source)):
        return False
    if _types.is_floating(target):
        bits = _MANTISSA[source.bit_width] if _types.is_floating(source) else _bits(source)
        return bits <= _MANTISSA[target.bit_width]
    if not _types.is_integer(source):
        return False
    if _types.is_integer(target):
        is_signed = bool(_types.is_signed_integer(source))
        keeps_sign = not is_signed or bool(_types.is_signed_integer(target))
        return keeps_sign and _bits(source) <= _bits(target)
    if _types.is_decimal(target):
        digits = len(str(2 ** _bits(source)))
        return bool(target.scale >= 0 and digits <= target.precision - target.scale)
    return False


def _is_wider_decimal(source: pa.DataType, target: pa.DataType) -> bool:
    if not (_types.is_decimal(source) and _types.is_decimal(target)):
        return False
    whole = source.precision - source.scale
    return bool(target.scale >= source.scale and target.precision - target.scale >= whole)


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        _types.is_string(type_) or _types.is_large_string(type_) or _types.is_string_view(type_)
    )


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(
        _types.is_binary(type_) or _types.is_large_binary(type_) or _types.is_binary_view(type_)
    )


def _is_same_bytes(source: pa.DataType, target: pa.DataType) -> bool:
    if _is_text(source):
        return _is_text(target)
    return _is_bytes(target) and (_is_bytes(source) or bool(_types.is_fixed_size_binary(source)))


def _is_same_time(source: pa.DataType, target: pa.DataType) -> bool:
    if _types.is_timestamp(target):
        if _types.is_date(source):
            return target.tz is None
        return bool(_types.is_timestamp(source)) and (source.tz is None) == (target.tz is None)
    return any(
        is_kind(source) and is_kind(target)
        for is_kind in (_types.is_date, _types.is_time, _types.is_duration)
    )


_RULES = (_is_wider_number, _is_wider_decimal, _is_same_bytes, _is_same_time)
