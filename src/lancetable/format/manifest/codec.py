"""Manifests from their bytes.

Fragments are turned into values one by one when they are asked for: a table may have many
thousands of them, and opening it needs none.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, overload
from uuid import UUID

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.envelope import manifest_message
from lancetable.format.manifest.flags import Feature, check_readable
from lancetable.format.manifest.model import (
    BasePath,
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionKind,
    ExternalSequence,
    Fragment,
    IndexFile,
    IndexSegment,
    InlineSequence,
    Manifest,
    SequenceSource,
    WriterVersion,
)
from lancetable.format.manifest.names import checked_path
from lancetable.format.proto import table_pb2
from lancetable.format.rows import MAX_FRAGMENT_ID
from lancetable.format.schema.codec import decode_fields, decode_metadata
from lancetable.format.schema.model import Schema

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: object) -> object:
        """Stand in for the decorator that typing has only from Python 3.12 on."""
        return method


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DELETION_KINDS = {0: DeletionKind.ARROW, 1: DeletionKind.BITMAP}
_STABLE_ROW_IDS = int(Feature.STABLE_ROW_IDS)
# Releases up to 0.8.0 did not count deleted rows, and named no writer in the manifest.
_FIRST_RIGHT_COUNTS = (0, 8, 1)


def decode_manifest(data: bytes, path: str) -> Manifest:
    """Return the manifest in the bytes of a manifest file; ``path`` is named in messages.

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
    metadata = decode_metadata(message.schema_metadata, "the schema")
    return Manifest(
        version=message.version,
        schema=Schema(decode_fields(message.fields), metadata),
        fragments=StoredFragments(
            message.fragments,
            path,
            stable_row_ids=bool(flags & _STABLE_ROW_IDS),
            right_counts=_counts_rightly(message),
        ),
        reader_flags=flags,
        writer_flags=message.writer_feature_flags,
        timestamp=_timestamp(message.timestamp) if message.HasField("timestamp") else None,
        branch=message.branch if message.HasField("branch") else None,
        config=dict(message.config),
        table_metadata=dict(message.table_metadata),
        base_paths=_base_paths(message.base_paths),
        data_format=message.data_format.version,
        writer=_writer(message),
        max_fragment_id=message.max_fragment_id if message.HasField("max_fragment_id") else None,
        next_row_id=message.next_row_id,
        transaction_file=message.transaction_file,
        index_section=message.index_section if message.HasField("index_section") else None,
        transaction_section=_transaction_section(message),
    )


def _parsed(data: bytes) -> table_pb2.Manifest:
    try:
        return table_pb2.Manifest.FromString(manifest_message(data))
    except DecodeError:
        raise CorruptError("the manifest is not a valid message") from None


def decode_version(data: bytes, path: str) -> tuple[int, datetime | None, WriterVersion | None]:
    """Return version, time and writer of a manifest file without looking at the rest.

    Raises:
        CorruptError: the bytes are damaged.
    """
    try:
        message = _parsed(data)
        time = _timestamp(message.timestamp) if message.HasField("timestamp") else None
        return message.version, time, _writer(message)
    except CorruptError as cause:
        raise cause.at(path) from None


def _transaction_section(message: table_pb2.Manifest) -> int | None:
    if message.HasField("current_transaction_section"):
        return int(message.current_transaction_section)
    if message.HasField("transaction_section"):
        return int(message.transaction_section)
    return None


def _timestamp(message: table_pb2.Timestamp) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError:
        raise CorruptError(f"the time of the version, {message.seconds} s, is no date") from None


def _writer(message: table_pb2.Manifest) -> WriterVersion | None:
    if not message.HasField("writer_version"):
        return None
    writer = message.writer_version
    return WriterVersion(
        writer.library, writer.version, writer.prerelease or None, writer.build_metadata or None
    )


def _counts_rightly(message: table_pb2.Manifest) -> bool:
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
    bases = tuple(
        BasePath(
            message.id,
            message.name if message.HasField("name") else None,
            message.path,
            message.is_dataset_root,
        )
        for message in messages
    )
    if len({base.id for base in bases}) != len(bases):
        raise CorruptError("two base paths share one id")
    return bases


