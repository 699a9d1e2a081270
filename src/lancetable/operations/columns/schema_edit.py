"""Change, drop, move or add a field of a schema.

Fields are named by paths through structs, such as ``a.b.c``. The ids of all other fields stay.
"""

from collections.abc import Callable, Sequence

from lancetable.errors import SchemaError
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.project import resolve
from lancetable.operations.input.fit import RESERVED


def changed_field(schema: Schema, path: str, change: Callable[[Field], Field]) -> Schema:
    """Return the schema with the field at a path changed.

    Raises:
        SchemaError: there is no such field, or it is a part of one that is stored whole.
    """
    chain = _chain(schema, path)
    fields = tuple(_changed(field, chain[-1].id, change) for field in schema.fields)
    return schema._replace(fields=fields)


def _chain(schema: Schema, path: str) -> tuple[Field, ...]:
    chain = resolve(schema, path)
    for parent in chain[:-1]:
        if parent.is_packed or parent.is_blob:
            raise SchemaError(f"column {path!r} is stored inside {parent.name!r} as a whole")
    return chain


def _changed(field: Field, id_: int, change: Callable[[Field], Field]) -> Field:
    if field.id == id_:
        return change(field)
    if not any(below.id == id_ for below in field.walk()):
        return field
    children = tuple(_changed(child, id_, change) for child in field.children)
    return field._replace(children=children)


def without_fields(schema: Schema, paths: Sequence[str]) -> Schema:
    """Return the schema without some fields.

    Raises:
        SchemaError: one is not there, or nothing would be left of the table or of a struct.
    """
    gone = set()
    for path in paths:
        chain = _chain(schema, path)
        if len(chain) > 1 and chain[-2].logical_type != "struct":
            raise SchemaError(
                f"column {path!r} is the content of {chain[-2].name!r}; drop that column instead"
            )
        gone.add(chain[-1].id)
    fields = _kept(schema.fields, gone)
    if not fields:
        raise SchemaError("a table needs at least one column; truncate or remove it instead")
    return schema._replace(fields=fields)


def _kept(fields: tuple[Field, ...], gone: set[int]) -> tuple[Field, ...]:
    kept = []
    for field in fields:
        if field.id in gone:
            continue
        children = _kept(field.children, gone)
        if field.children and not children:
            raise SchemaError(
                f"nothing would be left of column {field.name!r}; drop the column itself"
            )
        kept.append(field if children == field.children else field._replace(children=children))
    return tuple(kept)


def renamed_field(schema: Schema, path: str, name: str) -> Schema:
    """Return the schema with another name for a field.

    Raises:
        SchemaError: the name is taken or belongs to the table format.
    """
    chain = _chain(schema, path)
    if len(chain) > 1 and chain[-2].logical_type != "struct":
        raise SchemaError(f"column {path!r} is the content of a list or map and keeps its name")
    level = schema.fields if len(chain) == 1 else chain[-2].children
    refuse_name(name, level, is_top=len(chain) == 1)
    return changed_field(schema, path, lambda field: field._replace(name=name))


def refuse_name(name: str, level: Sequence[Field], *, is_top: bool = True) -> None:
    """Check the name of a new or renamed field.

    Raises:
        SchemaError: the name is empty, taken, or belongs to the table format.
    """
    if not name:
        raise SchemaError("a column needs a name")
    if is_top and name in RESERVED:
        raise SchemaError(f"the name {name!r} belongs to the table format; choose another")
    if any(field.name == name for field in level):
        raise SchemaError(f"there is a column {name!r} already; choose another name")


def reordered_fields(schema: Schema, names: Sequence[str]) -> Schema:
    """Return the schema with its top-level columns in another order; all have to be named.

    Raises:
        SchemaError: a column is unknown, left out or named twice.
    """
    known = {field.name: field for field in schema.fields}
    unknown = [name for name in names if name not in known]
    left_out = [name for name in known if name not in names]
    if unknown or left_out or len(names) != len(known):
        raise SchemaError(
            f"a new order names each column once: {list(known)}; unknown are {unknown}, left out "
            f"{left_out}"
        )
    return schema._replace(fields=tuple(known[name] for name in names))


def added_field(schema: Schema, path: Sequence[str], field: Field) -> Schema:
    """Return the schema with one more field, at the top or inside a struct.

    Raises:
        SchemaError: the name is taken, or the parent is no struct that can grow.
    """
    if not path:
        refuse_name(field.name, schema.fields)
        return schema._replace(fields=(*schema.fields, field))
    parent = resolve(schema, ".".join(f"`{step}`" for step in path))[-1]
    refuse_name(field.name, parent.children, is_top=False)
    if parent.logical_type != "struct" or parent.is_packed or parent.is_blob:
        raise SchemaError(f"column {'.'.join(path)!r} is not a struct, so it cannot get a column")
    steps = ".".join(f"`{step}`" for step in path)
    return changed_field(
        schema, steps, lambda found: found._replace(children=(*found.children, field))
    )
