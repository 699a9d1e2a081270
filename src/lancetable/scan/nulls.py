"""Check columns that must have no nulls: a file that holds one must not become invalid Arrow."""

from collections.abc import Iterable, Iterator

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
        for found, _ in forbidden_nulls(field, chunk, field.name):
            raise CorruptError(
                f"column {found!r} holds a null, but the schema says that it has none; let "
                f"set_nullable({found!r}, nullable=True) correct the schema"
            )


def forbidden_nulls(field: pa.Field, array: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield the path and the values of each part that must have no nulls and has some."""
    if array.null_count:
        # Below a struct that is null, a child has no value that counts.
        if not field.nullable:
            yield path, array
        return
    if pa.types.is_struct(array.type) and not isinstance(array, pa.ExtensionArray):
        for number in range(array.type.num_fields):
            child = array.type.field(number)
            yield from forbidden_nulls(child, array.field(number), f"{path}.{child.name}")
