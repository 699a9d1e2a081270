"""A list of fragments with a few changes.

The list is described by its difference: a table may have many thousands of fragments, and a commit
that adds one should not have to look at the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

from lancetable.format.manifest.model import Fragment

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
