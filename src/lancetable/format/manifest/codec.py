"""Manifests between their bytes and values."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.envelope import frame, manifest_message, seal
from lancetable.format.manifest.flags import Feature, check_readable
from lancetable.format.manifest.fragments.codec import StoredFragments, store_fragments
from lancetable.format.manifest.model import (
    OWN_LIBRARY,
    BasePath,
    FileNames,
    Manifest,
    Trust,
    WriterVersion,
)
from lancetable.format.proto import table_pb2
from lancetable.format.schema.codec import (
    decode_metadata,
    decode_table_fields,
    encode_fields,
    encode_metadata,
)
from lancetable.format.schema.model import Schema

_Heading: TypeAlias = table_pb2.ManifestTop | table_pb2.ManifestHeading
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
_FILE_FORMAT = "lance"
_STABLE_ROW_IDS = int(Feature.STABLE_ROW_IDS)
# Releases up to 0.8.0 did not count deleted rows, and named no writer in the manifest.
_FIRST_RIGHT_COUNTS = (0, 8, 1)


def decode_manifest(data: bytes, path: str) -> Manifest:
    """Return the manifest in the bytes of a manifest file; ``path`` is named in messages.

    The fragments are looked at when they are first asked for, and may be damaged then.

    Raises:
        CorruptError: the bytes are damaged.
        UnsupportedError: the version needs something this release cannot read.
    """
    try:
        return _decode(data, path)
    except CorruptError as cause:
        raise cause.at(path) from None
    except UnsupportedError as cause:
        raise UnsupportedError(f"{path}: {cause}") from None


def _decode(data: bytes, path: str) -> Manifest:
    message = _parsed(data)
    flags = message.reader_feature_flags
    check_readable(flags, message.writer_feature_flags)
    if message.HasField("fragment_tree"):
        raise UnsupportedError(
            "the fragments are kept in a fragment tree, which this release cannot read; "
            "the table was left untouched"
        )
    file_format = message.data_format.file_format
    if file_format and file_format != _FILE_FORMAT:
        raise UnsupportedError(
            f"the data files are in format {file_format!r}, only {_FILE_FORMAT!r} can be read; the "
            "table was left untouched"
        )
    metadata = decode_metadata(message.schema_metadata)
    max_fragment_id = message.max_fragment_id if message.HasField("max_fragment_id") else None
    return Manifest(
        version=message.version,
        schema=Schema(decode_table_fields(message.fields), metadata),
        fragments=StoredFragments(
            None,
            Trust(
                path,
                bool(flags & _STABLE_ROW_IDS),
                _counts_rightly(message),
                max_fragment_id,
                message.writer_version.library == OWN_LIBRARY,
            ),
            owner=message,
        ),
        reader_flags=flags,
        writer_flags=message.writer_feature_flags,
        timestamp=_timestamp(message.timestamp) if message.HasField("timestamp") else None,
        branch=message.branch if message.HasField("branch") else None,
        # An empty map of a message takes longer to copy than to ask.
        config=dict(message.config) if message.config else {},
        table_metadata=dict(message.table_metadata) if message.table_metadata else {},
        base_paths=_base_paths(message.base_paths),
        data_format=message.data_format.version,
        writer=_writer(message),
        max_fragment_id=max_fragment_id,
        next_row_id=message.next_row_id,
        transaction_file=message.transaction_file,
        index_section=message.index_section if message.HasField("index_section") else None,
        transaction_section=_transaction_section(message),
        tag=message.tag,
        auxiliary_section=message.version_aux_data or None,
        max_allocated_field_id=(
            message.max_allocated_field_id if message.HasField("max_allocated_field_id") else None
        ),
        blob_dataset_version=message.blob_dataset_version or None,
    )


def _parsed(data: bytes) -> table_pb2.ManifestTop:
    try:
        return table_pb2.ManifestTop.FromString(manifest_message(data))
    except DecodeError:
        raise CorruptError("the manifest is not a valid message") from None


class Heading(NamedTuple):
    """The writer and time of a version, and the place of its transaction."""

    version: int
    timestamp: datetime | None
    writer: WriterVersion | None
    transaction_file: str = ""
    transaction_section: int | None = None


def decode_heading(data: bytes | memoryview, path: str) -> Heading:
    """Return the heading of a manifest file; fragments are passed over as bytes.

    Raises:
        CorruptError: the bytes are damaged.
    """
    try:
        message = table_pb2.ManifestHeading.FromString(manifest_message(data))
        time = _timestamp(message.timestamp) if message.HasField("timestamp") else None
        return Heading(
            message.version,
            time,
            _writer(message),
            message.transaction_file,
            _transaction_section(message),
        )
    except DecodeError:
        raise CorruptError("the manifest is not a valid message", path=path) from None
    except CorruptError as cause:
        raise cause.at(path) from None


def decode_file_names(data: bytes | memoryview, path: str) -> FileNames | None:
    """Return the files of a plain manifest, without making values of anything else in it.

    ``None`` when it also has index segments, base paths or features, and when it is damaged: then
    the whole manifest tells, or says what is wrong.
    """
    try:
        message = table_pb2.Manifest.FromString(manifest_message(data))
    except (DecodeError, CorruptError):
        return None
    if (
        message.reader_feature_flags
        or message.writer_feature_flags
        or message.base_paths
        or message.HasField("index_section")
        or message.HasField("fragment_tree")
    ):
        return None
    return StoredFragments(message.fragments, Trust(path), owner=message).file_names()


def decode_auxiliary(data: bytes | memoryview) -> dict[str, bytes]:
    """Return what a writer attached to a version.

    Raises:
        CorruptError: the bytes are damaged.
    """
    try:
        return dict(table_pb2.VersionAuxData.FromString(bytes(data)).metadata)
    except DecodeError:
        raise CorruptError("the auxiliary data is not a valid message") from None


def _transaction_section(message: _Heading) -> int | None:
    if message.HasField("current_transaction_section"):
        return int(message.current_transaction_section)
    if message.HasField("transaction_section"):
        return int(message.transaction_section)
    return None


def _timestamp(message: table_pb2.Timestamp) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError:
        raise CorruptError(f"the time of the version, {message.seconds} s, is not a date") from None


def _writer(message: _Heading) -> WriterVersion | None:
    if not message.HasField("writer_version"):
        return None
    writer = message.writer_version
    return WriterVersion(
        writer.library, writer.version, writer.prerelease or None, writer.build_metadata or None
    )


def _counts_rightly(message: table_pb2.ManifestTop) -> bool:
    if not message.HasField("writer_version"):
        return False
    writer = message.writer_version
    if writer.library != "lance" or not writer.version.startswith("0."):
        return True
    parts = writer.version.split(".")[:3]
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        return True
    return tuple(int(part) for part in parts) >= _FIRST_RIGHT_COUNTS


def _base_paths(messages: Sequence[table_pb2.BasePath]) -> tuple[BasePath, ...]:
    if not messages:
        return ()
    bases = decode_base_paths(messages)
    if len({base.id for base in bases}) != len(bases):
        raise CorruptError("two base paths share one id")
    return bases


def decode_base_paths(messages: Iterable[table_pb2.BasePath]) -> tuple[BasePath, ...]:
    """Return the base paths of some messages."""
    return tuple(
        BasePath(
            message.id,
            message.name if message.HasField("name") else None,
            message.path,
            message.is_dataset_root,
        )
        for message in messages
    )


def encode_base_paths(bases: Iterable[BasePath]) -> list[table_pb2.BasePath]:
    """Return the messages of base paths."""
    return [
        table_pb2.BasePath(
            id=base.id, name=base.name, path=base.path, is_dataset_root=base.is_dataset_root
        )
        for base in bases
    ]


def live_rows(manifest: Manifest) -> int | None:
    """Return the rows that are not deleted, or ``None`` when the manifest does not say.

    Raises:
        CorruptError: more rows are deleted than there are.
    """
    if isinstance(manifest.fragments, StoredFragments):
        return manifest.fragments.live_rows()
    total = 0
    for fragment in manifest.fragments:
        deleted = fragment.deletion_file.deleted_rows if fragment.deletion_file else 0
        if not fragment.physical_rows or (fragment.deletion_file and not deleted):
            return None
        total += fragment.physical_rows - deleted
    return total


def below_base(fragments: StoredFragments, base_id: int | None) -> StoredFragments:
    """Return fragments as another table sees them.

    Files of the table itself lie below a base path for the other one; without a base all files are
    the other table's own.

    Raises:
        UnsupportedError: a fragment that shares its id has a deletion file named by that id.
    """
    fragments.check_deletion_names()
    owner = table_pb2.Manifest.FromString(fragments.encoded())
    for message in owner.fragments:
        files: list[table_pb2.DataFile | table_pb2.DeletionFile] = [*message.files]
        if message.HasField("deletion_file"):
            files.append(message.deletion_file)
        for file in files:
            if base_id is None:
                file.ClearField("base_id")
            elif not file.HasField("base_id"):
                file.base_id = base_id
    return StoredFragments(owner.fragments, fragments.trust, owner=owner)


class EncodedManifest(NamedTuple):
    """A manifest file, and the manifest a reader of it would get."""

    content: bytes
    manifest: Manifest


def encode_manifest(
    manifest: Manifest, path: str, *, index_section: bytes | None, transaction: bytes | None
) -> EncodedManifest:
    """Return the file of a manifest whose fragments are sorted by id.

    The sections are messages; positions are filled in here. The position of the transaction is
    written twice: releases up to 13 and from 14 on look for it in different fields.

    Raises:
        UnsupportedError: the manifest would have to keep the values of a dictionary.
    """
    sections = b"" if index_section is None else frame(index_section)
    index_at = None if index_section is None else 0
    transaction_at = None if transaction is None else len(sections)
    if transaction is not None:
        sections += frame(transaction)
    stable = bool(manifest.reader_flags & _STABLE_ROW_IDS)
    stored = store_fragments(
        manifest.fragments,
        Trust(path, stable, max_fragment_id=manifest.max_fragment_id, is_own=True),
    )
    message = _message(manifest)
    if index_at is not None:
        message.index_section = index_at
    if transaction_at is not None:
        message.transaction_section = transaction_at
        message.current_transaction_section = transaction_at
    content = seal(
        sections, _schema_part(manifest.schema), message.SerializeToString(), stored.encoded()
    )
    read_back = manifest._replace(
        fragments=stored,
        index_section=index_at,
        transaction_section=transaction_at,
        tag="",
        auxiliary_section=None,
    )
    return EncodedManifest(content, read_back)


@lru_cache(maxsize=128)
def _schema_part(schema: Schema) -> bytes:
    """Return the part of the message that holds the schema; versions seldom change it."""
    message = table_pb2.Manifest(
        fields=encode_fields(schema), schema_metadata=encode_metadata(schema.metadata)
    )
    return bytes(message.SerializeToString())


def _message(manifest: Manifest) -> table_pb2.Manifest:
    """Return everything but schema, fragments and the positions of sections."""
    message = table_pb2.Manifest(
        version=manifest.version,
        reader_feature_flags=manifest.reader_flags,
        writer_feature_flags=manifest.writer_flags,
        max_fragment_id=manifest.max_fragment_id,
        transaction_file=manifest.transaction_file,
        next_row_id=manifest.next_row_id,
        config=manifest.config or {},
        table_metadata=manifest.table_metadata or {},
        base_paths=encode_base_paths(manifest.base_paths) if manifest.base_paths else (),
        branch=manifest.branch,
        max_allocated_field_id=manifest.max_allocated_field_id,
        blob_dataset_version=manifest.blob_dataset_version,
    )
    if manifest.data_format:
        message.data_format.file_format = _FILE_FORMAT
        message.data_format.version = manifest.data_format
    if manifest.timestamp is not None:
        since = manifest.timestamp - _EPOCH
        message.timestamp.seconds = since // _SECOND
        message.timestamp.nanos = since % _SECOND // _MICROSECOND * 1000
    if manifest.writer is not None:
        library, version, prerelease, build = manifest.writer
        writer = message.writer_version
        writer.library, writer.version = library, version
        if prerelease:
            writer.prerelease = prerelease
        if build:
            writer.build_metadata = build
    return message
