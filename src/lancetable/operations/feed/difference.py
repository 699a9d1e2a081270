"""Find the rows that differ between two neighbouring versions.

1. Fragments that are the same in both are left out; so are rows that were only moved.
2. Rows that only the older version has were removed, rows that only the newer has were added.
3. With stable row ids, a row that was removed here and added there with the same id was updated,
   or just moved when the version that last touched it is the same.
4. Rows of a fragment whose columns got other files were updated in place.

Without stable row ids nothing connects a row with the one that replaced it: then an update is a
delete and an insert.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.commit import transaction as op
from lancetable.commit.apply.derived_fields import find_fragments, fragment_ids, have_same_ids
from lancetable.commit.apply.lineage import matched_offsets
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.arrays import Mask, Offsets
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.flags import Feature
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import LAST_UPDATED_AT, ROW_ID
from lancetable.operations.feed.task import Link, has_other_values, have_same_columns

Ids = npt.NDArray[np.uint64]

_WITHOUT_ROWS = (
    op.Clone,
    op.CreateIndex,
    op.ReserveFragments,
    op.UpdateBases,
    op.UpdateConfig,
    op.UpdateMemWalState,
)
"""Operations that change no rows."""
_STABLE = int(Feature.STABLE_ROW_IDS)


class Portion(NamedTuple):
    """Rows of one fragment that changed; the ``updated`` ones are images of the same row."""

    fragment: Fragment
    offsets: Offsets
    updated: Mask


class Difference(NamedTuple):
    """Rows that a version removed from the one before, and rows that it added."""

    removed: list[Portion]
    added: list[Portion]


class Side(NamedTuple):
    """A version, and where the columns of the feed are in it."""

    snapshot: Snapshot
    links: Sequence[Link]


def difference(before: Side | None, after: Side) -> Difference:
    """Return the rows that a version changed; ``before`` of ``None`` is the empty table.

    Raises:
        UnsupportedError: the version does not say what it did, and it cannot be found out.
    """
    if before is None:
        opened = _Opened(after.snapshot)
        return Difference([], [opened.whole(one) for one in after.snapshot.manifest.fragments])
    operation = _operation(after.snapshot)
    if isinstance(operation, _WITHOUT_ROWS):
        return Difference([], [])
    if not isinstance(operation, op.Overwrite):
        _check_identities(before.snapshot, after.snapshot)
    if isinstance(operation, op.Rewrite) and not _is_stable(before, after):
        _check_moved(before.snapshot, after.snapshot)
        return Difference([], [])
    found = _Comparison(before, after, operation).run()
    if not found.removed or not found.added or isinstance(operation, op.Overwrite):
        return found
    if not _is_stable(before, after):
        if operation is None or isinstance(operation, op.Unknown):
            raise _unknowable(after.snapshot)
        return found
    return _identified(before, after, found, operation)


def _operation(snapshot: Snapshot) -> op.Operation | None:
    transaction = snapshot.transaction()
    return None if transaction is None else transaction.operation


def _is_stable(before: Side, after: Side) -> bool:
    flags = before.snapshot.manifest.reader_flags & after.snapshot.manifest.reader_flags
    return bool(flags & _STABLE)


def _check_moved(before: Snapshot, after: Snapshot) -> None:
    """Check that as many rows arrived as left; the counts in the transaction may be older."""
    old_ids, new_ids = fragment_ids(before.manifest), fragment_ids(after.manifest)
    old = _live(find_fragments(before.manifest, sorted(old_ids - new_ids)).values())
    new = _live(find_fragments(after.manifest, sorted(new_ids - old_ids)).values())
    if old is not None and new is not None and old != new:
        raise CorruptError(
            f"version {after.version} records only moved rows, but {old} rows became {new}",
            path=after.manifest_path,
        )


def _check_identities(before: Snapshot, after: Snapshot) -> None:
    """Check that both versions mean the same fragment by the same id."""
    if not have_same_ids(before.manifest, after.manifest):
        raise UnsupportedError(
            f"fragments of version {before.version} or {after.version} share ids and cannot be "
            "followed from one to the other; request the changes before and after them"
        )


def _live(fragments: Iterable[Fragment]) -> int | None:
    total = 0
    for fragment in fragments:
        deleted = fragment.deletion_file.deleted_rows if fragment.deletion_file else 0
        if not fragment.physical_rows or (fragment.deletion_file and not deleted):
            return None
        total += fragment.physical_rows - deleted
    return total


def _unknowable(snapshot: Snapshot) -> UnsupportedError:
    return UnsupportedError(
        f"the operation of version {snapshot.version} is unknown, and without stable row ids "
        "changed rows cannot be distinguished from moved ones; request the changes before and "
        "after it"
    )


class _Opened:
    """The fragments of one version, opened as far as rows and deletions go."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._files = DataFiles(snapshot)

    def fragment(self, fragment: Fragment) -> OpenFragment:
        return OpenFragment(fragment, self._files)

    def live(self, fragment: Fragment) -> Mask:
        opened = self.fragment(fragment)
        live = np.ones(opened.rows, np.bool_)
        if opened.deletions is not None:
            live[opened.deletions.offsets] = False
        return live

    def whole(self, fragment: Fragment) -> Portion:
        return _portion(fragment, np.flatnonzero(self.live(fragment)))


def _portion(fragment: Fragment, offsets: Offsets, *, updated: bool = False) -> Portion:
    return Portion(fragment, offsets, np.full(len(offsets), updated))


