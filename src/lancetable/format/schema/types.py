"""Convert schemas to Arrow, as storage or as a user sees it, and back.

Storage never holds an extension type, so that kernels and casts work on it. What a user sees has
the extension types that pyarrow knows; the two share their buffers.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import pyarrow as pa

from lancetable.errors import CorruptError, InputError, SchemaError
from lancetable.format.schema.logical import (
    MAX_NESTING,
    childless_type,
    extension_metadata,
    logical_type,
    split_fixed_size_list,
)
from lancetable.format.schema.model import (
    BFLOAT16,
    BLOB_KEY,
    BLOB_V2,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    JSON_EXTENSION,
    NO_METADATA,
    PACKED_KEYS,
    STORAGE_CLASS,
    Field,
    Schema,
    primary_key_position,
)

ARROW_JSON = "arrow.json"

BLOB_V1_TYPE = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
BLOB_V2_TYPE = pa.struct(
    [
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("position", pa.uint64(), nullable=False),
        pa.field("size", pa.uint64(), nullable=False),
        pa.field("blob_id", pa.uint32(), nullable=False),
        pa.field("blob_uri", pa.string(), nullable=False),
    ]
)
_BLOB_V2_METADATA = {PACKED_KEYS[0]: "true", BLOB_KEY: "true"}


@lru_cache(maxsize=4096)
def arrow_type(field: Field) -> pa.DataType:
    """Return the storage type of what a scan gives for a field.

    Raises:
        UnsupportedError: the logical type is not known.
        CorruptError: the logical type does not fit the child fields.
    """
    if field.is_blob_v2:
        return BLOB_V2_TYPE
    text = field.logical_type
    if field.is_blob and text in {"binary", "large_binary"}:
        return BLOB_V1_TYPE
    build = _NESTED.get(text.partition(".")[0])
    if build is not None:
        return build(field)
    if text.startswith("fixed_size_list:struct:"):
        return pa.list_(arrow_field(_only_child(field)), split_fixed_size_list(text)[1])
    if field.children:
        raise CorruptError(f"field {field.name!r} of type {text!r} cannot have child fields")
    return childless_type(text, field.name)


def _struct_type(field: Field) -> pa.DataType:
    return pa.struct([arrow_field(child) for child in field.children])


def _list_type(field: Field) -> pa.DataType:
    return pa.list_(arrow_field(_only_child(field)))


def _large_list_type(field: Field) -> pa.DataType:
    return pa.large_list(arrow_field(_only_child(field)))


def _only_child(field: Field) -> Field:
    if len(field.children) != 1:
        raise CorruptError(
            f"field {field.name!r} of type {field.logical_type!r} needs exactly one child field, "
            f"found {len(field.children)}"
        )
    return field.children[0]


def _map_type(field: Field) -> pa.DataType:
    entries = _only_child(field)
    if entries.logical_type != "struct" or len(entries.children) != 2:
        raise CorruptError(f"map field {field.name!r} needs a child struct of key and value")
    key, value = entries.children
    return pa.map_(arrow_field(key).with_nullable(nullable=False), arrow_field(value))


_NESTED: dict[str, Callable[[Field], pa.DataType]] = {
    "struct": _struct_type,
    "list": _list_type,
    "large_list": _large_list_type,
    "map": _map_type,
}


@lru_cache(maxsize=4096)
def arrow_field(field: Field) -> pa.Field:
    """Return the field with its name, storage type, nullability and metadata."""
    type_ = arrow_type(field)
    nullable = field.nullable or pa.types.is_null(type_)
    if not (field.metadata or field.extension_name or field.is_json):
        return pa.field(field.name, type_, nullable)
    return pa.field(field.name, type_, nullable, _stored_bytes(_arrow_metadata(field)))


def _arrow_metadata(field: Field) -> Mapping[str, str] | None:
    if field.is_blob_v2:
        return _BLOB_V2_METADATA
    if field.is_json:
        return {**field.metadata, EXTENSION_NAME: ARROW_JSON, EXTENSION_METADATA: ""}
    if field.extension_name and EXTENSION_NAME not in field.metadata:
        return {**field.metadata, EXTENSION_NAME: field.extension_name, EXTENSION_METADATA: ""}
    return field.metadata or None


def _stored_bytes(metadata: Mapping[str, str] | None) -> Mapping[str, bytes] | None:
    """Return metadata as it is stored: it may hold bytes that are not UTF-8."""
    if not metadata:
        return None
    return {key: text.encode("utf-8", "surrogateescape") for key, text in metadata.items()}


def storage_schema(schema: Schema) -> pa.Schema:
    """Return the schema in storage types."""
    fields = [arrow_field(field) for field in schema.fields]
    return pa.schema(fields, _stored_bytes(schema.metadata))


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the schema as a user sees it, with the extension types that pyarrow knows.

    pyarrow turns the metadata of a field into an extension type only when it reads IPC.

    Raises:
        CorruptError: a field claims an extension type that its storage contradicts.
    """
    storage = storage_schema(schema)
    if not any(_is_extended(field) for field in schema.walk()):
        return storage
    try:
        return pa.ipc.read_schema(storage.serialize())
    except (pa.ArrowException, ValueError, TypeError) as cause:
        raise CorruptError(
            f"the schema names an extension type that does not fit its storage: {cause}"
        ) from cause


