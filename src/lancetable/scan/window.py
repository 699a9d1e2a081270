"""Read one window of rows.

The columns of the predicate are read, the predicate says which rows stay, and the other columns
are read for those rows only.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import LimitError
from lancetable.file.read.codes import CodedChunk
from lancetable.format.limits import read_limits
from lancetable.fragment.blobs import read_payloads
from lancetable.fragment.projection import Projection
from lancetable.fragment.reader import FragmentReader
from lancetable.fragment.readers import Readers
from lancetable.fragment.select import (
    CodedColumns,
    Columns,
    Mask,
    decoded,
    keep,
    keep_coded,
    rows_of,
)
from lancetable.scan.coded_filter import coded_filter
from lancetable.scan.plan import ScanPlan, Window
from lancetable.scan.request import DEFAULTS
from lancetable.scan.result import Piece, finish, mask_of
from lancetable.scan.row_size import TELLING_ROWS, Pace, bytes_of

Offsets: TypeAlias = npt.NDArray[np.int64]


def read_window(plan: ScanPlan, readers: Readers, window: Window, pace: Pace) -> Piece:
    """Return the rows of the result that a window holds."""
    reader = readers[window.fragment]
    if window.offsets is not None:
        rows, columns = _named(plan, reader, window.offsets)
    elif plan.predicate is None:
        columns = reader.read_live(plan.late, window.start, window.stop)
        rows = _rows(reader, columns, window)
    else:
        rows, columns = _filtered(plan, reader, window)
    is_known = (pace.is_exact and plan.predicate is None) or window.offsets is not None
    if not is_known and window.stop - window.start >= TELLING_ROWS:
        pace.learn(window.stop - window.start, bytes_of(columns))
    if plan.blobs and rows:
        for slot, field in plan.blobs:
            columns[slot] = read_payloads(reader.opened, field, columns[slot])
    return finish(plan, rows, columns)


def count_window(plan: ScanPlan, readers: Readers, window: Window) -> int:
    """Return how many rows of a window pass the predicate."""
    reader = readers[window.fragment]
    if window.offsets is not None:
        return len(_passing(plan, reader, window.offsets)[0])
    if plan.predicate is None:
        return reader.live_rows_within(window.start, window.stop)
    quick = _tested(plan, reader, window)
    if quick is not None:
        return quick[1]
    mask = _early(plan, reader, window)[1]
    return int(np.count_nonzero(mask))


def read_parts(
    plan: ScanPlan, readers: Readers, window: Window, pace: Pace
) -> Iterator[tuple[Window, Piece]]:
    """Yield the rows of a window, in smaller windows where they exceed the limit on a page.

    Raises:
        LimitError: a single row exceeds it.
    """
    try:
        parts = [(window, read_window(plan, readers, window, pace))]
    except LimitError as cause:
        smaller = _divided(window, cause)
    else:
        yield from parts
        return
    for part in smaller:
        yield from read_parts(plan, readers, part, pace)


def count_parts(plan: ScanPlan, readers: Readers, window: Window) -> int:
    """Count like :func:`count_window`, in smaller windows where rows exceed the limit on a page.

    Raises:
        LimitError: a single row exceeds it.
    """
    try:
        return count_window(plan, readers, window)
    except LimitError as cause:
        smaller = _divided(window, cause)
    return sum(count_parts(plan, readers, part) for part in smaller)


def _divided(window: Window, cause: LimitError) -> Iterator[Window]:
    rows = window.rows
    if rows <= 1:
        raise cause
    most = min(DEFAULTS.batch_bytes, read_limits().max_batch_bytes)
    fitting = most // max(cause.row_bytes, 1)
    return window.parts(max(min(fitting, rows // 2), 1))


def _rows(reader: FragmentReader, columns: Columns, window: Window) -> int:
    if columns:
        return rows_of(columns[0])
    return reader.live_rows_within(window.start, window.stop)


def _tested(plan: ScanPlan, reader: FragmentReader, window: Window) -> tuple[Mask, int] | None:
    """Return which rows pass, and how many, without columns in memory; None when that cannot be."""
    predicate = plan.predicate
    if predicate is None or not predicate.tests:
        return None
    quick = reader.match(predicate.tests, window.start, window.stop)
    if quick is None or predicate.rest is None or not quick[1]:
        return quick
    mask, found = quick
    if found >= plan.gather_below * len(mask):
        return None
    early = reader.read(plan.early, reader.chosen_offsets(window.start, window.stop, mask))
    passed = mask_of(predicate.rest, plan.early_names, early, found)
    mask[np.flatnonzero(mask)[~passed]] = False
    return mask, int(np.count_nonzero(passed))


def _early(plan: ScanPlan, reader: FragmentReader, window: Window) -> tuple[CodedColumns, Mask]:
    """Return the columns of the predicate, and which of their rows pass."""
    predicate = plan.predicate
    if predicate is None:
        raise AssertionError("a plan without a predicate has no early columns")
    coded = reader.read_coded(plan.early, window.start, window.stop)
    if coded is not None and predicate.lone is not None:
        found = coded_filter(predicate.lone, plan.early_names, coded)
        if found is not None:
            return found
    columns = reader.read_live(plan.early, window.start, window.stop)
    rows = _rows(reader, columns, window)
    return [*columns], mask_of(predicate.expression, plan.early_names, columns, rows)


def _named(plan: ScanPlan, reader: FragmentReader, offsets: Offsets) -> tuple[int, Columns]:
    """Return how many of the rows that indices name pass, and their columns."""
    found, early = _passing(plan, reader, offsets)
    if not len(found):
        return 0, [[] for _ in plan.names]
    return len(found), early + reader.read(plan.late, found)


def _passing(plan: ScanPlan, reader: FragmentReader, offsets: Offsets) -> tuple[Offsets, Columns]:
    """Return which of some rows are live and pass, and their early columns."""
    live = reader.live_among(offsets)
    if plan.predicate is None or not len(live):
        return live, []
    columns = reader.read(plan.early, live)
    mask = mask_of(plan.predicate.expression, plan.early_names, columns, len(live))
    return live[mask], keep(columns, mask)


def _filtered(plan: ScanPlan, reader: FragmentReader, window: Window) -> tuple[int, Columns]:
    quick = _tested(plan, reader, window)
    if quick is not None:
        columns: Columns = [[] for _ in plan.names]
        if quick[1]:
            projection, slots, gather_below = plan.survivors
            found = _survivors(projection, gather_below, reader, _Chosen(window, *quick))
            for slot, column in zip(slots, found, strict=True):
                columns[slot] = column
        return quick[1], columns
    early, mask = _early(plan, reader, window)
    count = int(np.count_nonzero(mask))
    if not count:
        return 0, [[] for _ in plan.names]
    kept = [
        _kept(column, mask, count) if slot in plan.used else [] for slot, column in enumerate(early)
    ]
    chosen = _Chosen(window, mask, count)
    return count, kept + _survivors(plan.late, plan.gather_below, reader, chosen)


def _kept(column: list[CodedChunk], mask: Mask, found: int) -> list[pa.Array]:
    if all(isinstance(chunk, pa.Array) for chunk in column):
        return column if found == len(mask) else keep([column], mask)[0]
    return decoded(column if found == len(mask) else keep_coded(column, mask))


class _Chosen(NamedTuple):
    """Which live rows of a window pass, and how many."""

    window: Window
    mask: Mask
    found: int


def _survivors(
    projection: Projection, gather_below: float, reader: FragmentReader, chosen: _Chosen
) -> Columns:
    """Read columns of the rows that pass."""
    window, mask, found = chosen
    if not len(projection):
        return []
    if found == len(mask):
        return reader.read_live(projection, window.start, window.stop)
    if found < gather_below * len(mask):
        offsets = reader.chosen_offsets(window.start, window.stop, mask)
        return reader.read(projection, offsets)
    return keep(reader.read_live(projection, window.start, window.stop), mask)
