"""Compare two versions: columns, fragments, files and the rows in them.

Fragments are compared by their ids and files, so both versions should have a common origin: two
versions of one history, or of a branch and its parent. A row that was rewritten counts as gone from
one fragment and as new in another.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lancetable.commit.snapshot import Snapshot
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.codec import live_rows
from lancetable.format.schema.model import Field, Schema


class ColumnChange(NamedTuple):
    """A column that was added, dropped or changed; ``None`` when it does not exist."""

    id: int
    before: str | None
    after: str | None


class FileChange(NamedTuple):
    """A file that only one of the versions has."""

    kind: str
    path: str
    bytes: int | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two versions; counts are ``None`` where old writers left them out."""

    rows_before: int | None
    rows_after: int | None
    rows_new: int | None
    """Live rows in new fragments, or at offsets that had no live row before."""
    rows_gone: int | None
    columns: tuple[ColumnChange, ...]
    fragments_added: tuple[int, ...]
    fragments_removed: tuple[int, ...]
    fragments_changed: tuple[int, ...]
    files: tuple[FileChange, ...]

    @property
    def is_empty(self) -> bool:
        """True when both versions have the same content."""
        return not (self.columns or self.files or self.fragments_added or self.fragments_removed)


def compare(old: Snapshot, new: Snapshot) -> Difference:
    """Return what changed from one version to another."""
    before = {_identity(one): one for one in old.manifest.fragments}
    after = {_identity(one): one for one in new.manifest.fragments}
    added = [one for key, one in after.items() if key not in before]
    removed = [one for key, one in before.items() if key not in after]
    both = [(before[key], after[key]) for key in before.keys() & after.keys()]
    grown = sum(max(_live(now) - _live(was), 0) for was, now in both if _known(was, now))
    lost = sum(max(_live(was) - _live(now), 0) for was, now in both if _known(was, now))
    is_known = all(_known(*pair) for pair in both)
    return Difference(
        live_rows(old.manifest),
        live_rows(new.manifest),
        grown + sum(map(_live, added)) if is_known and _known(*added) else None,
        lost + sum(map(_live, removed)) if is_known and _known(*removed) else None,
        tuple(_columns(old.manifest.schema, new.manifest.schema)),
        tuple(sorted(one.id for one in added)),
        tuple(sorted(one.id for one in removed)),
        tuple(sorted(now.id for was, now in both if _content(old, was) != _content(new, now))),
        tuple(_files(old, new)),
    )


def _identity(fragment: Fragment) -> tuple[int, str]:
    return fragment.id, fragment.files[0].path if fragment.files else ""


def _known(*fragments: Fragment) -> bool:
    return all(
        one.physical_rows and (one.deletion_file is None or one.deletion_file.deleted_rows)
        for one in fragments
    )


def _live(fragment: Fragment) -> int:
    deletion = fragment.deletion_file
    return fragment.physical_rows - (deletion.deleted_rows if deletion else 0)


def _columns(old: Schema, new: Schema) -> Iterator[ColumnChange]:
    before, after = dict(_described(old)), dict(_described(new))
    for id_ in sorted(before.keys() | after.keys()):
        if before.get(id_) != after.get(id_):
            yield ColumnChange(id_, before.get(id_), after.get(id_))


def _described(schema: Schema) -> Iterator[tuple[int, str]]:
    def walk(field: Field, path: str) -> Iterator[tuple[int, str]]:
        name = f"{path}.{field.name}" if path else field.name
        yield field.id, f"{name} {field.logical_type}{'' if field.nullable else ' not null'}"
        for child in field.children:
            yield from walk(child, name)

    for top in schema.fields:
        yield from walk(top, "")


def _content(snapshot: Snapshot, fragment: Fragment) -> set[tuple[str, str, tuple[int, ...]]]:
    """Return what identifies the values and the deleted rows of a fragment."""
    found = {("data", file.path, file.fields) for file in fragment.files}
    if fragment.deletion_file is not None:
        path = snapshot.deletion_file_place(fragment, fragment.deletion_file)[1]
        found.add(("deletion", path, ()))
    return found


def _files(old: Snapshot, new: Snapshot) -> Iterator[FileChange]:
    before, after = dict(_places(old)), dict(_places(new))
    for key in sorted(before.keys() ^ after.keys()):
        is_new = key in after
        kind, _, path = key
        yield FileChange(kind, path, after[key] if is_new else before[key], is_new)


def _places(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str, str], int | None]]:
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            store, path = snapshot.data_file_place(file)
            yield ("data", store.root, path), file.size
        if fragment.deletion_file is not None:
            store, path = snapshot.deletion_file_place(fragment, fragment.deletion_file)
            yield ("deletion", store.root, path), None
    for segment in snapshot.indices():
        store, folder = snapshot.index_place(segment)
        for one in segment.files:
            yield ("index", store.root, f"{folder}/{one.path}"), one.size