def _is_extended(field: Field) -> bool:
    return (
        field.is_json
        or EXTENSION_NAME in field.metadata
        or bool(field.extension_name)
        or BFLOAT16 in field.logical_type
    )


def relabel(array: pa.Array, type: pa.DataType) -> pa.Array:  # noqa: A002 - pyarrow's word
    """Return the same buffers under another type of the same layout, without a copy."""
    found = _imported(array, type)
    if found.type == type:
        return found
    # A field of a storage type may still name its extension, which pyarrow then puts in its place.
    return _imported(array, _rebuilt(type, _bare_field))


def _imported(array: pa.Array, type_: pa.DataType) -> pa.Array:
    schema_capsule = type_.__arrow_c_schema__()
    return pa.Array._import_from_c_capsule(schema_capsule, array.__arrow_c_array__()[1])  # noqa: SLF001


def without_extensions(array: pa.Array) -> pa.Array:
    """Return the same buffers in storage types, at every depth."""
    type_ = storage_type(array.type)
    return array if type_ == array.type else relabel(array, type_)


def storage_type(type_: pa.DataType) -> pa.DataType:
    """Return a type with the storage of every extension type in it."""
    if isinstance(type_, pa.BaseExtensionType):
        return storage_type(type_.storage_type)
    if pa.types.is_dictionary(type_):
        values = storage_type(type_.value_type)
        return pa.dictionary(type_.index_type, values, ordered=type_.ordered)
    return _rebuilt(type_, _storage_field)


def _storage_field(field: pa.Field) -> pa.Field:
    return field.with_type(storage_type(field.type))


def _bare_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _rebuilt(field.type, _bare_field), field.nullable)


