"""RTREE: bounding boxes of geometries, in pages of pages.

``page_data.lance`` has the columns ``bbox``, a struct of ``xmin``, ``ymin``, ``xmax`` and ``ymax``,
and ``id`` (u64). The first ``num_items`` rows are the boxes of geometries with the row of each.
Then comes level after level: one row for each ``page_size`` rows of the level below, until a level
fits into one page. ``nulls.lance`` has one set of rows, those without a geometry. Empty geometries
are in neither file.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.expression import Call, Column, Expression, IsNull, Literal
from lancetable.expression.functions_geo import RELATIONS
from lancetable.format.arrays import Mask
from lancetable.format.rows import RowSet
from lancetable.index.files import SegmentFiles
from lancetable.index.scalar.bitmap import rows_of_set
from lancetable.index.scalar.geometry import Boxes, boxes_of

DATA, NULLS = "page_data.lance", "nulls.lance"
LARGEST = np.finfo(np.float64).max
"""Stands for an infinite coordinate: other readers lose all rows of an index that holds one."""


class RTree:
    """An opened segment: pages are read from the root down where boxes meet."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        found = files.metadata(DATA)
        size, items = (found.get(key, "") for key in ("page_size", "num_items"))
        if not (size.isdecimal() and items.isdecimal() and int(size) > 1):
            raise CorruptError(f"the pages of an rtree are of {size!r} rows for {items!r} items")
        self._page_rows = int(size)
        self._levels = level_rows(int(items), self._page_rows)
        if sum(self._levels) != files.rows(DATA):
            raise CorruptError(
                f"an rtree of {items} items has {files.rows(DATA)} rows, not {sum(self._levels)}"
            )

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that the segment describes: all that it names."""
        return fragments

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows whose boxes meet the box of a geometry."""
        match part:
            case IsNull(Column(), False):
                (nulls,) = self._files.read(NULLS, ("nulls",))
                return rows_of_set(nulls[0].as_py() if len(nulls) else b"")
            case Call(name, (Column(), Literal(scalar))) if name in RELATIONS and scalar.is_valid:
                return self._meeting(finite(boxes_of(pa.repeat(scalar, 1)))[0])
            case _:
                return None

    def _meeting(self, box: Boxes) -> RowSet | None:
        if np.isnan(box).any():
            return None
        firsts = np.cumsum([0, *self._levels[:-1]])
        chosen = np.arange(self._levels[-1])
        for first, below in zip(firsts[::-1], [*self._levels[-2::-1], 0], strict=True):
            boxes, ids = self._read(first + chosen)
            found = _meets(boxes, box)
            if not below:
                return RowSet.from_addresses(ids[found], is_exact=False)
            pages = chosen[found] * self._page_rows
            chosen = (pages[:, None] + np.arange(self._page_rows)).ravel()
            chosen = chosen[chosen < below]
        return None

    def _read(self, rows: npt.NDArray[np.int64]) -> tuple[Boxes, npt.NDArray[np.uint64]]:
        boxes, ids = self._files.read(DATA, ("bbox", "id"), rows)
        return boxes_of(boxes), np.asarray(ids).astype(np.uint64)


def level_rows(items: int, page_rows: int) -> list[int]:
    """Return the number of rows of each level, that of the items first."""
    levels = [items]
    while levels[-1] > page_rows:
        levels.append(-(-levels[-1] // page_rows))
    return levels


def finite(boxes: Boxes) -> Boxes:
    """Return boxes with the largest numbers in place of infinite ones."""
    return np.clip(boxes, -LARGEST, LARGEST)


def _meets(boxes: Boxes, box: Boxes) -> Mask:
    """Return which boxes meet another; one that is not known may."""
    known = finite(boxes)
    apart = (known[:, :2] > box[2:]) | (known[:, 2:] < box[:2])
    return np.asarray(~apart.any(axis=1))
