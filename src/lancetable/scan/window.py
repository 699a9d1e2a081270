"""What happens to one window of rows.

The columns of the predicate are read, the predicate says which rows stay, and the other columns
are read for those rows only.
"""

import numpy as np
import pyarrow as pa

from lancetable.file.coded import CodedChunk
from lancetable.fragment.blobs import read_payloads
from lancetable.fragment.coded import CodedColumns, decoded, keep_coded
from lancetable.fragment.reader import FragmentReader
from lancetable.fragment.readers import Readers
from lancetable.fragment.select import Columns, Mask, keep, rows_of
from lancetable.scan.coded import coded_filter
from lancetable.scan.pace import TELLING_ROWS, Pace, bytes_of
from lancetable.scan.plan import ScanPlan, Window
from lancetable.scan.result import Piece, finish, mask_of


def read_window(plan: ScanPlan, readers: Readers, window: Window, pace: Pace) -> Piece:
    """Return the rows of the result that a window holds."""
    reader = readers[window.fragment]
    if plan.where is None:
        columns = reader.read_live(plan.late, window.start, window.stop)
        rows = _rows(reader, columns, window)
    else:
        rows, columns = _filtered(plan, reader, window)
    if window.stop - window.start >= TELLING_ROWS:
        pace.learn(window.stop - window.start, bytes_of(columns))
    if plan.blobs and rows:
        for slot, field in plan.blobs:
            columns[slot] = read_payloads(reader.opened, field, columns[slot])
    return finish(plan, rows, columns)


def count_window(plan: ScanPlan, readers: Readers, window: Window) -> int:
    """Return how many rows of a window pass the predicate."""
    mask = _early(plan, readers[window.fragment], window)[1]
    return int(np.count_nonzero(mask))


def _rows(reader: FragmentReader, columns: Columns, window: Window) -> int:
    if columns:
        return rows_of(columns[0])
    return reader.live_rows_within(window.start, window.stop)


def _early(plan: ScanPlan, reader: FragmentReader, window: Window) -> tuple[CodedColumns, Mask]:
    """Return the columns of the predicate, and which of their rows pass."""
    if plan.where is None:
        raise AssertionError("a plan without a predicate has no early columns")
    if plan.lone is not None:
        coded = reader.read_coded(plan.early, window.start, window.stop)
        found = None if coded is None else coded_filter(plan.lone, plan.early_names, coded)
        if found is not None:
            return found
    columns = reader.read_live(plan.early, window.start, window.stop)
    rows = _rows(reader, columns, window)
    return [*columns], mask_of(plan.where, plan.early_names, columns, rows)


def _filtered(plan: ScanPlan, reader: FragmentReader, window: Window) -> tuple[int, Columns]:
    early, mask = _early(plan, reader, window)
    found = int(np.count_nonzero(mask))
    if not found:
        return 0, [[] for _ in plan.names]
    kept = [
        _kept(column, mask, found) if slot in plan.used else [] for slot, column in enumerate(early)
    ]
    return found, kept + _late(plan, reader, window, mask, found)


def _kept(column: list[CodedChunk], mask: Mask, found: int) -> list[pa.Array]:
    if all(isinstance(chunk, pa.Array) for chunk in column):
        return column if found == len(mask) else keep([column], mask)[0]
    return decoded(column if found == len(mask) else keep_coded(column, mask))


def _late(
    plan: ScanPlan, reader: FragmentReader, window: Window, mask: Mask, found: int
) -> Columns:
    if not len(plan.late):
        return []
    if found == len(mask):
        return reader.read_live(plan.late, window.start, window.stop)
    if found < plan.gather_below * len(mask):
        offsets = reader.chosen_offsets(window.start, window.stop, mask)
        return reader.read(plan.late, offsets)
    return keep(reader.read_live(plan.late, window.start, window.stop), mask)