def _rebuilt(type_: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Return a nested type with each of its fields changed; any other type as it is."""
    types = pa.types
    if types.is_struct(type_):
        return pa.struct([change(field) for field in type_])
    if types.is_map(type_):
        return pa.map_(
            change(type_.key_field), change(type_.item_field), keys_sorted=type_.keys_sorted
        )
    if types.is_fixed_size_list(type_):
        return pa.list_(change(type_.value_field), type_.list_size)
    if types.is_list(type_):
        return pa.list_(change(type_.value_field))
    if types.is_large_list(type_):
        return pa.large_list(change(type_.value_field))
    return type_


def has_same_layout(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether arrays of two types have the same buffers, names and extensions aside."""
    one, other = _unwrapped(one), _unwrapped(other)
    if one.num_fields == 0 and other.num_fields == 0:
        return bool(one == other)
    if one.id != other.id or one.num_fields != other.num_fields:
        return False
    if pa.types.is_fixed_size_list(one) and one.list_size != other.list_size:
        return False
    if pa.types.is_map(one):
        return has_same_layout(one.key_type, other.key_type) and has_same_layout(
            one.item_type, other.item_type
        )
    pairs = (
        zip(one, other, strict=True)
        if pa.types.is_struct(one)
        else [(one.value_field, other.value_field)]
    )
    return all(has_same_layout(left.type, right.type) for left, right in pairs)


def _unwrapped(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def fixed_width(type_: pa.DataType) -> float | None:
    """Return the bytes of one value; None when values differ in size."""
    if pa.types.is_struct(type_):
        widths = [fixed_width(type_.field(number).type) for number in range(type_.num_fields)]
        known = [width for width in widths if width is not None]
        return sum(known) if len(known) == len(widths) else None
    if pa.types.is_fixed_size_list(type_):
        item = fixed_width(type_.value_type)
        return None if item is None else item * type_.list_size
    if pa.types.is_null(type_):
        return 0
    try:
        return float(type_.bit_width) / 8
    except ValueError:
        return None


def schema_from_arrow(schema: pa.Schema) -> Schema:
    """Return the schema with field ids given depth first from 0.

    Raises:
        SchemaError: a column has a type that the format cannot store.
        InputError: its metadata asks for a way of storage that does not exist.
    """
    ids = iter(range(2**31))
    fields = tuple(_from_arrow(field, ids, 0) for field in schema)
    return Schema(fields, _text_metadata(schema.metadata, "the schema"))


def _from_arrow(arrow: pa.Field, ids: Iterator[int], depth: int) -> Field:
    if depth > MAX_NESTING:
        raise SchemaError(f"column {arrow.name!r} is nested deeper than {MAX_NESTING} levels")
    metadata = _marked(_text_metadata(arrow.metadata, f"column {arrow.name!r}"), arrow.name)
    storage = arrow.type
    if isinstance(storage, pa.BaseExtensionType):
        metadata[EXTENSION_NAME] = storage.extension_name
        metadata[EXTENSION_METADATA] = _serialized(storage, arrow.name)
        storage = storage.storage_type
    text = logical_type(storage, arrow.name)
    if metadata.get(EXTENSION_NAME) == ARROW_JSON and text in {"string", "large_string"}:
        text = "json"
        metadata |= {EXTENSION_NAME: JSON_EXTENSION, EXTENSION_METADATA: ""}
    id_ = next(ids)
    children = tuple(_from_arrow(child, ids, depth + 1) for child in _child_fields(storage, text))
    if metadata.get(EXTENSION_NAME) == BLOB_V2 and text != "struct":
        raise SchemaError(
            f"column {arrow.name!r} is called a blob but is not a struct of data and uri"
        )
    return Field(
        name=arrow.name,
        id=id_,
        logical_type=text,
        nullable=arrow.nullable,
        children=children,
        metadata=metadata or NO_METADATA,
        extension_name=metadata.get(EXTENSION_NAME, ""),
        primary_key_position=primary_key_position(metadata),
    )


def _marked(metadata: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the metadata with marks of storage as every reader understands them.

    Readers differ in what they make of other spellings, and some take any value for a mark.
    """
    found = dict(metadata)
    # Only releases 0.19 to 0.39 have a blob dataset. They would look for the column there.
    found.pop(STORAGE_CLASS, None)
    for key in (BLOB_KEY, *PACKED_KEYS[:1]):
        if key not in found:
            continue
        word = found.pop(key).strip().lower()
        if word not in {"true", "false"}:
            raise InputError(f"column {name!r}: {key} is {metadata[key]!r}; use one of true, false")
        if word == "true":
            found[key] = word
    return found


def _child_fields(storage: pa.DataType, text: str) -> list[pa.Field]:
    if text == "struct" or text.startswith(("list", "large_list")):
        return [storage.field(number) for number in range(storage.num_fields)]
    if text == "map":
        entries = pa.struct([storage.key_field, storage.item_field])
        return [pa.field("entries", entries, nullable=False)]
    if text.startswith("fixed_size_list:struct:"):
        return [storage.value_field]
    return []


def _serialized(extension: pa.BaseExtensionType, name: str) -> str:
    try:
        return extension_metadata(extension).decode("utf-8")
    except UnicodeDecodeError:
        raise SchemaError(
            f"column {name!r}: the extension metadata is not UTF-8, the format stores text only"
        ) from None


def _text_metadata(metadata: Mapping[bytes, bytes] | None, owner: str) -> Mapping[str, str]:
    if not metadata:
        return NO_METADATA
    try:
        return {
            key.decode("utf-8"): value.decode("utf-8", "surrogateescape")
            for key, value in metadata.items()
        }
    except UnicodeDecodeError:
        raise SchemaError(f"a key in the metadata of {owner} is not UTF-8") from None
