"""Columns that must have no nulls: a file that holds one must not become invalid Arrow."""

from collections.abc import Iterable

import pyarrow as pa

from lancetable.errors import CorruptError


def has_required(field: pa.Field) -> bool:
    """Say whether a column, or a part of it, must have no nulls."""
    if not field.nullable:
        return True
    type_ = field.type
    if pa.types.is_struct(type_):
        return any(has_required(type_.field(number)) for number in range(type_.num_fields))
    return False


def check_required(field: pa.Field, column: Iterable[pa.Array]) -> None:
    """Check the rows of a column that are handed out.

    Raises:
        CorruptError: there is a null where the schema allows none.
    """
    for chunk in column:
        found = _null_path(field, chunk, field.name)
        if found is not None:
            raise CorruptError(
                f"column {found!r} holds a null, but the schema says that it has none; let "
                f"set_nullable({found!r}, nullable=True) correct the schema"
            )


def _null_path(field: pa.Field, array: pa.Array, path: str) -> str | None:
    if array.null_count:
        # Below a struct that is null, a child has no value that counts.
        return None if field.nullable else path
    if pa.types.is_struct(array.type) and not isinstance(array, pa.ExtensionArray):
        for number in range(array.type.num_fields):
            child = array.type.field(number)
            found = _null_path(child, array.field(number), f"{path}.{child.name}")
            if found is not None:
                return found
    return None
