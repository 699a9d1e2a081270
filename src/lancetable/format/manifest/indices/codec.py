"""Index segments between their messages and values."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from lancetable.errors import CorruptError, InputError
from lancetable.format.manifest.model import IndexFile, IndexSegment
from lancetable.format.manifest.names import checked_path
from lancetable.format.proto import table_pb2

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def decode_index_section(data: bytes | memoryview) -> list[IndexSegment]:
    """Return the index segments that an index section lists.

    Raises:
        CorruptError: the bytes are damaged.
    """
    try:
        message = table_pb2.IndexSection.FromString(data)
    except DecodeError:
        raise CorruptError("the index section is not a valid message") from None
    return decode_segments(message.indices)


def encode_index_section(segments: Iterable[IndexSegment]) -> bytes:
    """Return the message that lists these segments."""
    message = table_pb2.IndexSection(indices=encode_segments(segments))
    return bytes(message.SerializeToString())


def decode_segments(messages: Sequence[table_pb2.IndexMetadata]) -> list[IndexSegment]:
    """Return the segments of some messages.

    Raises:
        CorruptError: a message is damaged.
    """
    return [_decode(message) for message in messages]


def encode_segments(segments: Iterable[IndexSegment]) -> list[table_pb2.IndexMetadata]:
    """Return the messages of some segments."""
    return [_encode(segment) for segment in segments]


def decode_files(messages: Sequence[table_pb2.IndexFile]) -> tuple[IndexFile, ...]:
    """Return the files that a segment names.

    Raises:
        CorruptError: a path leaves the folder of the segment.
    """
    return tuple(
        IndexFile(checked_path(file.path, "index file"), file.size_bytes) for file in messages
    )


def encode_files(files: Iterable[IndexFile]) -> list[table_pb2.IndexFile]:
    """Return the messages of the files of a segment."""
    return [table_pb2.IndexFile(path=file.path, size_bytes=file.size) for file in files]


def decode_json_details(details: bytes) -> tuple[str, str, bytes]:
    """Return the path of an index on JSON, and type and details of the index on its values.

    Raises:
        CorruptError: the bytes are damaged.
    """
    # Both messages have a text as field 1 and bytes as field 2.
    try:
        outer = any_pb2.Any.FromString(details)
        inner = any_pb2.Any.FromString(outer.value)
    except DecodeError:
        raise CorruptError("the details of an index on JSON are not a valid message") from None
    return outer.type_url, inner.type_url, inner.value


def encode_json_details(path: str, type_url: str, details: bytes) -> bytes:
    """Return the details of an index of some kind on the values at a path of JSON documents."""
    inner = any_pb2.Any(type_url=type_url, value=details).SerializeToString()
    return bytes(any_pb2.Any(type_url=path, value=inner).SerializeToString())


def decode_uuid(message: table_pb2.UUID, owner: str) -> str:
    """Return an id as text; ``owner`` is named when it is damaged.

    Raises:
        CorruptError: the id has not 16 bytes.
    """
    if len(message.uuid) != 16:
        raise CorruptError(f"{owner} has an id of {len(message.uuid)} bytes")
    return str(UUID(bytes=message.uuid))


def encode_uuid(text: str) -> table_pb2.UUID:
    """Return the message of an id.

    Raises:
        InputError: the text is no such id.
    """
    try:
        return table_pb2.UUID(uuid=UUID(text).bytes)
    except ValueError:
        raise InputError(f"{text!r} is not a UUID") from None


def _decode(message: table_pb2.IndexMetadata) -> IndexSegment:
    return IndexSegment(
        uuid=decode_uuid(message.uuid, f"index {message.name!r}"),
        name=message.name,
        fields=tuple(message.fields),
        dataset_version=message.dataset_version,
        fragment_bitmap=message.fragment_bitmap,
        type_url=message.index_details.type_url,
        details=message.index_details.value,
        index_version=message.index_version if message.HasField("index_version") else None,
        created_at=_created_at(message),
        base_id=message.base_id if message.HasField("base_id") else None,
        files=decode_files(message.files),
        covering_fields=tuple(message.covering_fields),
        metadata=dict(message.metadata),
        unknown=_unknown(message),
    )


def _unknown(message: table_pb2.IndexMetadata) -> bytes:
    """Return the fields of later releases."""
    if not len(UnknownFieldSet(message)):
        return b""
    others = table_pb2.IndexMetadata()
    others.CopyFrom(message)
    for field in others.DESCRIPTOR.fields:
        others.ClearField(field.name)
    return bytes(others.SerializeToString())


def _created_at(message: table_pb2.IndexMetadata) -> datetime | None:
    if not message.HasField("created_at"):
        return None
    try:
        return _EPOCH + timedelta(milliseconds=message.created_at)
    except OverflowError:
        raise CorruptError(f"index {message.name!r} has no date as its time") from None


def _encode(segment: IndexSegment) -> table_pb2.IndexMetadata:
    message = table_pb2.IndexMetadata(
        uuid=encode_uuid(segment.uuid),
        name=segment.name,
        fields=segment.fields,
        dataset_version=segment.dataset_version,
        fragment_bitmap=segment.fragment_bitmap,
        index_version=segment.index_version,
        base_id=segment.base_id,
        files=encode_files(segment.files),
        covering_fields=segment.covering_fields,
        metadata=dict(segment.metadata),
    )
    if segment.type_url or segment.details:
        message.index_details.type_url = segment.type_url
        message.index_details.value = segment.details
    if segment.created_at is not None:
        message.created_at = (segment.created_at - _EPOCH) // _MILLISECOND
    if segment.unknown:
        message.MergeFromString(segment.unknown)
    return message
