"""Fragments between their messages and values.

Stored fragments are turned into values one by one when they are asked for, and are written again
as the bytes they came from: opening a table, and adding to it, needs none of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, overload

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.fragments.edited import EditedFragments
from lancetable.format.manifest.model import (
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionKind,
    ExternalSequence,
    FileNames,
    Fragment,
    InlineSequence,
    SequenceSource,
    Trust,
)
from lancetable.format.manifest.names import checked_path, deletion_path
from lancetable.format.proto import table_pb2
from lancetable.format.rows import MAX_FRAGMENT_ID

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: object) -> object:
        """Stand in for the decorator that typing has only from Python 3.12 on."""
        return method


_DELETION_KINDS = {0: DeletionKind.ARROW, 1: DeletionKind.BITMAP}
_DELETION_NUMBERS = {kind: number for number, kind in _DELETION_KINDS.items()}
_DAMAGED = "the list of fragments is damaged; open an older version, or let repair_table make one"
_BY_ID = attrgetter("id")
_SEQUENCES = ("row_id_sequence", "created_at_version_sequence", "last_updated_at_version_sequence")


class StoredFragments(Sequence[Fragment]):
    """Fragments as they are stored, each decoded when it is first asked for.

    Either the messages or the bytes they are written as are at hand; the other is made on demand.
    Of a manifest that was read there are the bytes, inside of the message that is their owner.
    """

    __slots__ = ("_count", "_decoded", "_encoded", "_owner", "_parsed", "trust")

    def __init__(
        self,
        messages: Sequence[table_pb2.DataFragment] | None,
        trust: Trust,
        *,
        owner: table_pb2.Manifest | table_pb2.ManifestTop | None = None,
        encoded: tuple[bytes, int] | None = None,
    ) -> None:
        self.trust = trust
        self._parsed = messages
        self._owner = owner
        self._encoded = encoded[0] if encoded else None
        self._count = encoded[1] if encoded else None
        self._decoded: dict[int, Fragment] = {}

    @property
    def _messages(self) -> Sequence[table_pb2.DataFragment]:
        if self._parsed is None:
            try:
                self._parsed = table_pb2.Manifest.FromString(self.encoded()).fragments
            except DecodeError:
                raise CorruptError(_DAMAGED, path=self.trust.path) from None
        return self._parsed

    def encoded(self) -> bytes:
        """Return the bytes that stand for these fragments inside a manifest message."""
        if self._encoded is None:
            only = self._owner or table_pb2.Manifest(fragments=self._messages)
            # The top of a manifest does not know its fragments, and keeps them as they were read.
            for field, _ in only.ListFields():
                if field.name != "fragments":
                    only.ClearField(field.name)
            self._encoded, self._owner = bytes(only.SerializeToString()), None
        return self._encoded

    def last_id(self) -> int | None:
        """Return the id of the last fragment.

        ``None`` when there is none, or when nobody looked yet at what this library wrote itself:
        then the manifest names the largest id.
        """
        messages = self._messages if self._count is None else self._parsed
        return int(messages[-1].id) if messages else None

    def largest_id(self) -> int | None:
        """Return the largest id."""
        return max(map(_BY_ID, self._messages), default=None)

    def largest_field_id(self) -> int:
        """Return the largest id of a column that a file has or had, -1 when there is none."""
        ids = (max(file.fields, default=-1) for one in self._messages for file in one.files)
        return max(ids, default=-1)

    def find(self, fragment_id: int) -> int | None:
        """Return the position of a fragment."""
        from bisect import bisect_left  # noqa: PLC0415 - opening a table does without

        messages = self._messages
        place = bisect_left(messages, fragment_id, key=_BY_ID)
        if place < len(messages) and messages[place].id == fragment_id:
            return place
        return next((at for at, id_ in enumerate(self.ids()) if id_ == fragment_id), None)

    def ids(self) -> list[int]:
        """Return the ids of all fragments without looking at anything else."""
        return list(map(_BY_ID, self._messages))

    @override
    def __len__(self) -> int:
        if self._count is None:
            self._count = len(self._messages)
        return self._count

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
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    @override
    def __hash__(self) -> int:
        return hash(tuple(self))

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
            return _fragment(message, self.trust)
        except CorruptError as cause:
            raise cause.at(self.trust.path, f"fragment {message.id}") from None
        except UnsupportedError as cause:
            raise UnsupportedError(f"{self.trust.path}: fragment {message.id}: {cause}") from None

    def live_rows(self) -> int | None:
        """Return the rows that are not deleted, or ``None`` when the manifest does not say."""
        if not self.trust.right_counts and len(self):
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
                        self.trust.path, f"fragment {message.id}"
                    )
                rows -= deleted
            total += rows
        return total

    def file_names(self) -> FileNames:
        """Return the files of all fragments, without turning the fragments into values.

        Raises:
            CorruptError: a path leaves its folder.
            UnsupportedError: a fragment has files of a kind that is not known.
        """
        found = FileNames(set(), set(), set())
        for message in self._messages:
            if message.overlays:
                raise UnsupportedError(f"{self.trust.path}: fragment {message.id} has overlays")
            for file in message.files:
                found.data.add((file.path, file.base_id if file.HasField("base_id") else None))
            if message.HasField("deletion_file"):
                deletion = _deletion_file(message.deletion_file)
                found.deletions.add((deletion_path(message.id, deletion), deletion.base_id))
            for group in _SEQUENCES:
                name = message.WhichOneof(group)
                if name is not None and name.startswith("external"):
                    found.sequences.add(checked_path(getattr(message, name).path, "row sequence"))
        return found

    def edited(self, edit: EditedFragments, trust: Trust) -> "StoredFragments":
        """Return the stored form of these fragments after an edit."""
        added = encode_fragments(edit.added)
        if self.trust.right_counts and not edit.changed and not edit.removed:
            last = self.last_id()
            if not added or last is None or added[0].id > last:
                content = self.encoded() + table_pb2.Manifest(fragments=added).SerializeToString()
                return StoredFragments(None, trust, encoded=(content, len(self) + len(added)))
        owner = table_pb2.Manifest()
        kept = owner.fragments
        kept.MergeFrom(self._messages)
        if not self.trust.right_counts:
            _forget_counts(kept)
        _apply(kept, edit)
        kept.extend(added)
        if added:
            kept.sort(key=_BY_ID)
        return StoredFragments(kept, trust, owner=owner)


def _forget_counts(messages: Iterable[table_pb2.DataFragment]) -> None:
    """Mark counts as unknown: readers trust them in versions that name a writer."""
    for message in messages:
        message.physical_rows = 0
        if message.HasField("deletion_file"):
            message.deletion_file.num_deleted_rows = 0


def _apply(messages: Sequence[table_pb2.DataFragment], edit: EditedFragments) -> None:
    if not edit.changed and not edit.removed:
        return
    for place in range(len(messages) - 1, -1, -1):
        id_ = messages[place].id
        if id_ in edit.removed:
            del messages[place]  # type: ignore[attr-defined]
        elif id_ in edit.changed:
            messages[place].CopyFrom(encode_fragment(edit.changed[id_]))


def store_fragments(fragments: Sequence[Fragment], trust: Trust) -> StoredFragments:
    """Return fragments in the form in which they are stored."""
    if isinstance(fragments, StoredFragments) and fragments.trust.right_counts:
        return fragments
    if isinstance(fragments, EditedFragments) and isinstance(fragments.base, StoredFragments):
        return fragments.base.edited(fragments, trust)
    owner = table_pb2.Manifest(fragments=encode_fragments(fragments))
    return StoredFragments(owner.fragments, trust, owner=owner)


def encode_fragments(fragments: Iterable[Fragment]) -> Sequence[table_pb2.DataFragment]:
    """Return the messages of fragments."""
    if isinstance(fragments, StoredFragments) and fragments.trust.right_counts:
        return fragments._messages  # noqa: SLF001 - the same module
    return [encode_fragment(fragment) for fragment in fragments]


def _fragment(message: table_pb2.DataFragment, trust: Trust) -> Fragment:
    if message.id > MAX_FRAGMENT_ID:
        raise CorruptError("fragment ids fit into 32 bits")
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
        _deletion_file(message.deletion_file) if message.HasField("deletion_file") else None,
        message.physical_rows if trust.right_counts else 0,
        row_ids,
        _sequence(message, "created_at_version_sequence"),
        _sequence(message, "last_updated_at_version_sequence"),
    )


def encode_fragment(fragment: Fragment) -> table_pb2.DataFragment:
    """Return the message of a fragment."""
    message = table_pb2.DataFragment(
        id=fragment.id,
        files=[encode_data_file(file) for file in fragment.files],
        physical_rows=fragment.physical_rows,
    )
    deletion = fragment.deletion_file
    if deletion is not None:
        stored = message.deletion_file
        stored.file_type = _DELETION_NUMBERS[deletion.kind]
        stored.read_version = deletion.read_version
        stored.id = deletion.id
        stored.num_deleted_rows = deletion.deleted_rows
        if deletion.base_id is not None:
            stored.base_id = deletion.base_id
        stored.SetInParent()
    _set_sequence(message, "row_ids", fragment.row_ids)
    _set_sequence(message, "created_at_versions", fragment.created_at)
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
    return DataFile(
        checked_path(message.path, "data file"),
        fields,
        columns,
        message.file_major_version,
        message.file_minor_version,
        message.file_size_bytes or None,
        message.base_id if message.HasField("base_id") else None,
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


def _set_sequence(
    message: table_pb2.DataFragment, name: str, sequence: SequenceSource | None
) -> None:
    match sequence:
        case None:
            return
        case InlineSequence(data):
            setattr(message, f"inline_{name}", data)
        case ExternalSequence(path, offset, size):
            stored = getattr(message, f"external_{name}")
            stored.path, stored.offset, stored.size = path, offset, size
        case ColumnSequence():
            getattr(message, f"column_{name}").SetInParent()
