"""Fields into their messages: a flat list, parents before children.

The encoding of a field says how a 0.1 file stores it. Later files do not need it, but every writer
fills it in.
"""

from collections.abc import Mapping

from lancetable.errors import UnsupportedError
from lancetable.format.proto import file_pb2
from lancetable.format.schema.model import EXTENSION_NAME, Field, Schema

CLUSTERING_KEY = "lance-schema:unenforced-clustering-key"
_TRUE = {"true", "1", "yes"}
_TOP = -1
_NONE, _PLAIN, _VAR_BINARY, _DICTIONARY = 0, 1, 2, 3
_ENCODINGS = {
    "struct": _NONE,
    "null": _NONE,
    **dict.fromkeys(("string", "binary", "large_string", "large_binary", "json"), _VAR_BINARY),
}


def encode_fields(schema: Schema) -> list[file_pb2.Field]:
    """Return the messages of all fields, depth first.

    Raises:
        UnsupportedError: the values of a dictionary field are kept in the manifest file itself.
    """
    messages: list[file_pb2.Field] = []
    for top in schema.fields:
        _flatten(top, _TOP, messages)
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