class StoredFragments(Sequence[Fragment]):
    """The fragments of a manifest, each decoded when it is first asked for."""

    __slots__ = ("_decoded", "_messages", "_path", "_right_counts", "_stable_row_ids")

    def __init__(
        self,
        messages: Sequence[table_pb2.DataFragment],
        path: str,
        *,
        stable_row_ids: bool,
        right_counts: bool,
    ) -> None:
        self._messages = messages
        self._path = path
        self._stable_row_ids = stable_row_ids
        self._right_counts = right_counts
        self._decoded: dict[int, Fragment] = {}

    @override
    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fragment, ...]: ...
    @override
    def __getitem__(self, index: int | slice) -> Fragment | tuple[Fragment, ...]:
        if isinstance(index, slice):
            return tuple(self._at(number) for number in range(len(self))[index])
        return self._at(range(len(self))[index])

    @override
    def __iter__(self) -> Iterator[Fragment]:
        return map(self._at, range(len(self)))

    @override
    def __reduce__(self) -> tuple[type, tuple[tuple[Fragment, ...]]]:
        return tuple, (tuple(self),)

    @override
    def __repr__(self) -> str:
        return f"<{len(self)} fragments>"

    def _at(self, number: int) -> Fragment:
        found = self._decoded.get(number)
        if found is None:
            found = self._decoded[number] = self._decode(number)
        return found

    def _decode(self, number: int) -> Fragment:
        message = self._messages[number]
        try:
            return _fragment(
                message, right_counts=self._right_counts, stable_row_ids=self._stable_row_ids
            )
        except CorruptError as cause:
            raise cause.at(self._path, f"fragment {message.id}") from None
        except UnsupportedError as cause:
            raise UnsupportedError(f"{self._path}: fragment {message.id}: {cause}") from None

    def live_rows(self) -> int | None:
        """Return the rows that are not deleted, or ``None`` when the manifest does not say."""
        if not self._right_counts and self._messages:
            return None
        total = 0
        for message in self._messages:
            rows = message.physical_rows
            if not rows:
                return None
            if message.HasField("deletion_file"):
                deleted = message.deletion_file.num_deleted_rows
                if not deleted:
                    return None
                if deleted > rows:
                    raise CorruptError(f"{deleted} of {rows} rows are deleted").at(
                        self._path, f"fragment {message.id}"
                    )
                rows -= deleted
            total += rows
        return total


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


def _fragment(
    message: table_pb2.DataFragment, *, right_counts: bool, stable_row_ids: bool
) -> Fragment:
    if message.id > MAX_FRAGMENT_ID:
        raise CorruptError("fragment ids fit into 32 bits")
    if message.overlays:
        raise UnsupportedError(
            "values are patched by overlay files, which this release cannot read; "
            "the table was left untouched"
        )
    row_ids = _sequence(message, "row_id_sequence")
    if stable_row_ids and row_ids is None:
        raise CorruptError("the table has stable row ids, the fragment has none")
    return Fragment(
        message.id,
        tuple([_data_file(file) for file in message.files]),
        _deletion_file(message.deletion_file) if message.HasField("deletion_file") else None,
        message.physical_rows if right_counts else 0,
        row_ids,
        _sequence(message, "created_at_version_sequence"),
        _sequence(message, "last_updated_at_version_sequence"),
    )


def _data_file(message: table_pb2.DataFile) -> DataFile:
    fields, columns = tuple(message.fields), tuple(message.column_indices)
    if columns and len(columns) != len(fields):
        raise CorruptError(
            f"data file {message.path!r} lists {len(fields)} fields and {len(columns)} columns"
        )
    return DataFile(
        checked_path(message.path, "data file"),
        fields,
        columns,
        message.file_major_version,
        message.file_minor_version,
        message.file_size_bytes or None,
        message.base_id if message.HasField("base_id") else None,
    )


def _deletion_file(message: table_pb2.DeletionFile) -> DeletionFile:
    kind = _DELETION_KINDS.get(message.file_type)
    if kind is None:
        raise UnsupportedError(f"deletion files of kind {message.file_type} cannot be read")
    return DeletionFile(
        kind,
        message.read_version,
        message.id,
        message.num_deleted_rows,
        message.base_id if message.HasField("base_id") else None,
    )


def _sequence(message: table_pb2.DataFragment, group: str) -> SequenceSource | None:
    name = message.WhichOneof(group)
    if name is None:
        return None
    stored = getattr(message, name)
    if name.startswith("inline"):
        return InlineSequence(stored)
    if name.startswith("external"):
        return ExternalSequence(
            checked_path(stored.path, "row sequence"), stored.offset, stored.size
        )
    return ColumnSequence()


def decode_index_section(data: bytes | memoryview) -> list[IndexSegment]:
    """Return the index segments that an index section lists.

    Raises:
        CorruptError: the bytes are damaged.
    """
    try:
        message = table_pb2.IndexSection.FromString(data)
    except DecodeError:
        raise CorruptError("the index section is not a valid message") from None
    return [_index_segment(segment) for segment in message.indices]


def _index_segment(message: table_pb2.IndexMetadata) -> IndexSegment:
    if len(message.uuid.uuid) != 16:
        raise CorruptError(f"index {message.name!r} has an id of {len(message.uuid.uuid)} bytes")
    return IndexSegment(
        uuid=str(UUID(bytes=message.uuid.uuid)),
        name=message.name,
        fields=tuple(message.fields),
        dataset_version=message.dataset_version,
        fragment_bitmap=message.fragment_bitmap,
        type_url=message.index_details.type_url,
        details=message.index_details.value,
        index_version=message.index_version if message.HasField("index_version") else None,
        created_at=_created_at(message),
        base_id=message.base_id if message.HasField("base_id") else None,
        files=tuple(
            IndexFile(checked_path(file.path, "index file"), file.size_bytes)
            for file in message.files
        ),
    )


def _created_at(message: table_pb2.IndexMetadata) -> datetime | None:
    if not message.HasField("created_at"):
        return None
    try:
        return _EPOCH + timedelta(milliseconds=message.created_at)
    except OverflowError:
        raise CorruptError(f"index {message.name!r} has no date as its time") from None
