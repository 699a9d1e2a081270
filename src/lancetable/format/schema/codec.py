"""Fields between their messages and the tree of the model.

A schema is stored as a flat list, parents before children. Two things in it are not columns:
the parts of a blob descriptor, listed in data files with id -1 behind their struct, and anything
a damaged list may hold, which is refused.

A message also says how a 0.1 file stores the field. Later files do not need it, but every writer
fills it in.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.proto import file_pb2
from lancetable.format.schema.model import (
    BLOB_KEY,
    EXTENSION_NAME,
    NO_METADATA,
    DictionaryPage,
    Field,
    Schema,
    primary_key_position,
)

MAX_DEPTH = 64
NO_ID = -1
CLUSTERING_KEY = "lance-schema:unenforced-clustering-key"
_TRUE = {"true", "1", "yes"}
_NONE, _PLAIN, _VAR_BINARY, _DICTIONARY = 0, 1, 2, 3
_ENCODINGS = {
    "struct": _NONE,
    "null": _NONE,
    **dict.fromkeys(("string", "binary", "large_string", "large_binary", "json"), _VAR_BINARY),
}


class FileDescriptor(NamedTuple):
    """The schema and row count that a data file records."""

    schema: Schema
    rows: int


class _Open(NamedTuple):
    """A field whose children may still follow."""

    message: file_pb2.Field
    children: list["_Open"]
    depth: int


def decode_file_descriptor(data: bytes) -> FileDescriptor:
    """Return the schema and the number of rows from global buffer 0 of a data file.

    Raises:
        CorruptError: the bytes are not such a message.
    """
    try:
        message = file_pb2.FileDescriptor.FromString(bytes(data))
    except DecodeError:
        raise CorruptError("the file descriptor is not a valid message") from None
    return FileDescriptor(decode_schema(message.schema), message.length)


def decode_schema(message: file_pb2.Schema) -> Schema:
    """Return the schema of a message with fields and metadata."""
    return Schema(decode_fields(message.fields), decode_metadata(message.metadata))


def decode_table_fields(messages: Sequence[file_pb2.Field]) -> tuple[Field, ...]:
    """Return the top-level fields of a manifest, each of which has an id.

    Raises:
        CorruptError: a field has none, or the list is damaged as in :func:`decode_fields`.
    """
    nameless = next((one.name for one in messages if one.id < 0), None)
    if nameless is not None:
        raise CorruptError(f"field {nameless!r} has no id, so its column cannot be found")
    return decode_fields(messages)


def decode_fields(messages: Iterable[file_pb2.Field]) -> tuple[Field, ...]:
    """Return the top-level fields of a flat, depth-first list.

    Raises:
        CorruptError: the list is no tree, repeats an id, or is nested absurdly deep.
    """
    top: list[_Open] = []
    known: dict[int, _Open] = {}
    for message in messages:
        id_, parent_id = message.id, message.parent_id
        if id_ == NO_ID:
            continue
        if id_ in known:
            raise CorruptError(
                f"fields {known[id_].message.name!r} and {message.name!r} share the id {id_}"
            )
        if parent_id == NO_ID:
            opened = _Open(message, [], 0)
            top.append(opened)
        else:
            opened = _below(known.get(parent_id), message)
        known[id_] = opened
    return _siblings(top, "the schema")


def _siblings(opened: list[_Open], owner: str) -> tuple[Field, ...]:
    names = [one.message.name for one in opened]
    if len(set(names)) != len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise CorruptError(f"{owner} has two fields named {twice!r}")
    return tuple(map(_close, opened))


def _below(parent: _Open | None, message: file_pb2.Field) -> _Open:
    if parent is None:
        raise CorruptError(
            f"field {message.name!r} names the parent id {message.parent_id}, "
            "which no field before it has"
        )
    if parent.depth >= MAX_DEPTH:
        raise CorruptError(f"field {message.name!r} is nested deeper than {MAX_DEPTH} levels")
    opened = _Open(message, [], parent.depth + 1)
    parent.children.append(opened)
    return opened


def _close(opened: _Open) -> Field:
    message = opened.message
    name, text = message.name, message.logical_type
    metadata = decode_metadata(message.metadata) if message.metadata else NO_METADATA
    if text == "blob":
        text, metadata = "large_binary", {**metadata, BLOB_KEY: "true"}
    if message.unenforced_primary_key or message.unenforced_primary_key_position:
        key: int | None = message.unenforced_primary_key_position
    else:
        key = primary_key_position(metadata) if metadata else None
    dictionary = message.dictionary
    return Field(
        name,
        message.id,
        text,
        message.nullable,
        _siblings(opened.children, f"field {name!r}") if opened.children else (),
        metadata,
        message.extension_name or metadata.get(EXTENSION_NAME, ""),
        DictionaryPage(dictionary.offset, dictionary.length)
        if message.HasField("dictionary") and dictionary.length
        else None,
        key,
    )


def decode_metadata(stored: Mapping[str, bytes]) -> Mapping[str, str]:
    """Return metadata as text; bytes that are not UTF-8 become surrogates, as file names do."""
    if not stored:
        return NO_METADATA
    return {key: stored[key].decode("utf-8", "surrogateescape") for key in stored}


def encode_fields(schema: Schema) -> list[file_pb2.Field]:
    """Return the messages of all fields, depth first.

    Raises:
        UnsupportedError: the values of a dictionary field are kept in the manifest file itself.
    """
    messages: list[file_pb2.Field] = []
    for top in schema.fields:
        _flatten(top, NO_ID, messages)
    return messages


def encode_metadata(metadata: Mapping[str, str]) -> dict[str, bytes]:
    """Return metadata as messages store it."""
    return {key: text.encode("utf-8", "surrogateescape") for key, text in metadata.items()}


def _flatten(field: Field, parent: int, messages: list[file_pb2.Field]) -> None:
    messages.append(_message(field, parent))
    for child in field.children:
        _flatten(child, field.id, messages)


def _message(field: Field, parent: int) -> file_pb2.Field:
    if field.dictionary is not None:
        raise UnsupportedError(
            f"the values of dictionary column {field.name!r} are kept in the manifest, as files of "
            "version 0.1 need; this release cannot write such a table, copy it into a new one"
        )
    text, metadata = field.logical_type, field.metadata
    message = file_pb2.Field(
        name=field.name,
        id=field.id,
        parent_id=parent,
        logical_type=text,
        nullable=field.nullable,
        encoding=_ENCODINGS.get(text, _DICTIONARY if text.startswith("dict:") else _PLAIN),
    )
    if text.startswith("dict:"):
        message.dictionary.SetInParent()
    name = field.extension_name or metadata.get(EXTENSION_NAME, "")
    if name:
        message.extension_name = name
    for key, value in metadata.items():
        message.metadata[key] = value.encode("utf-8", "surrogateescape")
    if field.primary_key_position is not None:
        message.unenforced_primary_key = True
        message.unenforced_primary_key_position = field.primary_key_position
    _mark_clustering(message, metadata)
    return message


def _mark_clustering(message: file_pb2.Field, metadata: Mapping[str, str]) -> None:
    position = metadata.get(f"{CLUSTERING_KEY}:position", "")
    if position.isascii() and position.isdigit() and len(position) <= 9:
        message.unenforced_clustering_key = True
        message.unenforced_clustering_key_position = int(position)
    elif metadata.get(CLUSTERING_KEY, "").lower() in _TRUE:
        message.unenforced_clustering_key = True
