"""Windows of a few rows each, read together: one predicate and one gather for many fragments.

What is done once for each window costs more than the rows of a small one. So their rows are listed
by place, and the columns of all of them come from the compiled gather.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.fragment.projection import Projection
from lancetable.fragment.readers import Readers
from lancetable.fragment.select import Columns, Mask, keep
from lancetable.scan.plan import ScanPlan, Window
from lancetable.scan.result import Piece, finish, mask_of

if TYPE_CHECKING:
    import pyarrow as pa

SMALL_WINDOW_ROWS = 64
TOGETHER_FROM_WINDOWS = 8
"""From so many small windows on it pays to read them together."""
MOST_WINDOWS = 64

Integers = npt.NDArray[np.int64]


class Places(NamedTuple):
    """Rows by the positions of their fragments, which ascend, and by their offsets in them."""

    positions: Integers
    offsets: Integers

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.positions)

    def at(self, chosen: "Mask | Integers") -> "Places":
        """Return the rows that a mask keeps, or that stand at places."""
        return Places(self.positions[chosen], self.offsets[chosen])

    def by_fragment(self, beside: Integers) -> Iterator[tuple[int, Integers, Integers]]:
        """Yield the position of each fragment, the offsets of its rows, and what is beside them."""
        if not self.rows:
            return
        edges = np.flatnonzero(self.positions[1:] != self.positions[:-1]) + 1
        firsts = [0, *edges.tolist()]
        for first, last in zip(firsts, [*firsts[1:], self.rows], strict=True):
            yield int(self.positions[first]), self.offsets[first:last], beside[first:last]


def read_together(plan: ScanPlan, readers: Readers, windows: Sequence[Window]) -> Piece | None:
    """Return the rows of the result that several windows hold; None when that is not for them."""
    if len(windows) < TOGETHER_FROM_WINDOWS and not _is_corner(plan, readers, windows[0]):
        return None
    places = None if plan.blobs else live_rows(readers, windows)
    if places is None:
        return None
    kept: Columns = []
    if plan.where is not None:
        early = _columns(readers, plan.early, places)
        if early is None:
            return None
        mask = mask_of(plan.where, plan.early_names, early, places.rows)
        places = places.at(mask)
        if not places.rows:
            return finish(plan, 0, [])
        kept = keep(early, mask)
    late = _columns(readers, plan.late, places)
    return None if late is None else finish(plan, places.rows, kept + late)


def _is_corner(plan: ScanPlan, readers: Readers, window: Window) -> bool:
    """Say whether a window is a few rows of a large fragment, of which little should be decoded."""
    if plan.where is not None or window.offsets is not None or window.rows > SMALL_WINDOW_ROWS:
        return False
    return readers[window.fragment].opened.rows > SMALL_WINDOW_ROWS


def count_together(plan: ScanPlan, readers: Readers, windows: Sequence[Window]) -> int | None:
    """Return how many rows of several windows pass the predicate; None as above."""
    if len(windows) < TOGETHER_FROM_WINDOWS:
        return None
    places = live_rows(readers, windows)
    early = None if places is None else _columns(readers, plan.early, places)
    if places is None or early is None or plan.where is None:
        return None
    return int(np.count_nonzero(mask_of(plan.where, plan.early_names, early, places.rows)))


def small_groups(windows: Iterable[Window]) -> Iterator[list[Window]]:
    """Yield neighbouring small windows together, and every other window alone."""
    group: list[Window] = []
    for window in windows:
        is_small = window.rows <= SMALL_WINDOW_ROWS
        is_like = bool(group) and group[0].plan is window.plan
        if group and not (is_small and is_like and len(group) < MOST_WINDOWS):
            yield group
            group = []
        if is_small:
            group.append(window)
        else:
            yield [window]
    if group:
        yield group


def live_rows(readers: Readers, windows: Sequence[Window]) -> Places | None:
    """Return the live rows of small windows; None when one is not small."""
    sizes = [window.rows for window in windows]
    if max(sizes) > SMALL_WINDOW_ROWS:
        return None
    if readers.has_deletions or any(window.offsets is not None for window in windows):
        each = [_live_offsets(readers, window) for window in windows]
        sizes = list(map(len, each))
        offsets = np.concatenate(each)
    else:
        ends = np.cumsum(sizes)
        starts = np.array([window.start for window in windows]) - ends + sizes
        offsets = np.arange(int(ends[-1])) + np.repeat(starts, sizes)
    return Places(np.repeat([window.fragment for window in windows], sizes), offsets)


def _live_offsets(readers: Readers, window: Window) -> Integers:
    reader = readers[window.fragment]
    if window.offsets is None:
        return reader.live_offsets(window.start, window.stop)
    return reader.live_among(window.offsets)


def _columns(readers: Readers, projection: Projection, places: Places) -> Columns | None:
    """Return the columns of rows; None without compiled kernels, and for files far away."""
    fields = projection.fields
    found: Sequence[pa.Array | None] = []
    if fields:
        gather = readers.gather(projection)
        if gather is None:
            return None
        found = gather.by_place(places.positions, places.offsets)
    rest = [field for field, column in zip(fields, found, strict=True) if column is None]
    others = iter(_one_by_one(readers, Projection(rest, projection.system), places))
    columns = [next(others) if column is None else [column] for column in found]
    return [*columns, *others]


def _one_by_one(readers: Readers, projection: Projection, places: Places) -> Columns:
    """Read fragment by fragment what cannot be gathered."""
    columns: Columns = [[] for _ in range(len(projection))]
    if columns:
        for position, offsets, _ in places.by_fragment(places.offsets):
            found = readers[position].read(projection, offsets)
            for column, chunks in zip(columns, found, strict=True):
                column.extend(chunks)
    return columns
