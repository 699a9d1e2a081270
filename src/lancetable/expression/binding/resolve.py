"""Resolve names to columns and struct fields."""

import difflib
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression.tree import Column


def resolve(column: Column, schema: pa.Schema) -> tuple[Column, pa.DataType]:
    """Find a column: by its exact name, else by the only name that differs in case.

    Raises:
        ExpressionError: No column has the name, or several do.
    """
    path, position = column.path, column.position
    if len(path) > 1 and path[0] not in schema.names and ".".join(path) in schema.names:
        path = (".".join(path),)
    if column.is_quoted and not _alike(path[0], schema.names):
        name = ".".join(path)
        message = (
            f"there is no column {name!r} (at position {position}); double quotes enclose the "
            f"name of a column; write text in single quotes: '{name}'"
        )
        raise ExpressionError(message, position=position)
    first = _choose(path[0], schema.names, "column", position)
    found, type_ = [first], schema.field(first).type
    for name in path[1:]:
        if not pt.is_struct(_storage(type_)):
            place = ".".join(found)
            message = f"column {place} is of type {type_} and has no field {name!r}"
            raise ExpressionError(message, position=position)
        fields = {each.name: each.type for each in _storage(type_)}
        chosen = _choose(name, list(fields), f"field of {'.'.join(found)}", position)
        found.append(chosen)
        type_ = fields[chosen]
    return Column(tuple(found), position), type_


def _storage(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _alike(name: str, names: Sequence[str]) -> list[str]:
    exact = [each for each in names if each == name]
    return exact or [each for each in names if each.casefold() == name.casefold()]


def _choose(name: str, names: Sequence[str], what: str, position: int | None) -> str:
    alike = _alike(name, names)
    if len(alike) == 1:
        return alike[0]
    place = "" if position is None else f" (at position {position})"
    if alike:
        message = f"{name!r}{place} could be any of {', '.join(alike)}: write it exactly"
        raise ExpressionError(message, position=position)
    folded = {each.casefold(): each for each in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3)
    close = [folded[each] for each in near]
    hint = f"did you mean {' or '.join(close)}?" if close else _known(names)
    message = f"there is no {what} {name!r}{place}; {hint}"
    raise ExpressionError(message, position=position)


def _known(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"there are {shown} (write text in single quotes)"
