"""BITMAP and LABEL_LIST: each distinct value with the set of its rows.

``bitmap_page_lookup.lance`` has the columns ``keys``, the distinct values in ascending order with a
null first if there is one, and ``bitmaps``, the rows of each. A set of rows is

==============  ==========================================================================
u32             number of entries
per entry       u32 upper half of the rows, u32 size, then a roaring bitmap of that size
                with the lower halves; size 0 stands for every row of the fragment
==============  ==========================================================================

The keys of a label list are the items of lists: a list is a row of each of its items.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.expression import (
    Call,
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Opaque,
    Or,
    walk,
)
from lancetable.format.arrays import Mask
from lancetable.format.manifest.roaring import decode_bitmap
from lancetable.format.rows import OFFSET_BITS, RowSet
from lancetable.index.base import VALUE, matching
from lancetable.index.files import SegmentFiles

FILE = "bitmap_page_lookup.lance"
_HAS = {"array_has", "array_contains", "list_has", "list_contains"}
_HAS_ANY = {"array_has_any", "list_has_any"}
_HAS_ALL = {"array_has_all", "list_has_all"}
_ITEM = Column((VALUE,))


class Bitmap:
    """An opened segment: the keys are in memory, sets of rows are read when they are needed."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        (self._keys,) = files.read(FILE, ("keys",))

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that the segment describes: all that it names."""
        return fragments

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows of all keys for which a part of a predicate is true."""
        if any(isinstance(node, Opaque) for node in walk(part)):
            return None
        return self._rows_of(matching(part, self._keys))

    def _rows_of(self, keys: Mask) -> RowSet | None:
        found = RowSet.from_addresses(np.empty(0, np.uint64))
        (sets,) = self._files.read(FILE, ("bitmaps",), np.flatnonzero(keys))
        for one in sets.to_pylist():
            rows = rows_of_set(one or b"")
            if rows is None:
                return None
            found |= rows
        return found


class LabelList(Bitmap):
    """An opened segment of an index on lists."""

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows whose lists hold items."""
        match part:
            case Call(name, (Column(), Literal() as item)) if name in _HAS:
                return self._with_item(item)
            case Call(name, (Column(), Literal() as items)) if name in _HAS_ANY | _HAS_ALL:
                return self._with_items(items, is_all=name in _HAS_ALL)
            case _:
                return None

    def _with_item(self, item: Literal) -> RowSet | None:
        if not item.scalar.is_valid or item.type != self._keys.type:
            return None
        return self._rows_of(matching(Compare(Comparison.EQ, _ITEM, item), self._keys))

    def _with_items(self, items: Literal, *, is_all: bool) -> RowSet | None:
        wanted = items.scalar.values if items.scalar.is_valid else None
        if wanted is None or not len(wanted) or wanted.type != self._keys.type:
            return None
        if not is_all:
            any_of: Expression = In(_ITEM, tuple(map(Literal, wanted)), values=wanted)
            if wanted.null_count:
                any_of = Or((any_of, IsNull(_ITEM)))
            return self._rows_of(matching(any_of, self._keys))
        found: RowSet | None = None
        for item in wanted.drop_null():
            rows = self._with_item(Literal(item))
            if rows is None:
                return None
            found = rows if found is None else found & rows
        return found


def rows_of_set(data: bytes) -> RowSet | None:
    """Return a set of rows; None when it holds every row of a fragment, whose size is not known."""
    found = [_addresses(*entry) for entry in _entries(data)]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    return RowSet.from_addresses(np.concatenate([*known, np.empty(0, np.uint64)]))


def _entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the upper halves of a set of rows with their bitmaps."""
    at, count = 4, int.from_bytes(data[:4], "little")
    for _ in range(count):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if at + 8 + size > len(data):
            raise CorruptError("the rows of a key end inside a bitmap")
        yield int.from_bytes(data[at : at + 4], "little"), data[at + 8 : at + 8 + size]
        at += 8 + size


def _addresses(upper: int, bitmap: bytes) -> npt.NDArray[np.uint64] | None:
    """Return the rows of one entry; None for every row of a fragment of unknown size."""
    if not bitmap:
        return None
    low = decode_bitmap(bitmap, most=1 << OFFSET_BITS).astype(np.uint64)
    rows: npt.NDArray[np.uint64] = low | np.uint64(upper << OFFSET_BITS)
    return rows
