"""A list of fragments with a few changes, and unique ids for its fragments.

The list is described by its difference: a table may have many thousands of fragments, and a commit
that adds one should not have to look at the others.

A fragment id should be unique within a version, but releases 0.9 to 0.39 of the Lance library kept
the ids that distributed writers gave to fragments they appended. In memory the first fragment with
an id keeps it, or the first that has a deletion file, since the id is part of that file's name. The
others get ids that no fragment of the table ever had, so that a row address names one row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

from lancetable.format.manifest.model import Fragment


def new_ids(
    ids: Sequence[int], has_deletions: Callable[[int], bool], largest: int
) -> dict[int, int]:
    """Return the new ids of fragments that share theirs, by place in the list.

    Args:
        ids: the id of each fragment.
        has_deletions: tells of a place whether its fragment has a deletion file.
        largest: the largest id that a fragment of the table ever had.
    """
    if len(set(ids)) == len(ids):
        return {}
    keepers: dict[int, int] = {}
    for place, id_ in enumerate(ids):
        keeper = keepers.setdefault(id_, place)
        if keeper != place and has_deletions(place) and not has_deletions(keeper):
            keepers[id_] = place
    moved = [place for place, id_ in enumerate(ids) if keepers[id_] != place]
    first = max(largest, *ids) + 1
    return {place: first + number for number, place in enumerate(moved)}


if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: object) -> object:
        """Replace the decorator that typing has only from Python 3.12 on."""
        return method


class EditedFragments(Sequence[Fragment]):
    """A list in which some fragments were replaced, some removed and some added, sorted by id."""

    __slots__ = ("_all", "added", "base", "changed", "removed")

    def __init__(
        self,
        base: Sequence[Fragment],
        *,
        changed: Mapping[int, Fragment] | None = None,
        removed: frozenset[int] = frozenset(),
        added: Sequence[Fragment] = (),
    ) -> None:
        self.base = base
        self.changed = dict(changed or {})
        self.removed = removed
        self.added = tuple(added)
        self._all: tuple[Fragment, ...] | None = None

    def spelled_out(self) -> tuple[Fragment, ...]:
        """Return all fragments."""
        if self._all is None:
            kept = [
                self.changed.get(fragment.id, fragment)
                for fragment in self.base
                if fragment.id not in self.removed
            ]
            self._all = tuple(sorted((*kept, *self.added), key=lambda fragment: fragment.id))
        return self._all

    @override
    def __len__(self) -> int:
        return len(self.spelled_out())

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fragment, ...]: ...
    @override
    def __getitem__(self, index: int | slice) -> Fragment | tuple[Fragment, ...]:
        return self.spelled_out()[index]

    @override
    def __iter__(self) -> Iterator[Fragment]:
        return iter(self.spelled_out())

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.spelled_out() == tuple(other)

    @override
    def __hash__(self) -> int:
        return hash(self.spelled_out())

    @override
    def __reduce__(self) -> tuple[type, tuple[tuple[Fragment, ...]]]:
        return tuple, (self.spelled_out(),)
