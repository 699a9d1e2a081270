"""Read and count rows that indices name, in place of whole fragments.

Named rows that are neighbours are read as ranges; others one by one, those of many fragments
together. They are read by a plan of what is left of the predicate.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from lancetable.expression import Expression
from lancetable.scan.answers import Known, Offsets
from lancetable.scan.plan import ScanPlan, Window

RUN_ROWS = 64
"""Rows that have on average so many neighbours are read as ranges."""


class Part(NamedTuple):
    """A fragment by its position, and what is known of it."""

    position: int
    known: Known


class Named(NamedTuple):
    """The rows that indices name, and how they are read."""

    parts: Iterable[Part]
    """The fragments in which rows may match, in table order; without offsets to be scanned."""

    plan_of: Callable[[Expression | None], ScanPlan]
    """Returns the plan of what is left of the predicate."""

    def windows(
        self, every: Callable[[Iterable[int]], Iterator[Window]], step: int
    ) -> Iterator[Window]:
        """Yield the windows to read: of named rows at most ``step``, of others all."""
        for part in self.parts:
            if part.known.offsets is None:
                yield from every((part.position,))
            else:
                yield from named_windows(part, self.plan_of, step)


def named_windows(
    part: Part, plan_of: Callable[[Expression | None], ScanPlan], step: int
) -> Iterator[Window]:
    """Yield windows of at most ``step`` of the rows that indices name in a fragment."""
    position, (offsets, rest) = part
    if offsets is None:
        raise AssertionError("no rows of the fragment are named")
    whole = Window(position, int(offsets[0]), int(offsets[-1]) + 1, offsets, plan_of(rest))
    if not are_runs(offsets):
        yield from whole.parts(step)
        return
    for run in np.split(offsets, np.flatnonzero(np.diff(offsets) > 1) + 1):
        ends = whole._replace(start=int(run[0]), stop=int(run[-1]) + 1, offsets=None)
        yield from ends.parts(step)


def are_runs(offsets: Offsets) -> bool:
    """Return whether ascending offsets, of which there are some, are mostly neighbours."""
    if len(offsets) < RUN_ROWS:
        return False
    runs = int(np.count_nonzero(offsets[1:] - offsets[:-1] > 1)) + 1
    return len(offsets) >= RUN_ROWS * runs
