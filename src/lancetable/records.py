"""Turn results into rows: columns follow from the fields of a dataclass.

A nested dataclass contributes its own fields; other values become lists, maps and structs.
"""

import enum
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from types import UnionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

DETAIL = {"detail": True}
"""Metadata of a field that a short table for people leaves out."""


def row_of(value: object, *, detail: bool = True) -> dict[str, object]:
    """Return the fields of a result by name; those that only explain it are left out."""
    row: dict[str, object] = {}
    for one in fields(typing.cast("Any", value)):
        if not one.repr or (one.metadata.get("detail") and not detail):
            continue
        found = getattr(value, one.name)
        if is_dataclass(found):
            row |= row_of(found, detail=detail)
        else:
            row[one.name] = plain(found)
    return row


def plain(value: object) -> object:
    """Return a value made of lists, dicts, texts, numbers and times."""
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if hasattr(value, "text"):
        return value.text
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(one) for name, one in value._asdict().items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    return row_of(value) if is_dataclass(value) and not isinstance(value, type) else value


def arrow_schema(kind: type) -> "pa.Schema":
    """Return the Arrow schema of the rows of a dataclass."""
    import pyarrow as pa  # noqa: PLC0415 - a result itself needs none

    return pa.schema(list(_fields(kind)))


def arrow_table(values: "Iterable[object]", kind: type) -> "pa.Table":
    """Return one Arrow row for each value of a dataclass."""
    import pyarrow as pa  # noqa: PLC0415 - a result itself needs none

    rows = [row_of(one) for one in values]
    schema = arrow_schema(kind)
    return pa.table(
        [pa.array([_cell(row[one.name]) for row in rows], one.type) for one in schema],
        schema=schema,
    )


def _cell(value: object) -> object:
    return list(value.items()) if isinstance(value, Mapping) else value


def _fields(kind: type) -> "Iterable[pa.Field]":
    import pyarrow as pa  # noqa: PLC0415 - a result itself needs none

    hints = typing.get_type_hints(kind)
    for one in fields(typing.cast("Any", kind)):
        type_, is_nullable = _without_none(hints[one.name])
        if not one.repr:
            continue
        if isinstance(type_, type) and is_dataclass(type_):
            yield from _fields(type_)
        else:
            required = one.name == "version" and not is_nullable
            yield pa.field(one.name, _type(one.name, type_), nullable=not required)


def _without_none(kind: object) -> tuple[object, bool]:
    if typing.get_origin(kind) not in (typing.Union, UnionType):
        return kind, False
    inner = [one for one in typing.get_args(kind) if one is not type(None)]
    return inner[0], len(inner) < len(typing.get_args(kind))


def _type(name: str, kind: object) -> "pa.DataType":
    """Return the Arrow type of a column; numbers of versions are unsigned."""
    import pyarrow as pa  # noqa: PLC0415 - a result itself needs none

    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return pa.map_(pa.string(), _type("", inner[1]))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return pa.list_(_type("", inner[0]))
    simple = {
        bool: pa.bool_(),
        int: pa.uint64() if name in {"version", "read_version"} else pa.int64(),
        float: pa.float64(),
        datetime: pa.timestamp("us", "UTC"),
        timedelta: pa.duration("us"),
    }
    if kind in simple:
        return simple[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        return pa.struct(list(_fields(kind)))
    if hasattr(kind, "_fields") and not hasattr(kind, "text"):
        hints = typing.get_type_hints(kind)
        return pa.struct([(key, _type(key, _without_none(one)[0])) for key, one in hints.items()])
    return pa.string()
