"""Read and count rows that indices name, in place of whole fragments.

Named rows that are neighbours are read as ranges; others one by one, those of many fragments
together. They are read by a plan of what is left of the predicate.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from lancetable.expression import Expression
from lancetable.scan.answers import Known, Offsets
from lancetable.scan.plan import ScanPlan, Window, windows

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
        for position, (offsets, rest) in self.parts:
            if offsets is None:
                yield from every((position,))
            elif are_runs(offsets):
                yield from self._ranges(position, offsets, rest, step)
            else:
                plan = self.plan_of(rest)
                for first in range(0, len(offsets), step):
                    part = offsets[first : first + step]
                    yield Window(position, int(part[0]), int(part[-1]) + 1, part, plan)

    def _ranges(
        self, position: int, offsets: Offsets, rest: Expression | None, step: int
    ) -> Iterator[Window]:
        plan = self.plan_of(rest)
        edges = np.flatnonzero(np.diff(offsets) > 1) + 1
        for run in np.split(offsets, edges):
            for window in windows(position, int(run[0]), int(run[-1]) + 1, step):
                yield window._replace(plan=plan)


def are_runs(offsets: Offsets) -> bool:
    """Return whether ascending offsets, of which there are some, are mostly neighbours."""
    if len(offsets) < RUN_ROWS:
        return False
    runs = int(np.count_nonzero(offsets[1:] - offsets[:-1] > 1)) + 1
    return len(offsets) >= RUN_ROWS * runs
