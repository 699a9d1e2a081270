"""Narrow a scan to the rows that indices name.

Rows of an exact answer are not compared again; those of another are compared with the parts of the
predicate that were not answered exactly. A fragment that no index describes is scanned; so is one
of which an index names a large part.
"""

import logging
from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

from lancetable.commit.snapshot import Snapshot
from lancetable.expression import Expression, to_sql
from lancetable.format.rows import OFFSET_BITS, RowSet
from lancetable.fragment.readers import Readers
from lancetable.scan.answers import NO_ROWS, Answer, Known, Offsets
from lancetable.scan.ask_indices import FAULTS, Indices, physical_rows
from lancetable.scan.named_rows import Named, Part, are_runs
from lancetable.scan.plan import ScanPlan
from lancetable.scan.plans import Plans

SCAN_FROM = 0.05
"""When an index names a larger part of the rows of a fragment, in many places, it is scanned."""

TAKEN_ROWS = 64 * 1024
"""Rows that indices name are taken at once up to so many, and in parts beyond."""

_log = logging.getLogger("lancetable.scan")


class Narrowing:
    """The rows that indices leave of a predicate."""

    def __init__(self, answer: Answer, readers: Readers) -> None:
        self._answer = answer
        self._readers = readers

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The fragments in which rows may match, in table order; without offsets to be scanned."""
        fragments = self._readers.source.manifest.fragments
        each = (
            Part(position, self._guarded(position, self._answer.known(fragment.id)))
            for position, fragment in enumerate(fragments)
        )
        return tuple(one for one in each if one.known.offsets is None or len(one.known.offsets) > 0)

    @property
    def is_complete(self) -> bool:
        """Whether no fragment is scanned."""
        return all(part.known.offsets is not None for part in self.parts)

    def _guarded(self, position: int, known: Known) -> Known:
        offsets = known.offsets
        if offsets is None or not len(offsets):
            return known
        rows = physical_rows(self._readers, position)
        offsets = offsets[: np.searchsorted(offsets, rows)] if offsets[-1] >= rows else offsets
        is_large = len(offsets) > SCAN_FROM * rows and not are_runs(offsets)
        if is_large or (known.rest is not None and len(offsets) > rows / 2):
            return Known(None, known.rest)
        return Known(offsets, known.rest)

    def places(self) -> tuple[Offsets, Offsets] | None:
        """Return the fragments of all rows that match by position, and the offsets of the rows.

        None when some rows have still to be compared, or are many.
        """
        positions, offsets = [NO_ROWS], [NO_ROWS]
        rows = 0
        for position, (named, rest) in self.parts:
            if named is None or rest is not None:
                return None
            rows += len(named)
            if rows > TAKEN_ROWS:
                return None
            live = self._readers[position].live_among(named)
            positions.append(np.full(len(live), position))
            offsets.append(live)
        return np.concatenate(positions), np.concatenate(offsets)

    def named(
        self, plan_of: Callable[[Expression | None], ScanPlan], parts: Iterable[Part] | None = None
    ) -> Named:
        """Return the rows to read by the plans of what is left of the predicate."""
        return Named(self.parts if parts is None else parts, plan_of)

    def count(self) -> tuple[int, tuple[Part, ...]]:
        """Return the number of live rows in exact answers, and the parts that are left to count."""
        exact = self._answer.exact()
        if exact is None:
            return 0, self.parts
        rows, fragments = exact
        readers = self._readers
        named = [readers.positions[id_] for id_ in fragments]
        for position in readers.with_deletions(named):
            deletions = readers[position].opened.deletions
            if deletions is not None:
                first = np.uint64(readers.source.manifest.fragments[position].id << OFFSET_BITS)
                rows -= RowSet.from_addresses(deletions.offsets.astype(np.uint64) + first)
        left = len(fragments) < len(readers)
        return len(rows), tuple(
            part for part in (self.parts if left else ()) if part.position not in set(named)
        )

    def describe(self) -> list[str]:
        """Return a line for each part of the predicate that indices answered."""
        lines = []
        for leaf in self._answer.leaves:
            for rows, fragments in leaf.found:
                exact = "" if rows.is_exact else "at most "
                lines.append(
                    f"index {', '.join(leaf.names)} on {to_sql(leaf.part)}: {exact}{len(rows)} "
                    f"rows in {len(fragments)} fragments"
                )
        scanned = sum(part.known.offsets is None for part in self.parts)
        lines.append(f"fragments read by row: {len(self.parts) - scanned}, scanned: {scanned}")
        rests = {
            to_sql(part.known.rest)
            for part in self.parts
            if part.known.offsets is not None and part.known.rest is not None
        }
        if scanned < len(self.parts):
            lines.append(f"rows are compared again with: {' or '.join(sorted(rests)) or 'nothing'}")
        return lines


def narrow(readers: Readers, where: Expression, plans: Plans | None = None) -> Narrowing | None:
    """Ask the indices of a version about a bound predicate; None when none answers a part of it.

    ``plans`` are those of earlier scans of the version, which keep what they asked.
    """
    source = readers.source
    if not isinstance(source, Snapshot) or source.manifest.index_section is None:
        return None
    asked = None if plans is None else plans.indices
    if asked is None or asked.readers is not readers:
        try:
            asked = Indices.of(source, readers)
        except FAULTS as fault:
            _log.warning("indices are not used: %s", fault)
            return None
        if plans is not None:
            plans.indices = asked
    answer = asked.answer(where)
    return None if answer is None else Narrowing(answer, readers)
