"""One fragment between its message and its value."""

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.model import (
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionKind,
    ExternalSequence,
    Fragment,
    InlineSequence,
    SequenceSource,
    Trust,
)
from lancetable.format.manifest.names import checked_path
from lancetable.format.proto import table_pb2
from lancetable.format.rows import MAX_FRAGMENT_ID, MAX_OFFSET

_DELETION_KINDS = {0: DeletionKind.ARROW, 1: DeletionKind.BITMAP}
_DELETION_NUMBERS = {kind: number for number, kind in _DELETION_KINDS.items()}


def decode_fragment(
    message: table_pb2.DataFragment, trust: Trust, stored_id: int | None = None
) -> Fragment:
    """Return the fragment of a message; ``stored_id`` is the id in the name of its deletion file.

    Raises:
        CorruptError: it contradicts itself or the flags of the version.
        UnsupportedError: it has files of a kind that is not known.
    """
    if message.id > MAX_FRAGMENT_ID:
        raise CorruptError("fragment ids fit into 32 bits")
    if message.physical_rows > MAX_OFFSET + 1:
        raise CorruptError(f"has {message.physical_rows} rows, expected at most {MAX_OFFSET + 1}")
    if message.overlays:
        raise UnsupportedError(
            "values are patched by overlay files, which this release cannot read; "
            "the table was left untouched"
        )
    row_ids = _sequence(message, "row_id_sequence")
    if trust.stable_row_ids and row_ids is None:
        raise CorruptError("the table has stable row ids, the fragment has none")
    return Fragment(
        message.id,
        tuple([decode_data_file(file) for file in message.files]),
        (
            decode_deletion_file(message.deletion_file, stored_id)
            if message.HasField("deletion_file")
            else None
        ),
        message.physical_rows if trust.right_counts else 0,
        row_ids,
        _sequence(message, "created_at_version_sequence"),
        _sequence(message, "last_updated_at_version_sequence"),
    )


def misnamed(shared_id: int) -> UnsupportedError:
    """Return the error for a deletion file that other readers would not find."""
    return UnsupportedError(
        f"two fragments share the id {shared_id}, and the one that needs another id has a deletion "
        "file named by the shared one; let repair_table give both an id of their own"
    )


def encode_fragment(fragment: Fragment) -> table_pb2.DataFragment:
    """Return the message of a fragment.

    Raises:
        UnsupportedError: its deletion file is named by the id of another fragment.
    """
    message = table_pb2.DataFragment(
        id=fragment.id,
        files=map(encode_data_file, fragment.files),
        physical_rows=fragment.physical_rows,
    )
    deletion = fragment.deletion_file
    if deletion is not None:
        if deletion.fragment_id is not None and deletion.fragment_id != fragment.id:
            raise misnamed(deletion.fragment_id)
        stored = message.deletion_file
        stored.file_type = _DELETION_NUMBERS[deletion.kind]
        stored.read_version = deletion.read_version
        stored.id = deletion.id
        stored.num_deleted_rows = deletion.deleted_rows
        if deletion.base_id is not None:
            stored.base_id = deletion.base_id
        stored.SetInParent()
    if fragment.row_ids is not None:
        _set_sequence(message, "row_ids", fragment.row_ids)
    if fragment.created_at is not None:
        _set_sequence(message, "created_at_versions", fragment.created_at)
    if fragment.last_updated_at is not None:
        _set_sequence(message, "last_updated_at_versions", fragment.last_updated_at)
    return message


def decode_data_file(message: table_pb2.DataFile) -> DataFile:
    """Return the data file of a message.

    Raises:
        CorruptError: it contradicts itself, or its path leaves the table.
    """
    fields, columns = tuple(message.fields), tuple(message.column_indices)
    if columns and len(columns) != len(fields):
        raise CorruptError(
            f"data file {message.path!r} lists {len(fields)} fields and {len(columns)} columns"
        )
    if len(set(columns)) != len(columns):
        _check_columns(message.path, fields, columns)
    return DataFile(
        checked_path(message.path, "data file"),
        fields,
        columns,
        message.file_major_version,
        message.file_minor_version,
        message.file_size_bytes or None,
        message.base_id if message.HasField("base_id") else None,
    )


def _check_columns(path: str, fields: tuple[int, ...], columns: tuple[int, ...]) -> None:
    """Refuse a column that holds the values of two fields."""
    owners: dict[int, int] = {}
    for id_, column in zip(fields, columns, strict=True):
        if id_ >= 0 and column >= 0 and owners.setdefault(column, id_) != id_:
            raise CorruptError(
                f"data file {path!r} has fields {owners[column]} and {id_} both in column {column}"
            )


def encode_data_file(file: DataFile) -> table_pb2.DataFile:
    """Return the message of a data file."""
    return table_pb2.DataFile(
        path=file.path,
        fields=file.fields,
        column_indices=file.column_indices,
        file_major_version=file.major,
        file_minor_version=file.minor,
        file_size_bytes=file.size or 0,
        base_id=file.base_id,
    )


def decode_deletion_file(
    message: table_pb2.DeletionFile, stored_id: int | None = None
) -> DeletionFile:
    """Return the deletion file of a message; ``stored_id`` is the fragment id in its name.

    Raises:
        UnsupportedError: it is of a kind that is not known.
    """
    kind = _DELETION_KINDS.get(message.file_type)
    if kind is None:
        raise UnsupportedError(f"deletion files of kind {message.file_type} cannot be read")
    return DeletionFile(
        kind,
        message.read_version,
        message.id,
        message.num_deleted_rows,
        message.base_id if message.HasField("base_id") else None,
        stored_id,
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


def _set_sequence(message: table_pb2.DataFragment, name: str, sequence: SequenceSource) -> None:
    match sequence:
        case InlineSequence(data):
            setattr(message, f"inline_{name}", data)
        case ExternalSequence(path, offset, size):
            stored = getattr(message, f"external_{name}")
            stored.path, stored.offset, stored.size = path, offset, size
        case ColumnSequence():
            getattr(message, f"column_{name}").SetInParent()
