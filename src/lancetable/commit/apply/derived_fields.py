"""Feature flags, largest ids in use and fragments by id, derived from a manifest.

Old distributed writers left versions in which fragments share an id. Their fragments get ids of
their own when the manifest is read, and keep those in the next version that this library makes. Two
versions by other writers may give the same id to different fragments, so an id is trusted across
such versions only where the fragments share a data file.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from lancetable.format.manifest import (
    ColumnSequence,
    Fragment,
    IndexSegment,
    Manifest,
    WriterVersion,
)
from lancetable.format.manifest.flags import STICKY, Feature
from lancetable.format.manifest.fragments import EditedFragments
from lancetable.format.manifest.fragments.codec import StoredFragments


def find_fragments(manifest: Manifest, ids: Iterable[int]) -> dict[int, Fragment]:
    """Return the fragments with these ids that exist; the others are not decoded."""
    fragments = manifest.fragments
    if not isinstance(fragments, StoredFragments):
        wanted = set(ids)
        return {one.id: one for one in fragments if one.id in wanted}
    return {id_: fragments[place] for id_ in ids if (place := fragments.find(id_)) is not None}


def fragment_ids(manifest: Manifest) -> frozenset[int]:
    """Return the ids of all fragments."""
    fragments = manifest.fragments
    if isinstance(fragments, StoredFragments):
        return frozenset(fragments.ids())
    if isinstance(fragments, EditedFragments) and isinstance(fragments.base, StoredFragments):
        kept = frozenset(fragments.base.ids()) - fragments.removed
        return kept | {one.id for one in fragments.added}
    return frozenset(one.id for one in fragments)


def shared_ids(manifest: Manifest) -> frozenset[int]:
    """Return the stored ids that more than one fragment of a version has."""
    fragments = manifest.fragments
    return fragments.shared_ids() if isinstance(fragments, StoredFragments) else frozenset()


def have_same_ids(old: Manifest, new: Manifest) -> bool:
    """Say whether two versions mean the same fragments by the same ids.

    Where no fragments share an id they do. Otherwise fragments are known by their data files.
    """
    if not shared_ids(old) and not shared_ids(new):
        return True
    before, after = files_of(old.fragments), files_of(new.fragments)
    owners = {path: id_ for id_, paths in before.items() for path in paths}
    return all(
        owners.get(path, id_) == id_ for id_, paths in after.items() for path in paths
    ) and not any(before[id_].isdisjoint(after[id_]) for id_ in before.keys() & after.keys())


def files_of(fragments: Iterable[Fragment]) -> dict[int, frozenset[str]]:
    """Return the paths of the data files of each fragment, by fragment id."""
    return {one.id: frozenset(file.path for file in one.files) for one in fragments}


# Plain numbers: operators of an enumeration cost a microsecond each, and every commit needs many.
_DELETIONS = int(Feature.DELETION_FILES)
_STABLE = int(Feature.STABLE_ROW_IDS)
_CONFIG = int(Feature.TABLE_CONFIG)
_BASES = int(Feature.BASE_PATHS)
_COVERING = int(Feature.COVERING_INDEX)
_MIXED = int(Feature.MIXED_FILE_VERSIONS)
_SPILLED = int(Feature.SPILLED_ROW_LINEAGE)
_LASTING = int(Feature.LASTING_FIELD_IDS)
_STICKY = int(STICKY) & ~_LASTING


def next_fragment_id(manifest: Manifest) -> int:
    """Return the smallest id that no fragment ever had."""
    fragments, known = manifest.fragments, manifest.max_fragment_id
    if isinstance(fragments, StoredFragments):
        # Old writers left the number out, or wrote a number that is too low.
        largest = fragments.largest_id()
    else:
        largest = max((fragment.id for fragment in fragments), default=None)
    return max(-1 if known is None else known, -1 if largest is None else largest) + 1


class Stamp(NamedTuple):
    """Fields that differ between versions with the same content."""

    version: int
    timestamp: datetime
    writer: WriterVersion
    transaction_file: str
    branch: str | None


def finished(
    before: Manifest, made: Manifest, indices: Sequence[IndexSegment] | None, stamp: Stamp
) -> Manifest:
    """Return the manifest with the numbers and flags that follow from its content.

    ``indices`` is ``None`` when they did not change.
    """
    largest = _largest_new_id(before, made)
    known = [id_ for id_ in (made.max_fragment_id, largest) if id_ is not None]
    reader, writer = _flags(before, made, indices)
    lasting = made.max_allocated_field_id
    if lasting is not None:
        lasting = max(lasting, *(field.id for field in made.schema.walk()))
    return made._replace(
        **stamp._asdict(),
        max_fragment_id=max(known, default=None),
        reader_flags=reader,
        writer_flags=writer,
        max_allocated_field_id=lasting,
    )


def _largest_new_id(before: Manifest, made: Manifest) -> int | None:
    fragments = made.fragments
    used = next_fragment_id(before) - 1
    if isinstance(fragments, EditedFragments):
        added = max([fragment.id for fragment in fragments.added], default=-1)
    elif fragments is before.fragments:
        added = -1
    else:
        added = max((fragment.id for fragment in fragments), default=-1)
    largest = max(used, added)
    return largest if largest >= 0 else None


def _flags(
    before: Manifest, made: Manifest, indices: Sequence[IndexSegment] | None
) -> tuple[int, int]:
    old = before.reader_flags
    both = made.reader_flags & _STABLE | (old | made.reader_flags) & _STICKY
    if _any(before, made, old & _DELETIONS, _has_deletions):
        both |= _DELETIONS
    if _any(before, made, old & _SPILLED, _is_spilled):
        both |= _SPILLED
    if _mixes_versions(before, made):
        both |= _MIXED
    if made.base_paths:
        both |= _BASES
    if indices is None:
        both |= old & _COVERING
    elif any(segment.covering_fields for segment in indices):
        both |= _COVERING
    writer = both | (_CONFIG if made.config else 0)
    if made.max_allocated_field_id is not None:
        writer |= _LASTING
    return both, writer


def _any(before: Manifest, made: Manifest, had: int, has: Callable[[Fragment], bool]) -> bool:
    """Say whether a condition holds for any fragment, checking as few of them as possible."""
    fragments = made.fragments
    if fragments is before.fragments:
        return bool(had)
    if not isinstance(fragments, EditedFragments) or fragments.base is not before.fragments:
        return any(map(has, fragments))
    if any(map(has, fragments.added)) or any(map(has, fragments.changed.values())):
        return True
    if not had:
        return False
    return any(map(has, fragments)) if fragments.changed or fragments.removed else True


def _has_deletions(fragment: Fragment) -> bool:
    return fragment.deletion_file is not None


def _is_spilled(fragment: Fragment) -> bool:
    sequences = (fragment.row_ids, fragment.created_at, fragment.last_updated_at)
    return ColumnSequence in map(type, sequences)


def _mixes_versions(before: Manifest, made: Manifest) -> bool:
    """Say whether a new file has another version than the manifest declares."""
    expected = _version(made.data_format)
    fragments = made.fragments
    if expected is None or fragments is before.fragments:
        return False
    new: Sequence[Fragment]
    if isinstance(fragments, EditedFragments):
        new = (*fragments.added, *fragments.changed.values())
    else:
        new = fragments
    for fragment in new:
        for file in fragment.files:
            if file.version != expected:
                return True
    return False


def _version(text: str) -> tuple[int, int] | None:
    major, _, minor = text.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        return None
    return int(major), int(minor)
