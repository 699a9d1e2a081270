"""Project a schema by path, or by the field ids that a file holds.

A path names steps from the top: ``user.address.city``. A step through a list may name the list's
item or leave it out. A name with a dot, a blank or a backtick is written between backticks, a
backtick inside doubled. Maps and blobs are taken whole.
"""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from operator import is_

from lancetable.errors import SchemaError
from lancetable.format.schema.model import (
    BLOB_KEY,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    Field,
    Schema,
)

_LISTS = ("list", "large_list", "fixed_size_list:struct:")


def project(schema: Schema, names: Sequence[str]) -> Schema:
    """Return the schema with only the named columns, top-level ones in the order asked for.

    Several paths below one column are joined; its parts keep the order of the schema.

    Raises:
        SchemaError: a name is not in the schema, or is selected twice.
    """
    wanted: dict[str, set[int] | None] = {}
    tops = {field.name: field for field in schema.fields}
    for name in names:
        path = resolve(schema, name)
        top = path[0]
        if len(path) == 1:
            if top.name in wanted:
                raise SchemaError(f"column {top.name!r} is selected twice; name it once")
            wanted[top.name] = None
        else:
            leaves = wanted.setdefault(top.name, set())
            if leaves is None or path[-1].id in leaves:
                raise SchemaError(f"column {name!r} is selected twice; name it once")
            leaves.add(path[-1].id)
    fields = []
    for name, ids in wanted.items():
        kept = tops[name] if ids is None else _prune(tops[name], ids)
        if kept is not None:
            fields.append(kept)
    return Schema(tuple(fields), schema.metadata)


def resolve(schema: Schema, path: str) -> tuple[Field, ...]:
    """Return the fields from the top down to the one that a path names.

    Raises:
        SchemaError: there is no such field.
    """
    for field in schema.fields:
        if field.name == path:
            return (field,)
    steps = split_path(path)
    found: list[Field] = []
    level = schema.fields
    for step in steps:
        if found:
            _refuse_inside(found[-1], path)
            level = _reachable(found[-1], step)
        match = next((field for field in level if field.name == step), None)
        if match is None:
            raise _unknown(path, step, found, level)
        found.append(match)
    return tuple(found)


def split_path(path: str) -> list[str]:
    """Split a path at its dots, minding backticks.

    Raises:
        SchemaError: a backtick is not closed, or a step is empty.
    """
    steps: list[str] = []
    rest = path
    while True:
        is_quoted = rest.startswith("`")
        if is_quoted:
            step, rest = _quoted(rest, path)
        else:
            step, dot, tail = rest.partition(".")
            rest = dot + tail
        if not step and not is_quoted:
            raise SchemaError(f"column path {path!r} has an empty step")
        steps.append(step)
        if not rest:
            return steps
        if not rest.startswith("."):
            raise SchemaError(f"column path {path!r} needs a dot after a closing backtick")
        rest = rest[1:]


def _quoted(rest: str, path: str) -> tuple[str, str]:
    start, step = 1, ""
    while (end := rest.find("`", start)) >= 0:
        step += rest[start:end]
        if rest[end + 1 : end + 2] != "`":
            return step, rest[end + 1 :]
        step += "`"
        start = end + 2
    raise SchemaError(f"column path {path!r} has a backtick that is not closed")


def quote(name: str) -> str:
    """Return a name as one step of a path."""
    plain = name and not any(sign in name for sign in ".` ")
    return name if plain else "`" + name.replace("`", "``") + "`"


def path_of(schema: Schema, field_id: int) -> str | None:
    """Return the path of a field by its id; None when the schema has no such field."""

    def below(fields: Sequence[Field], above: str) -> str | None:
        for one in fields:
            here = f"{above}{quote(one.name)}"
            found = here if one.id == field_id else below(one.children, f"{here}.")
            if found is not None:
                return found
        return None

    return below(schema.fields, "")


def _reachable(field: Field, step: str) -> tuple[Field, ...]:
    """Return the children a step may name: a list lets it pass to the item's own children."""
    level = field.children
    while field.logical_type.startswith(_LISTS) and len(level) == 1 and level[0].name != step:
        field = level[0]
        level = field.children
    return level


def _refuse_inside(field: Field, path: str) -> None:
    if field.logical_type == "map" or field.is_blob_v2:
        kind = "map" if field.logical_type == "map" else "blob"
        raise SchemaError(f"column path {path!r} goes into a {kind}; ask for the {kind} whole")


def _unknown(path: str, step: str, found: Iterable[Field], level: Sequence[Field]) -> SchemaError:
    parents = [field.name for field in found]
    place = f" below {'.'.join(parents)!r}" if parents else ""
    names = [field.name for field in level]
    close = get_close_matches(step, names, n=3, cutoff=0.6)
    if close:
        hint = f"did you mean {' or '.join(repr(name) for name in close)}"
    elif names:
        shown = ", ".join(repr(name) for name in names[:10])
        hint = f"there are {shown}{' and others' if len(names) > 10 else ''}"
    else:
        hint = "it has no parts" if parents else "the table has no columns"
    return SchemaError(f"unknown column {path!r}: no {step!r}{place}; {hint}")


def project_ids(schema: Schema, ids: Collection[int]) -> Schema:
    """Return the schema with only the columns of the given ids, and the parents they need."""
    chosen = ids if isinstance(ids, (set, frozenset)) else frozenset(ids)
    return Schema(_stored(schema.fields, chosen), schema.metadata)


def _prune(field: Field, ids: Collection[int]) -> Field | None:
    """Keep the fields with these ids, everything below them, and their parents."""
    if field.id in ids:
        return field
    children = tuple(kept for child in field.children if (kept := _prune(child, ids)) is not None)
    return field._replace(children=children) if children else None


def _stored(fields: Iterable[Field], ids: Collection[int]) -> tuple[Field, ...]:
    """Keep the leaves with these ids; only a field stored as one column counts as its own leaf."""
    kept = []
    for field in fields:
        if not field.children:
            if field.id in ids:
                kept.append(field)
        elif field.is_blob_v2 or field.is_packed:
            if any(below.id in ids for below in field.walk()):
                kept.append(field)
        elif children := _stored(field.children, ids):
            whole = len(children) == len(field.children) and all(map(is_, children, field.children))
            is_kept = whole or field.logical_type == "map"
            kept.append(field if is_kept else field._replace(children=children))
    return tuple(kept)


def with_payloads(field: Field) -> Field:
    """Return the field as it looks when blobs are read: plain binary columns."""
    if not field.children and not field.metadata and not field.extension_name:
        return field
    if field.is_blob:
        hidden = (BLOB_KEY, EXTENSION_NAME, EXTENSION_METADATA)
        metadata = {key: text for key, text in field.metadata.items() if key not in hidden}
        return Field(field.name, field.id, "large_binary", field.nullable, metadata=metadata)
    if not any(part.is_blob for part in field.walk()):
        return field
    return field._replace(children=tuple(with_payloads(child) for child in field.children))
