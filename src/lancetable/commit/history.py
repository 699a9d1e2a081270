"""How did a table come to be as it is: its versions with what each of them did.

Of a manifest only the heading and the transaction are looked at. The one before it is decoded only
when an operation does not tell by itself how many rows it took away.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

from lancetable.commit import refs
from lancetable.commit.effects import UNKNOWN, Effect, effect_of
from lancetable.commit.history_entry import HistoryEntry
from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.commit.transaction import COMMIT_MESSAGE, Transaction
from lancetable.commit.versions import VersionInfo, listed, manifest_view
from lancetable.errors import CorruptError, InputError
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.codec import decode_heading, decode_manifest
from lancetable.format.schema.model import Schema
from lancetable.store import Store

if TYPE_CHECKING:
    import pyarrow as pa


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
        return "\n".join(map(_line, self._entries)) or "no versions"

    def to_arrow(self) -> "pa.Table":
        """Return one row for each version."""
        from lancetable.commit.history_table import as_table  # noqa: PLC0415 - needs pyarrow

        return as_table(self._entries)


def read_history(snapshot: Snapshot, *, limit: int | None = None) -> History:
    """Return what the versions of a branch did, up to the snapshot's, newest first.

    Raises:
        InputError: the limit is negative.
        CorruptError: a manifest or a transaction is damaged.
    """
    if limit is not None and limit < 0:
        raise InputError(f"a history cannot have {limit} versions")
    store = snapshot.store
    found = [info for info in listed(store) if info.version <= snapshot.version]
    found.reverse()
    names: dict[int, list[str]] = {}
    for tag in refs.tags(snapshot.location).values():
        if tag.branch == snapshot.branch:
            names.setdefault(tag.version, []).append(tag.name)
    kept = found if limit is None else found[:limit]
    older: list[VersionInfo | None] = [*found[1 : len(kept) + 1]]
    older += [None] * (len(kept) - len(older))
    return History(
        [
            _entry(store, info, before, tuple(names.get(info.version, ())))
            for info, before in zip(kept, older, strict=True)
        ]
    )


def transactions_after(
    snapshot: Snapshot, version: int
) -> Iterator[tuple[int, Transaction | None]]:
    """Yield how the versions after one, up to the snapshot's, came about, oldest first.

    Raises:
        CorruptError: a manifest or a transaction is damaged.
    """
    store = snapshot.store
    for info in listed(store):
        if version < info.version <= snapshot.version:
            data = manifest_view(store, info)
            heading = decode_heading(data, shown(store, info.path))
            yield info.version, read_transaction(store, heading, info.path, data)


def _entry(
    store: Store, info: VersionInfo, older: VersionInfo | None, tags: tuple[str, ...]
) -> HistoryEntry:
    data = manifest_view(store, info)
    heading = decode_heading(data, shown(store, info.path))
    transaction = read_transaction(store, heading, info.path, data)
    if transaction is None:
        return HistoryEntry(info.version, heading.timestamp, None, UNKNOWN, heading.writer)

    def before() -> Manifest | None:
        if info.version == 1:
            return Manifest(0, Schema(()), ())
        if older is None or older.version != info.version - 1:
            return None
        return decode_manifest(store.read(older.path), shown(store, older.path))

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
        tags,
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
