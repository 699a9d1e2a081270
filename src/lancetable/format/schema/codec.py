"""Fields between their messages and the tree of the model.

A schema is stored as a flat list, parents before children. Two things in it are not columns:
the parts of a blob descriptor, listed in data files with id -1 behind their struct, and anything
a damaged list may hold, which is refused.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError
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
    return {key: stored[key].decode("utf-8", "surrogateescape") for key in stored}
