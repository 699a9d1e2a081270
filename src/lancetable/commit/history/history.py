"""Read the history of a table: its versions, and what each of them did.

Only the heading and the transaction of a manifest are read. The manifest before it is decoded only
when an operation does not record how many rows it removed. The fields of an
entry are the columns of a history.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, overload

from lancetable.commit import refs
from lancetable.commit.history.effects import UNKNOWN, Effect, effect_of
from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.commit.transaction import COMMIT_MESSAGE, Transaction
from lancetable.commit.versions import VersionInfo, listed, listed_entries, manifest_view
from lancetable.commit.versions.listing import ManifestCache
from lancetable.errors import CorruptError, InputError, printable
from lancetable.format.manifest import Manifest, WriterVersion
from lancetable.format.manifest.codec import decode_heading, decode_manifest
from lancetable.format.schema.model import Schema
from lancetable.records import DETAIL, arrow_table
from lancetable.store import Store

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version, and what it did."""

    version: int
    timestamp: datetime | None
    operation: str | None
    """The name of the operation; ``None`` when the writer left no record."""
    effect: Effect = UNKNOWN
    writer: WriterVersion | None = None
    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, metadata=DETAIL)
    tags: tuple[str, ...] = ()
    read_version: int | None = field(default=None, metadata=DETAIL)
    """The version that the change was based on; others may have been committed in between."""
    uuid: str | None = field(default=None, metadata=DETAIL)


_ENTRIES: ManifestCache[HistoryEntry] = ManifestCache()


class History(Sequence[HistoryEntry]):
    """Versions of a table, newest first."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Sequence[HistoryEntry]) -> None:
        self._entries = tuple(entries)

    @overload
    def __getitem__(self, place: int) -> HistoryEntry: ...
    @overload
    def __getitem__(self, place: slice) -> "History": ...
    def __getitem__(self, place: int | slice) -> "HistoryEntry | History":
        if isinstance(place, slice):
            return History(self._entries[place])
        return self._entries[place]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(tuple(entry.version for entry in self._entries))

    def __repr__(self) -> str:
        return "\n".join(printable(_line(one)) for one in self._entries) or "no versions"

    def to_arrow(self) -> "pa.Table":
        """Return one row for each version."""
        return arrow_table(self._entries, HistoryEntry)


def read_history(snapshot: Snapshot, *, limit: int | None = None) -> History:
    """Return the history of a branch up to the version of a snapshot, newest first.

    Raises:
        InputError: the limit is negative.
        CorruptError: a manifest or a transaction is damaged.
    """
    if limit is not None and limit < 0:
        raise InputError(f"limit is {limit}; give a number from 0")
    store = snapshot.store
    found = [each for each in listed_entries(store) if each[0].version <= snapshot.version]
    found.reverse()
    names: dict[int, list[str]] = {}
    for tag in refs.tags(snapshot.location).values():
        if tag.branch == snapshot.branch:
            names.setdefault(tag.version, []).append(tag.name)
    kept = found if limit is None else found[:limit]
    entries: list[HistoryEntry] = []
    manifests = _Manifests(store)
    for place, (info, listed_file) in enumerate(kept):
        older = found[place + 1][0] if place + 1 < len(found) else None
        if older is not None and older.version != info.version - 1:
            older = None
        read = partial(_entry, manifests, info, older)
        entry = _ENTRIES.get(store, listed_file, read, older is None)
        tags = names.get(info.version)
        entries.append(entry if tags is None else replace(entry, tags=tuple(tags)))
    return History(entries)


class _Manifests:
    """Manifest files; the last one is kept, as it is needed again as the next older version."""

    __slots__ = ("_last", "store")

    def __init__(self, store: Store) -> None:
        self.store = store
        self._last: tuple[str, memoryview] | None = None

    def view(self, info: VersionInfo) -> memoryview:
        """Return the content of a manifest file."""
        if self._last is None or self._last[0] != info.path:
            self._last = (info.path, manifest_view(self.store, info))
        return self._last[1]


def transactions_after(
    snapshot: Snapshot, version: int
) -> Iterator[tuple[int, Transaction | None]]:
    """Yield the transactions of the versions after one, up to the snapshot's, oldest first.

    Raises:
        CorruptError: a manifest or a transaction is damaged.
    """
    store = snapshot.store
    for info in listed(store):
        if version < info.version <= snapshot.version:
            data = manifest_view(store, info)
            heading = decode_heading(data, shown(store, info.path))
            yield info.version, read_transaction(store, heading, info.path, data)


def _entry(manifests: _Manifests, info: VersionInfo, older: VersionInfo | None) -> HistoryEntry:
    store = manifests.store
    data = manifests.view(info)
    heading = decode_heading(data, shown(store, info.path))
    transaction = read_transaction(store, heading, info.path, data)
    if transaction is None:
        return HistoryEntry(info.version, heading.timestamp, None, UNKNOWN, heading.writer)

    def before() -> Manifest | None:
        if info.version == 1:
            return Manifest(0, Schema(()), ())
        if older is None:
            return None
        return decode_manifest(bytes(manifests.view(older)), shown(store, older.path))

    properties = dict(transaction.properties)
    message = properties.pop(COMMIT_MESSAGE, None)
    return HistoryEntry(
        info.version,
        heading.timestamp,
        transaction.operation_name,
        _effect(transaction, before, shown(store, info.path)),
        heading.writer,
        message,
        properties,
        (),
        transaction.read_version,
        transaction.uuid,
    )


def _effect(transaction: Transaction, before: Callable[[], Manifest | None], path: str) -> Effect:
    try:
        return effect_of(transaction.operation, before)
    except CorruptError as cause:
        raise cause.at(path, "transaction") from None


def _line(entry: HistoryEntry) -> str:
    time = entry.timestamp.isoformat(" ", "seconds") if entry.timestamp else "-"
    effect = entry.effect
    counts = (("+", effect.rows_added), ("-", effect.rows_removed), ("~", effect.rows_updated))
    words = [f"{sign}{count}" for sign, count in counts if count]
    words += [text for text in (effect.detail, effect.predicate, entry.message) if text]
    words += [f"[{tag}]" for tag in entry.tags]
    return f"{entry.version:>6}  {time}  {entry.operation or '?':<12} {'  '.join(words)}".rstrip()
