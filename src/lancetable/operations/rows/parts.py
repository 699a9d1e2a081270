"""Divide a version into parts of a few fragments, and read rows of a part.

A part is the version itself with a few of its fragments only. It can be sent anywhere, and every
reader takes it for a version.

A ``RowSet`` is a compact set of rows of one fragment. A change may concern every row of a table, so
the set must not take more memory than the rows:

=========  ==============================  =====================
form       when                            bytes
=========  ==============================  =====================
range      no row in between is missing    none
bits       many rows                       an eighth per row in between
numbers    few rows                        four per row
=========  ==============================  =====================
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from lancetable.commit.snapshot import Snapshot
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import Fragment
from lancetable.fragment.blobs import read_payloads
from lancetable.fragment.reader import FragmentReader
from lancetable.fragment.readers import Readers
from lancetable.fragment.select import Columns, keep
from lancetable.operations.run.memory import collector_paused
from lancetable.operations.run.runner import Runner, Threads, ThreadsForWaiting
from lancetable.scan.plan import ScanPlan, Window, windows
from lancetable.scan.request import MiB
from lancetable.scan.result import Piece, finish
from lancetable.scan.row_size import measured
from lancetable.scan.small_fragments import SMALL_WINDOW_ROWS

PART_ROWS = 256 * 1024
PART_FRAGMENTS = 256
MANY_SMALL = 64
WINDOW_BYTES = 8 * MiB
WINDOW_ROWS = 256 * 1024


def part_of(snapshot: Snapshot, fragments: Iterable[Fragment]) -> Snapshot:
    """Return a version that has some of the fragments only."""
    return snapshot._replace(manifest=snapshot.manifest._replace(fragments=tuple(fragments)))


def parts(snapshot: Snapshot, rows: int = PART_ROWS) -> Iterator[Snapshot]:
    """Divide a version into parts of neighbouring fragments with about so many rows each."""
    waiting = iter(snapshot.manifest.fragments)
    left = len(snapshot.manifest.fragments)
    while left:
        group: list[Fragment] = []
        held = 0
        with collector_paused(left):
            for fragment in waiting:
                group.append(fragment)
                held += fragment.physical_rows or rows
                if held >= rows or len(group) == PART_FRAGMENTS:
                    break
        left -= len(group)
        yield part_of(snapshot, group)


def suited(runner: Runner, parts: Sequence[Snapshot]) -> Runner:
    """Return what runs a step that reads all of some parts.

    To read many fragments of a few rows is work for Python, which threads cannot share.
    """
    if not isinstance(runner, Threads) or not parts or parts[0].store.width > 1:
        return runner
    fragments = parts[0].manifest.fragments
    is_small = len(fragments) >= MANY_SMALL and all(
        0 < one.physical_rows <= SMALL_WINDOW_ROWS for one in fragments
    )
    return ThreadsForWaiting(runner) if is_small else runner


def part_windows(plan: ScanPlan, readers: Readers) -> Iterator[Window]:
    """Cut all rows of a part into ranges that decode to a bounded number of bytes."""
    pace = measured((plan.early, plan.late), readers.source)
    step = min(pace.rows(WINDOW_BYTES), WINDOW_ROWS)
    for position in range(len(readers)):
        yield from windows(position, 0, readers[position].opened.rows, step)


def cut_offsets(plan: ScanPlan, readers: Readers, offsets: Offsets) -> Iterator[Offsets]:
    """Cut rows of a fragment, ascending, into runs that decode to a bounded number of bytes."""
    pace = measured((plan.early, plan.late), readers.source)
    step = min(pace.rows(WINDOW_BYTES), WINDOW_ROWS)
    for first in range(0, len(offsets), step):
        yield offsets[first : first + step]


def read_rows(plan: ScanPlan, reader: FragmentReader, offsets: Offsets | range) -> Piece:
    """Return rows of a fragment, live or not, by their offsets, which ascend."""
    count = len(offsets)
    if not count:
        return Piece(0, [[] for _ in plan.types])
    first, last = int(offsets[0]), int(offsets[-1]) + 1
    columns: Columns
    if isinstance(offsets, range) or last - first == count:
        columns = reader.read(plan.late, range(first, last))
    elif count < plan.gather_below * (last - first):
        columns = reader.read(plan.late, offsets)
    else:
        mask = np.zeros(last - first, np.bool_)
        mask[offsets - first] = True
        columns = keep(reader.read(plan.late, range(first, last)), mask)
    for slot, field in plan.blobs:
        columns[slot] = read_payloads(reader.opened, field, columns[slot])
    return finish(plan, count, columns)


_BITS = 8
_NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """Offsets of one fragment, each once."""

    start: int
    stop: int
    count: int
    bits: npt.NDArray[np.uint8] | None = None
    numbers: npt.NDArray[np.uint32] | None = None

    @classmethod
    def of(cls, offsets: npt.NDArray[np.integer]) -> Self:
        """Remember offsets, which ascend."""
        count = len(offsets)
        if not count:
            return cls(0, 0, 0)
        start, stop = int(offsets[0]), int(offsets[-1]) + 1
        if stop - start == count:
            return cls(start, stop, count)
        if stop - start < count * _NUMBER_BYTES * _BITS:
            flags = np.zeros(stop - start, np.bool_)
            flags[offsets - start] = True
            return cls(start, stop, count, bits=np.packbits(flags))
        return cls(start, stop, count, numbers=offsets.astype(np.uint32))

    def __len__(self) -> int:
        return self.count

    def offsets(self) -> Offsets:
        """Return the offsets, ascending."""
        if self.bits is not None:
            flags = np.unpackbits(self.bits, count=self.stop - self.start)
            return np.flatnonzero(flags) + self.start
        if self.numbers is not None:
            return self.numbers.astype(np.int64)
        return np.arange(self.start, self.stop)

    def __array__(
        self,
        dtype: npt.DTypeLike | None = None,
        copy: bool | None = None,  # noqa: FBT001 - NumPy's protocol
    ) -> npt.NDArray[np.generic]:
        """Return the offsets; called by NumPy."""
        made = self.offsets()
        return made if dtype is None else made.astype(dtype, copy=bool(copy))

    def union(self, offsets: Offsets) -> "RowSet":
        """Return the rows together with others, which ascend."""
        return RowSet.of(np.union1d(self.offsets(), offsets)) if self.count else RowSet.of(offsets)
