"""Which rows of a table have the keys of a source.

The source is indexed, the table is scanned: a table of bits over the low digits of all keys sorts
out most rows at once, a binary search finds the others' places, and keys that are only hashed are
compared again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.format.manifest import Fragment
from lancetable.fragment.readers import Readers
from lancetable.operations.keys import Codes, are_equal, codes_of, comparable
from lancetable.operations.parts import Offsets, part_windows
from lancetable.scan.pace import guess
from lancetable.scan.plan import ScanPlan, Window, plan
from lancetable.scan.request import ScanRequest
from lancetable.scan.window import read_window

_FEWEST_BITS = 16
_MOST_BITS = 25
_SPARSENESS = 5


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The keys of some rows of a source, ready to be looked up."""

    codes: npt.NDArray[np.uint64]
    """Ascending, one for each row whose key has no null."""
    rows: Offsets
    """The row of the source that each code belongs to."""
    bits: npt.NDArray[np.bool_]
    """True for the low digits of every code."""
    is_unique: bool
    keys: tuple[pa.Array, ...] | None
    """The keys in comparable form, row by row; ``None`` when codes tell them apart."""
    first: int
    """The row of the source that ``keys`` begin with."""

    def find(self, codes: Codes) -> tuple[Offsets, Offsets]:
        """Return pairs of places in the codes and rows of the source; keys may still differ."""
        # Signed indices within bounds are taken as they are; others would be copied and checked.
        low = (codes.values & np.uint64(len(self.bits) - 1)).view(np.int64)
        is_open = np.take(self.bits, low, mode="wrap")
        if codes.is_valid is not None:
            is_open &= codes.is_valid
        places = np.flatnonzero(is_open)
        if not len(places) or not len(self.codes):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        wanted = codes.values[places]
        left = np.searchsorted(self.codes, wanted)
        if self.is_unique:
            left[left == len(self.codes)] = 0
            same = self.codes[left] == wanted
            return places[same], self.rows[left[same]]
        counts = np.searchsorted(self.codes, wanted, side="right") - left
        ends = np.cumsum(counts)
        within = np.arange(int(ends[-1])) - np.repeat(ends - counts, counts)
        return np.repeat(places, counts), self.rows[np.repeat(left, counts) + within]


def index_keys(columns: Sequence[pa.Array], first: int) -> KeyIndex:
    """Index keys in comparable form; they belong to the rows of the source from ``first`` on."""
    codes = codes_of(columns)
    rows = np.arange(len(codes.values))
    if codes.is_valid is not None:
        rows = rows[codes.is_valid]
    values = codes.values[rows]
    order = np.argsort(values, kind="stable")
    values, rows = values[order], rows[order]
    size = max(len(values), 1).bit_length() + _SPARSENESS
    bits = np.zeros(1 << min(max(size, _FEWEST_BITS), _MOST_BITS), np.bool_)
    bits[values & np.uint64(len(bits) - 1)] = True
    is_unique = not bool((values[1:] == values[:-1]).any())
    keys = None if codes.is_exact else tuple(columns)
    return KeyIndex(values, rows + first, bits, is_unique, keys, first)


@dataclass(frozen=True, slots=True)
class JoinTask:
    """A part of a table in which rows with some keys are looked for."""

    part: Snapshot
    on: tuple[str, ...]
    index: KeyIndex


class Pairs(NamedTuple):
    """Rows of one fragment, ascending, and the rows of the source with the same key."""

    fragment: Fragment
    offsets: Offsets
    rows: Offsets


def join_part(task: JoinTask) -> list[Pairs]:
    """Return the live rows of a part that have a key of the source."""
    planned = plan(task.part.manifest.schema, ScanRequest(task.on))
    readers = Readers(task.part)
    found: dict[int, list[tuple[Offsets, Offsets]]] = {}
    for window in part_windows(planned, readers):
        pair = _join_window(planned, readers, window, task)
        if len(pair[0]):
            found.setdefault(window.fragment, []).append(pair)
    fragments = task.part.manifest.fragments
    return [
        Pairs(
            fragments[position],
            np.concatenate([offsets for offsets, _ in pairs]),
            np.concatenate([rows for _, rows in pairs]),
        )
        for position, pairs in found.items()
    ]


def _join_window(
    planned: ScanPlan, readers: Readers, window: Window, task: JoinTask
) -> tuple[Offsets, Offsets]:
    pace = guess((planned.late,), task.part.manifest.fragments)
    piece = read_window(planned, readers, window, pace)
    if not piece.rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    columns = [
        comparable(chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks), name)
        for chunks, name in zip(piece.columns, task.on, strict=True)
    ]
    places, rows = task.index.find(codes_of(columns))
    if task.index.keys is not None and len(places):
        of_table = [column.take(pa.array(places)) for column in columns]
        of_source = [key.take(pa.array(rows - task.index.first)) for key in task.index.keys]
        same = are_equal(of_table, of_source)
        places, rows = places[same], rows[same]
    return _offsets(readers, window, places, piece.rows), rows


def _offsets(readers: Readers, window: Window, places: Offsets, live: int) -> Offsets:
    """Return the offsets of places among the live rows of a window."""
    if live == window.stop - window.start:
        return places + window.start
    return readers[window.fragment].live_offsets(window.start, window.stop)[places]
