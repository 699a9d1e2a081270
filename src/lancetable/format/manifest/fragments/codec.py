"""Fragments between their messages and values.

Stored fragments are turned into values one by one when they are asked for, and are written again
as the bytes they came from: opening a table, and adding to it, needs none of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, overload

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.fragments.edited import EditedFragments, new_ids
from lancetable.format.manifest.fragments.entry.codec import (
    decode_deletion_file,
    decode_fragment,
    encode_fragment,
    misnamed,
)
from lancetable.format.manifest.model import FileNames, Fragment, Trust
from lancetable.format.manifest.names import checked_path, deletion_path
from lancetable.format.proto import table_pb2

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: object) -> object:
        """Replace the decorator that typing has only from Python 3.12 on."""
        return method


_DAMAGED = "the list of fragments is damaged; open an older version, or run repair_table"
_BY_ID = attrgetter("id")
_SEQUENCES = ("row_id_sequence", "created_at_version_sequence", "last_updated_at_version_sequence")


class StoredFragments(Sequence[Fragment]):
    """Fragments as they are stored, each decoded when it is first asked for.

    Either the messages or the bytes they are written as are at hand; the other is made on demand.
    Of a manifest that was read there are the bytes, inside of the message that is their owner.

    Fragments of a manifest that share an id get ids of their own before anybody sees them
    (:mod:`.numbering`). Their ids are compared when the first of them is asked for.
    """

    def __init__(
        self,
        messages: Sequence[table_pb2.DataFragment] | None,
        trust: Trust,
        *,
        owner: table_pb2.Manifest | table_pb2.ManifestTop | None = None,
        encoded: bytes | None = None,
    ) -> None:
        self.trust = trust
        self._owner = owner
        self._encoded = encoded
        self._decoded: dict[int, Fragment] = {}
        if messages is not None:
            self._messages = messages
        if messages is not None or encoded is not None:
            self._numbers = _AS_STORED

    @cached_property
    def _messages(self) -> Sequence[table_pb2.DataFragment]:
        try:
            manifest = table_pb2.Manifest.FromString(self._bytes())
        except DecodeError:
            raise CorruptError(_DAMAGED, path=self.trust.path) from None
        parsed: Sequence[table_pb2.DataFragment] = manifest.fragments
        return parsed

    def encoded(self) -> bytes:
        """Return the bytes that stand for these fragments inside a manifest message."""
        renamed = None if self._is_own_unseen else self._numbers.renamed
        if renamed is not None:
            return bytes(table_pb2.Manifest(fragments=renamed).SerializeToString())
        return self._bytes()

    def _bytes(self) -> bytes:
        """Return the bytes of the fragments as they were stored."""
        if self._encoded is None:
            only = self._owner or table_pb2.Manifest(fragments=self._messages)
            # The top of a manifest does not know its fragments, and keeps them as they were read.
            for field, _ in only.ListFields():
                if field.name != "fragments":
                    only.ClearField(field.name)
            self._encoded, self._owner = bytes(only.SerializeToString()), None
        return self._encoded

    @cached_property
    def _numbers(self) -> "_Numbering":
        return _number(self._messages, self.trust.max_fragment_id)

    @cached_property
    def _named(self) -> Sequence[table_pb2.DataFragment]:
        """The messages, each with an id of its own if they are those of a manifest."""
        renamed = self._numbers.renamed
        return self._messages if renamed is None else renamed

    def shared_ids(self) -> frozenset[int]:
        """Return the stored ids that more than one fragment has."""
        return frozenset(self._numbers.stored_ids.values())

    def numbered_above(self, largest: int) -> "StoredFragments":
        """Return the same fragments; those that share an id get ids above ``largest``."""
        if not self._numbers.stored_ids:
            return self
        moved = StoredFragments(self._messages, self.trust)
        moved._numbers = _number(self._messages, max(largest, self.trust.max_fragment_id or 0))
        return moved

    def largest_id(self) -> int | None:
        """Return the largest id.

        ``None`` when there is no fragment, or when nobody looked yet at what this library wrote
        itself: then the manifest names the largest id.
        """
        if self._is_own_unseen:
            return None
        numbers = self._numbers
        if numbers is not _AS_STORED:
            return numbers.largest
        return max(map(_BY_ID, self._messages), default=None)

    @property
    def _is_own_unseen(self) -> bool:
        """True for fragments that this process wrote in order, and nobody looked at yet.

        Those of a manifest that was read are looked at before anything is built on them, whoever
        wrote it: its bytes may be damaged.
        """
        known = self.__dict__
        return self.trust.is_own and "_numbers" in known and "_messages" not in known

    def largest_field_id(self) -> int:
        """Return the largest id of a column that a file has or had, -1 when there is none."""
        ids = (max(file.fields, default=-1) for one in self._messages for file in one.files)
        return max(ids, default=-1)

    def inline_row_ids(self) -> Iterator[tuple[int, bytes]]:
        """Yield the ids of fragments with the row ids that the manifest holds, all others left out.

        Nothing is yielded for what this library wrote itself and nobody looked at yet.
        """
        if not self._is_own_unseen:
            for message in self._named:
                if message.inline_row_ids:
                    yield message.id, message.inline_row_ids

    def find(self, fragment_id: int) -> int | None:
        """Return the position of a fragment."""
        from bisect import bisect_left  # noqa: PLC0415 - opening a table does without

        messages = self._named
        place = bisect_left(messages, fragment_id, key=_BY_ID)
        if place < len(messages) and messages[place].id == fragment_id:
            return place
        return next((at for at, id_ in enumerate(self.ids()) if id_ == fragment_id), None)

    def ids(self) -> list[int]:
        """Return the ids of all fragments without looking at anything else."""
        return list(map(_BY_ID, self._named))

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
        message = self._named[number]
        try:
            return decode_fragment(message, self.trust, self._numbers.stored_ids.get(number))
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
                deletion = decode_deletion_file(message.deletion_file)
                found.deletions.add((deletion_path(message.id, deletion), deletion.base_id))
            for group in _SEQUENCES:
                name = message.WhichOneof(group)
                if name is not None and name.startswith("external"):
                    found.sequences.add(checked_path(getattr(message, name).path, "row sequence"))
        return found

    def edited(self, edit: EditedFragments, trust: Trust) -> "StoredFragments":
        """Return the stored form of these fragments after an edit.

        Raises:
            UnsupportedError: a fragment that shares its id has a deletion file named by that id.
        """
        added = encode_fragments(edit.added)
        if self.trust.right_counts and not edit.changed and not edit.removed:
            largest = self.largest_id()
            is_after = not added or largest is None or added[0].id > largest
            if is_after and (self._is_own_unseen or self._numbers.is_sorted):
                content = self._bytes() + table_pb2.Manifest(fragments=added).SerializeToString()
                return StoredFragments(None, trust, encoded=content)
        self.check_deletion_names(edit.removed.union(edit.changed))
        owner = table_pb2.Manifest()
        kept = owner.fragments
        kept.MergeFrom(self._named)
        if not self.trust.right_counts:
            _forget_counts(kept)
        _apply(kept, edit)
        kept.extend(added)
        if added or not self._numbers.is_sorted:
            kept.sort(key=_BY_ID)
        return StoredFragments(kept, trust, owner=owner)

    def check_deletion_names(self, but: Set[int] = frozenset()) -> None:
        """Check that each deletion file is named by the id of its fragment, but of some fragments.

        Raises:
            UnsupportedError: a fragment shares its id, and its deletion file is named by that id.
        """
        messages = self._named
        for place, id_ in self._numbers.stored_ids.items():
            if messages[place].id not in but and messages[place].HasField("deletion_file"):
                raise misnamed(id_)


class _Numbering(NamedTuple):
    """The ids of fragments: copies of all messages where some need ids other than the stored."""

    stored_ids: Mapping[int, int]
    """The stored ids of fragments that got others, by place."""
    renamed: Sequence[table_pb2.DataFragment] | None
    largest: int | None
    is_sorted: bool


_AS_STORED = _Numbering({}, None, None, is_sorted=True)


def _number(messages: Sequence[table_pb2.DataFragment], largest: int | None) -> _Numbering:
    ids = list(map(_BY_ID, messages))
    fresh = new_ids(
        ids,
        lambda place: messages[place].HasField("deletion_file"),
        -1 if largest is None else largest,
    )
    if not fresh:
        return _Numbering({}, None, max(ids, default=None), ids == sorted(ids))
    renamed = table_pb2.Manifest(fragments=messages).fragments
    for place, id_ in fresh.items():
        renamed[place].id = id_
    stored = {place: ids[place] for place in fresh}
    return _Numbering(stored, renamed, max(fresh.values()), is_sorted=False)


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
    """Return fragments in the form in which they are stored, each with an id of its own.

    Raises:
        UnsupportedError: a fragment that shares its id has a deletion file named by that id.
    """
    if isinstance(fragments, StoredFragments):
        is_unique = fragments._is_own_unseen or not fragments.shared_ids()  # noqa: SLF001
        is_kept = fragments.trust.right_counts and is_unique
        return fragments if is_kept else fragments.edited(EditedFragments(()), trust)
    if isinstance(fragments, EditedFragments) and isinstance(fragments.base, StoredFragments):
        return fragments.base.edited(fragments, trust)
    owner = table_pb2.Manifest(fragments=encode_fragments(fragments))
    return StoredFragments(owner.fragments, trust, owner=owner)


def encode_fragments(fragments: Iterable[Fragment]) -> Sequence[table_pb2.DataFragment]:
    """Return the messages of fragments."""
    if isinstance(fragments, StoredFragments) and fragments.trust.right_counts:
        return fragments._named  # noqa: SLF001 - the same module
    return list(map(encode_fragment, fragments))
