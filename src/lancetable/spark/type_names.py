"""Name the types of Arrow that Spark does not have.

A name is kept in the metadata of a Spark column under ``lance.type``, where a read puts it, or in
the write option ``types``. It is used for columns that a table gets, and ignored for others.

========================  =====================================================
``uint32``, ``float16``   a type of Arrow, or a logical type of the format such
                          as ``timestamp:ns:UTC`` or ``dict:string:int32:false``
``float32[768]``          lists of one length
``list<X>``               lists whose items are named by X; also ``large_list<X>``
``map<X,Y>``              maps whose keys and values are named by X and Y
``json``, ``uuid``        documents, identifiers
``blob``                  bytes that are stored apart from the other columns
``_``                     as Spark has it, inside of the others
========================  =====================================================
"""

import re
from collections.abc import Mapping

import pyarrow as pa

from lancetable.errors import InputError, LanceTableError
from lancetable.format.schema.logical import childless_type, logical_type
from lancetable.format.schema.model import BLOB_KEY

TYPE_KEY = "lance.type"
"""The key in the metadata of a Spark column."""
_ALIASES = {
    "float16": "halffloat",
    "float32": "float",
    "float64": "double",
    "date64": "date64:ms",
    "boolean": "bool",
}
_VECTOR = re.compile(r"(?P<item>.+)\[(?P<size>\d{1,7})\]")
_LIST = re.compile(r"(?P<kind>large_list|list)<(?P<item>.+)>")
_MAP = re.compile(r"map<(?P<items>.+)>")
_NESTED = frozenset({"struct", "list", "list.struct", "large_list", "large_list.struct", "map"})


def type_text(field: pa.Field, carried: pa.DataType) -> str | None:
    """Return the name of a column's type; ``None`` when it is the one that Spark implies."""
    if (field.metadata or {}).get(BLOB_KEY.encode()) == b"true":
        return "blob"
    if field.type.equals(carried):
        return None
    text = _text(field.type, carried)
    return None if text == "_" else text


def _text(type_: pa.DataType, carried: pa.DataType) -> str:
    if isinstance(type_, pa.BaseExtensionType):
        known = {"arrow.json": "json", "arrow.uuid": "uuid"}
        return known.get(type_.extension_name) or _text(type_.storage_type, carried)
    if type_.equals(carried):
        return "_"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = "list" if pa.types.is_list(type_) else "large_list"
        inner = carried.value_type if pa.types.is_list(carried) else pa.null()
        item = _text(type_.value_type, inner)
        return "_" if (kind, item) == ("list", "_") else f"{kind}<{item}>"
    if pa.types.is_map(type_) and pa.types.is_map(carried):
        key, item = (
            _text(type_.key_type, carried.key_type),
            _text(type_.item_type, carried.item_type),
        )
        return "_" if key == item == "_" else f"map<{key},{item}>"
    try:
        text = logical_type(type_, "")
    except LanceTableError:
        return "_"
    return "_" if text in _NESTED else text


def hinted_field(field: pa.Field, text: str) -> pa.Field:
    """Return a column as Spark has it with the type that a name says.

    Raises:
        InputError: the name cannot be understood.
    """
    if text == "blob":
        metadata = {**(field.metadata or {}), BLOB_KEY.encode(): b"true"}
        return pa.field(field.name, pa.large_binary(), field.nullable, metadata)
    return field.with_type(parse_type(text, field.type, field.name))


def parse_type(text: str, carried: pa.DataType, path: str) -> pa.DataType:
    """Return the type that a name says, for a column that Spark carries as another.

    Raises:
        InputError: the name cannot be understood.
    """
    text = text.strip()
    special = {"_": carried, "json": pa.json_(), "uuid": pa.uuid()}
    if text in special:
        return special[text]
    found = _VECTOR.fullmatch(text)
    if found is not None:
        return pa.list_(pa.field("item", _inner(found, carried, path)), int(found["size"]))
    found = _LIST.fullmatch(text)
    if found is not None:
        item = pa.field("item", _inner(found, carried, path))
        return pa.list_(item) if found["kind"] == "list" else pa.large_list(item)
    found = _MAP.fullmatch(text)
    if found is not None and pa.types.is_map(carried):
        return _map_type(found["items"], carried, path)
    try:
        return childless_type(_ALIASES.get(text, text), path)
    except LanceTableError:
        raise InputError(
            f"column {path!r} has the type hint {text!r}, which is not a type; write one such as "
            "float32[768], uint32, float16, large_list<_>, json or blob"
        ) from None


def _inner(found: "re.Match[str]", carried: pa.DataType, path: str) -> pa.DataType:
    inner = carried.value_type if pa.types.is_list(carried) else pa.null()
    return parse_type(found["item"], inner, path)


def _map_type(items: str, carried: pa.DataType, path: str) -> pa.DataType:
    parts = _split(items)
    if len(parts) != 2:
        raise InputError(f"column {path!r} has the type hint map<{items}>; write map<key,value>")
    key = parse_type(parts[0], carried.key_type, f"{path}.key")
    value = parse_type(parts[1], carried.item_type, f"{path}.value")
    return pa.map_(key, pa.field("value", value, carried.item_field.nullable))


def _split(text: str) -> list[str]:
    """Split at commas that stand outside of angle brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def parse_hints(text: str) -> Mapping[str, str]:
    """Return the names in an option like ``vector=float32[768], id=uint64`` by column.

    Raises:
        InputError: a part of it has no ``=``.
    """
    hints = {}
    for part in filter(None, (one.strip() for one in _split(text))):
        name, sign, type_ = part.partition("=")
        if not sign:
            raise InputError(
                f"the option 'types' has {part!r}; write column=type, such as vector=float32[768]"
            )
        hints[name.strip()] = type_.strip()
    return hints
