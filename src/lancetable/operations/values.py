"""Values of Python, which have no Arrow type, in the type of the column they are meant for.

Arrow itself would cut fractions off, drop zones and forget the keys of dicts that a struct does not
name. Where that could happen the values keep the type that they suggest; whether it fits the column
is then decided as for any other data.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError

_types = pa.types


def typed_array(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    """Return values in a type as near to the wanted one as they can be without loss.

    Raises:
        InputError: a number is too large for the type.
        pyarrow.ArrowException: the values do not suit each other or the type.
    """
    found = pa.infer_type(values)
    made = pa.array(values, _suited(found, wanted))
    if _types.is_floating(made.type) and made.type.bit_width < 64 and _types.is_float64(found):
        were_infinite = pc.sum(pc.is_inf(pa.array(values, found))).as_py() or 0
        if (pc.sum(pc.is_inf(made)).as_py() or 0) > were_infinite:
            raise InputError(f"a number is too large for {made.type}")
    return made


def _suited(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the wanted type, or parts of the found one where the wanted could lose something."""
    if found == wanted or _types.is_null(found) or _types.is_map(wanted):
        return wanted
    if _types.is_struct(wanted) and _types.is_struct(found):
        return _suited_struct(found, wanted)
    if _types.is_list(found) and _is_list(wanted):
        item = wanted.value_field.with_type(_suited(found.value_type, wanted.value_type))
        if _types.is_fixed_size_list(wanted):
            return pa.list_(item, wanted.list_size)
        return pa.large_list(item) if _types.is_large_list(wanted) else pa.list_(item)
    return found if _could_lose(found, wanted) else wanted


def _suited_struct(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    fields = {field.name: field for field in wanted}
    for field in found:
        known = fields.get(field.name)
        fields[field.name] = (
            field if known is None else known.with_type(_suited(field.type, known.type))
        )
    return pa.struct(list(fields.values()))


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        _types.is_list(type_) or _types.is_large_list(type_) or _types.is_fixed_size_list(type_)
    )


def _could_lose(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Say whether Arrow would turn values into others without a word."""
    if _types.is_temporal(wanted) or _types.is_temporal(found):
        return True
    if _types.is_integer(wanted):
        return not _types.is_integer(found)
    return bool(_types.is_floating(wanted) and _types.is_boolean(found))
