"""Map old row addresses to new ones, rewrite by rewrite.

Of each group of fragments the addresses of the rows that were kept are recorded, in ascending
order. The k-th of them now stands at place k of the new fragments, one behind the other; all other
rows of the old fragments were deleted.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lancetable.errors import CorruptError
from lancetable.format.rows import OFFSET_BITS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Addresses: TypeAlias = npt.NDArray[np.uint64]
    Mask: TypeAlias = npt.NDArray[np.bool_]


class FragmentDigest(NamedTuple):
    """A fragment as it was when rows moved."""

    id: int
    physical_rows: int
    deleted_rows: int = 0


class ReuseGroup(NamedTuple):
    """Fragments whose rows moved to other fragments, in order."""

    kept: bytes
    """The old addresses of all rows that were kept, as a roaring map of 64 bits."""
    old_fragments: tuple[FragmentDigest, ...]
    new_fragments: tuple[FragmentDigest, ...]

    @property
    def old_ids(self) -> frozenset[int]:
        """The ids of the old fragments."""
        return frozenset(one.id for one in self.old_fragments)

    @property
    def new_ids(self) -> frozenset[int]:
        """The ids of the new fragments."""
        return frozenset(one.id for one in self.new_fragments)


class ReuseVersion(NamedTuple):
    """One rewrite; ``dataset_version`` is the version it followed."""

    dataset_version: int
    groups: tuple[ReuseGroup, ...]


class Built(NamedTuple):
    """A version, and the fragments of it that an index segment was built from."""

    dataset_version: int
    fragment_ids: Set[int]


@dataclass(frozen=True, slots=True)
class FragmentReuse:
    """All rewrites on record, oldest first."""

    versions: tuple[ReuseVersion, ...] = ()

    def groups(self) -> Iterable[ReuseGroup]:
        """Yield the groups of all rewrites, oldest first."""
        return (group for version in self.versions for group in version.groups)

    def covered(self, ids: Set[int]) -> frozenset[int]:
        """Return which fragments an index describes now that was built from some.

        New fragments are described when all old ones of their group were.
        """
        found = set(ids)
        for group in self.groups():
            if not found.isdisjoint(group.old_ids):
                is_whole = group.old_ids <= found
                found -= group.old_ids
                found |= group.new_ids if is_whole else frozenset()
        return frozenset(found)

    def origins(self, ids: Set[int]) -> frozenset[int]:
        """Return some fragments and all those whose rows came to stand in them.

        The whole groups are named: an index must not describe a part of one.
        """
        found = set(ids)
        for version in reversed(self.versions):
            for group in version.groups:
                if not found.isdisjoint(group.new_ids):
                    found |= group.old_ids
        return frozenset(found)

    def new_ids(self) -> frozenset[int]:
        """Return the ids of all fragments that rewrites made."""
        return frozenset(id_ for group in self.groups() for id_ in group.new_ids)

    def translate(self, addresses: "Addresses") -> "tuple[Addresses, Mask]":
        """Return where rows stand now, and which of them were kept; others keep their address.

        Raises:
            CorruptError: the record contradicts itself.
        """
        import numpy as np  # noqa: PLC0415 - reading a table does without it

        now = np.array(addresses, np.uint64)
        is_kept = np.ones(now.size, np.bool_)
        for group in self.groups():
            ids = np.array(sorted(group.old_ids), np.uint64)
            moved = np.flatnonzero(is_kept & np.isin(now >> np.uint64(OFFSET_BITS), ids))
            if not moved.size:
                continue
            old, new = _moves(group)
            place = np.searchsorted(old, now[moved])
            found = np.zeros(moved.size, np.bool_)
            inside = place < old.size
            found[inside] = old[place[inside]] == now[moved[inside]]
            now[moved[found]] = new[place[found]]
            is_kept[moved[~found]] = False
        return now, is_kept

    def trimmed(self, built: "Iterable[Built]") -> "FragmentReuse":
        """Return the rewrites that some index segment may still need.

        A segment needs a rewrite that came after it was built, when it describes the old fragments
        or what became of them: some writers name the new ones in the segment, although the
        addresses in its files are the old ones.
        """
        seen = [(version, set(self.origins(ids))) for version, ids in built]
        kept = []
        for version in self.versions:
            is_needed = False
            for built_from, ids in seen:
                for group in version.groups:
                    if built_from <= version.dataset_version and not ids.isdisjoint(
                        group.old_ids | group.new_ids
                    ):
                        is_needed = True
                        ids.update(group.new_ids)
            if is_needed:
                kept.append(version)
        return FragmentReuse(tuple(kept))


def _moves(group: ReuseGroup) -> "tuple[Addresses, Addresses]":
    """Return the old addresses of the rows that were kept, ascending, and their new ones."""
    import numpy as np  # noqa: PLC0415

    from lancetable.format.manifest.roaring import decode_treemap  # noqa: PLC0415

    most = sum(one.physical_rows for one in group.new_fragments)
    old = decode_treemap(group.kept, most=most)
    new = np.concatenate(
        [
            np.arange(one.physical_rows, dtype=np.uint64) + np.uint64(one.id << OFFSET_BITS)
            for one in group.new_fragments
        ]
        or [np.empty(0, np.uint64)]
    )
    if old.size != new.size:
        raise CorruptError(
            f"the record of moved rows has {old.size} rows for fragments of {new.size}"
        )
    return old, new
