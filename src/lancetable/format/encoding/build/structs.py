"""Packed structs: the children of a row side by side."""

import numpy as np
import pyarrow as pa

from lancetable.errors import InputError, UnsupportedError
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.blocks import (
    FixedValues,
    VariableValues,
    fixed_values,
    variable_values,
)
from lancetable.format.encoding.build.fullzip import joined_values, split_values
from lancetable.format.encoding.build.lists import lists_per_value
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.packed_struct import (
    PackedChild,
    PackedStruct,
    VariablePackedStruct,
)
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.leaf import Kind, Shape


def packed_rows(array: pa.Array, kind: Kind) -> tuple[FixedValues, Compression]:
    """Return rows of fixed-width children."""
    parts = []
    for number, child in enumerate(kind.children):
        values = _child(array, number)
        parts.append(fixed_values(values, child.width).raw.reshape(-1, child.width))
    rows = np.concatenate(parts, axis=1)
    bits = tuple(child.width * 8 for child in kind.children)
    return FixedValues(rows, rows.shape[1]), PackedStruct(bits, Flat(rows.shape[1] * 8))


def _child(array: pa.Array, number: int) -> pa.Array:
    """Return one child; only nulls of the struct itself can be stored."""
    values = array.field(number)
    if values.null_count and values.filter(array.is_valid()).null_count:
        name = array.type.field(number).name
        raise InputError(f"child {name!r} of a packed struct holds nulls, which cannot be stored")
    return values


def zipped_rows(array: pa.Array, kind: Kind) -> tuple[VariableValues, Compression]:
    """Return rows of which some children have any length."""
    columns: list[list[bytes]] = []
    children: list[PackedChild] = []
    for number, child in enumerate(kind.children):
        values = _child(array, number)
        if child.shape is Shape.VARIABLE:
            text = variable_values(values)
            parts = split_values(text)
            columns.append([len(part).to_bytes(child.width, "little") + part for part in parts])
            children.append(PackedChild(Variable(child.width * 8), child.width * 8, True))  # noqa: FBT003
            continue
        if child.shape is Shape.LIST:
            fixed, encoding = lists_per_value(values, child)
        elif child.shape is Shape.FIXED:
            fixed, encoding = fixed_values(values, child.width), Flat(child.width * 8)
        else:
            raise UnsupportedError(f"a packed struct cannot hold values of type {child.type}")
        table = fixed.raw.reshape(-1, fixed.width)
        columns.append([row.tobytes() for row in table])
        children.append(PackedChild(encoding, fixed.width * 8, False))  # noqa: FBT003
    rows = [b"".join(parts) for parts in zip(*columns, strict=True)]
    return joined_values(rows, 32), VariablePackedStruct(tuple(children))