class _Comparison:
    """Two versions side by side."""

    def __init__(self, before: Side, after: Side, operation: op.Operation | None) -> None:
        self.before, self.after, self.operation = before, after, operation
        self.old, self.new = _Opened(before.snapshot), _Opened(after.snapshot)
        self.is_alike = have_same_columns(before.links, after.links)
        self.removed: list[Portion] = []
        self.added: list[Portion] = []

    def run(self) -> Difference:
        old_ids = fragment_ids(self.before.snapshot.manifest)
        new_ids = fragment_ids(self.after.snapshot.manifest)
        both = old_ids & new_ids
        if isinstance(self.operation, op.Overwrite):
            # Old releases counted fragments from 0 again, so that an id proves nothing here.
            both = frozenset()
        elif isinstance(self.operation, op.Append | op.Delete | op.Update) and self.is_alike:
            both &= self.operation.touched.updated
        old = find_fragments(self.before.snapshot.manifest, sorted(old_ids - new_ids | both))
        new = find_fragments(self.after.snapshot.manifest, sorted(new_ids - old_ids | both))
        if isinstance(self.operation, op.Overwrite):
            old = {one.id: one for one in self.before.snapshot.manifest.fragments}
            new = {one.id: one for one in self.after.snapshot.manifest.fragments}
        for id_, fragment in old.items():
            if id_ not in both:
                self.removed.append(self.old.whole(fragment))
            elif fragment != new[id_] or not self.is_alike:
                self._compare(fragment, new[id_])
        self.added.extend(self.new.whole(one) for id_, one in new.items() if id_ not in both)
        return Difference(*map(_filled, (self.removed, self.added)))

    def _compare(self, old: Fragment, new: Fragment) -> None:
        """Note which rows of a fragment went, came back, or have other values."""
        was, is_ = self.old.live(old), self.new.live(new)
        if len(was) != len(is_):
            self.removed.append(_portion(old, np.flatnonzero(was)))
            self.added.append(_portion(new, np.flatnonzero(is_)))
            return
        self.removed.append(_portion(old, np.flatnonzero(was & ~is_)))
        self.added.append(_portion(new, np.flatnonzero(is_ & ~was)))
        if has_other_values((old, self.before.links), (new, self.after.links)):
            offsets = np.flatnonzero(was & is_ & self._matched(new, len(is_)))
            self.removed.append(_portion(old, offsets, updated=True))
            self.added.append(_portion(new, offsets, updated=True))

    def _matched(self, fragment: Fragment, rows: int) -> Mask:
        """Return the rows that an update recorded as changed; all when it recorded none."""
        matched = np.ones(rows, np.bool_)
        if isinstance(self.operation, op.Update):
            offsets = matched_offsets(
                fragment,
                self.operation.updated_fragment_offsets,
                self.operation.updated_fragment_offset_bitmaps,
            )
            if offsets is not None:
                matched[:] = False
                matched[offsets.astype(np.int64)] = True
        return matched


def _filled(portions: Iterable[Portion]) -> list[Portion]:
    return [one for one in portions if len(one.offsets)]


def _identified(
    before: Side, after: Side, found: Difference, operation: op.Operation | None
) -> Difference:
    """Return the difference with rows recognised by their ids: updated, or only moved."""
    old = _sequences(before.snapshot, found.removed)
    new = _sequences(after.snapshot, found.added)
    common, in_old, in_new = np.intersect1d(old.ids, new.ids, return_indices=True)
    is_moved = np.zeros(len(common), np.bool_)
    if isinstance(operation, op.Rewrite):
        is_moved[:] = True
    elif (
        old.touched is not None
        and new.touched is not None
        and have_same_columns(before.links, after.links)
    ):
        is_moved = old.touched[in_old] == new.touched[in_new]
    return Difference(
        _marked(found.removed, old.places[in_old], is_moved),
        _marked(found.added, new.places[in_new], is_moved),
    )


class _Sequences(NamedTuple):
    """Of the rows of all portions that were not updated in place: id, last version, place."""

    ids: Ids
    touched: Ids | None
    places: Offsets


def _sequences(snapshot: Snapshot, portions: Sequence[Portion]) -> _Sequences:
    opened = _Opened(snapshot)
    ids, versions, places = [], [], []
    start, is_known = 0, True
    for portion in portions:
        fragment = opened.fragment(portion.fragment)
        chosen = np.flatnonzero(~portion.updated)
        stored = fragment.sequence(ROW_ID)
        if stored is None:
            raise CorruptError(
                f"fragment {portion.fragment.id} has no row ids, but the table has stable row ids",
                path=snapshot.manifest_path,
            )
        ids.append(stored[portion.offsets[chosen]])
        updated = fragment.sequence(LAST_UPDATED_AT)
        is_known = is_known and updated is not None
        if updated is not None:
            versions.append(updated[portion.offsets[chosen]])
        places.append(chosen + start)
        start += len(portion.offsets)
    touched_by = np.concatenate(versions) if is_known and versions else None
    return _Sequences(np.concatenate(ids), touched_by, np.concatenate(places))


def _marked(portions: Sequence[Portion], places: Offsets, is_moved: Mask) -> list[Portion]:
    """Return portions without the rows that only moved; the other known ones were updated."""
    total = sum(len(one.offsets) for one in portions)
    updated, moved = np.zeros(total, np.bool_), np.zeros(total, np.bool_)
    updated[places[~is_moved]] = True
    moved[places[is_moved]] = True
    marked, start = [], 0
    for portion in portions:
        stop = start + len(portion.offsets)
        kept = ~moved[start:stop]
        is_update = (portion.updated | updated[start:stop])[kept]
        marked.append(Portion(portion.fragment, portion.offsets[kept], is_update))
        start = stop
    return _filled(marked)
