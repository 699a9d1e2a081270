"""BTREE: all values of a column in ascending order, cut into pages.

====================  ===========================================================================
file                  columns
====================  ===========================================================================
``page_data.lance``   ``values`` in ascending order, nulls first; ``ids``: the row of each (u64)
``page_lookup.lance`` one row per page: ``min``, ``max``, ``null_count`` (u32), ``page_idx`` (u32)
====================  ===========================================================================

A page holds ``batch_size`` rows, which the schema metadata of ``page_lookup.lance`` records; 4096
without it. ``min`` is null for a page that begins with nulls, and then tells nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.expression import Expression
from lancetable.format.arrays import numbers
from lancetable.format.rows import RowSet
from lancetable.index import sorting
from lancetable.index.base import Numbers, Sink, Source, matching
from lancetable.index.bounds import Bounds
from lancetable.index.files import KEPT_BYTES, SegmentFiles
from lancetable.index.ordered import Ordered, Points, Span, Wanted, spread_places, wanted_of
from lancetable.index.scalar.types import refuses_values
from lancetable.index.sorting import Pairs, Stream
from lancetable.index.specs import BTree, Spec

DATA, LOOKUP = "page_data.lance", "page_lookup.lance"
USUAL_PAGE = 4096
MOST_PAGES, SCAN_FROM = 64, 0.3
"""A part that needs more pages than these, and a larger share of all, is not answered."""
WHOLE_ROWS, WHOLE_SHARE = 4 << 20, 0.25
"""A segment of at most so many rows is kept whole once such a share of its pages was asked for."""
_BLOCK = 16 * USUAL_PAGE


class BTreeSegment:
    """An opened segment: the table of pages is in memory, pages are read when they are needed."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        size = files.metadata(LOOKUP).get("batch_size", str(USUAL_PAGE))
        least, largest, nulls, numbers = files.read(
            LOOKUP, ("min", "max", "null_count", "page_idx")
        )
        self._page_rows = int(size) if size.isdecimal() else 0
        self._rows = files.rows(DATA)
        pages = np.asarray(numbers)
        is_whole = self._page_rows > 0 and len(pages) == -(-self._rows // self._page_rows)
        if not is_whole or not np.array_equal(pages, np.arange(len(pages))):
            raise CorruptError(
                f"the page table lists {len(pages)} pages of {size} rows for {self._rows} rows"
            )
        self._bounds = Bounds(least, largest, np.asarray(nulls) > 0)
        self._least, self._largest = Ordered.of(least), Ordered.of(largest)
        self._loaded = 0

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that the segment describes: all that it names."""
        return fragments

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows for which a part of a predicate is true."""
        wanted = wanted_of(part, self._bounds.type)
        if wanted is not None and self._least is not None and self._largest is not None:
            return self._ordered(wanted, self._least, self._largest)
        may_match = self._bounds.may_match(part)
        if may_match is None:
            return None
        pages = np.flatnonzero(may_match)
        if self._are_many(len(pages)):
            return None
        found = [self._matches(part, *edges) for edges in _runs(pages)]
        return RowSet.from_addresses(np.concatenate([*found, np.empty(0, np.uint64)]))

    def warm(self) -> None:
        """Read the pages, as far as there is room."""
        if self._least is None or self._largest is None:
            return
        if self._rows <= WHOLE_ROWS:
            self._loaded = len(self._bounds)
            self._page(range(self._rows))
            return
        for rows in self._files.portions(DATA, self._page_rows, KEPT_BYTES):
            self._page(rows)

    def _are_many(self, pages: int) -> bool:
        return pages > max(MOST_PAGES, SCAN_FROM * len(self._bounds))

    def _ordered(self, wanted: Wanted, least: Ordered, largest: Ordered) -> RowSet | None:
        """Return the rows of wanted values, searched by halving."""
        pages = _pages_of(wanted, least, largest)
        # Points in many pages are few rows: a segment that is kept whole answers them at once.
        is_small = isinstance(wanted, Points) and self._rows <= WHOLE_ROWS
        if self._are_many(len(pages)) and not is_small:
            return None
        self._loaded += len(pages)
        if self._loaded > WHOLE_SHARE * len(self._bounds) and self._rows <= WHOLE_ROWS:
            found = [self._page(range(self._rows)).rows(wanted)]
        else:
            found = [self._page(self._page_range(page)).rows(wanted) for page in pages.tolist()]
        return RowSet.from_addresses(np.concatenate(found) if found else np.empty(0, np.uint64))

    def _page_range(self, first: int, last: int | None = None) -> range:
        stop = (first if last is None else last) + 1
        return range(first * self._page_rows, min(stop * self._page_rows, self._rows))

    def _page(self, rows: range) -> "_Page":
        """Return some rows of the index, ready to be searched."""

        def read() -> tuple[_Page, int]:
            values, ids = self._read(rows)
            ordered = Ordered.of(values)
            if ordered is None:
                raise CorruptError("the values of a btree page are not in ascending order")
            return _Page(ordered, ids), values.get_total_buffer_size() + ids.nbytes

        return self._files.kept((rows.start, rows.stop), read)

    def _read(self, rows: range) -> tuple[pa.Array, Numbers]:
        values, ids = self._files.read(DATA, ("values", "ids"), rows)
        if ids.null_count or ids.type != pa.uint64():
            raise CorruptError("the row ids of a btree page are not valid")
        return values, ids.to_numpy()

    def _matches(self, part: Expression, first: int, last: int) -> Numbers:
        """Return the rows of some neighbouring pages that match."""
        values, ids = self._read(self._page_range(first, last))
        return ids[matching(part, values)]


class _Page(NamedTuple):
    """Values in order, and the row of each."""

    values: Ordered
    ids: Numbers

    def rows(self, wanted: Wanted) -> Numbers:
        """Return the rows of some values."""
        starts, stops = self.values.places(wanted)
        if len(starts) == 1:
            return self.ids[starts[0] : stops[0]]
        return self.ids[spread_places(starts, stops)]


def _pages_of(wanted: Wanted, least: Ordered, largest: Ordered) -> npt.NDArray[np.int64]:
    """Return the pages that may hold wanted values."""
    if isinstance(wanted, Span):
        first = 0 if wanted.low is None else largest.not_below(wanted.low)
        return np.arange(first, max(first, least.below(wanted.high)))
    firsts = largest.places(wanted)[0]
    stops = least.places(wanted)[1]
    return np.unique(spread_places(firsts, np.maximum(firsts, stops)))


def _runs(pages: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the first and the last page of each run of neighbouring pages."""
    if not len(pages):
        return []
    edges = np.flatnonzero(np.diff(pages) > 1)
    firsts = pages[np.concatenate([[0], edges + 1])]
    lasts = pages[np.concatenate([edges, [len(pages) - 1]])]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


class BTreeKind:
    """Build, merge and open segments."""

    name = BTree.kind

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        return refuses_values(type_)

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment."""
        return _write(sorting.sort(sorting.pairs_of(rows), sink, memory_bytes), type_, sink)

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write one segment from several."""
        return _write(
            sorting.merge([sorting.checked(_stored(source)) for source in sources]), type_, sink
        )

    def spec(self, files: SegmentFiles) -> BTree:
        """Return the parameters of a segment."""
        return BTree()

    def open(self, files: SegmentFiles) -> BTreeSegment:
        """Return an opened segment."""
        return BTreeSegment(files)


def _stored(source: Source) -> Stream:
    """Yield the values of a segment with their new rows, in order."""
    total = source.files.rows(DATA)
    for first in range(0, total, _BLOCK):
        block = range(first, min(first + _BLOCK, total))
        values, ids = source.files.read(DATA, ("values", "ids"), block)
        rows, is_kept = source.translate(ids.to_numpy())
        yield Pairs(values.filter(pa.array(is_kept)), rows[is_kept])


def _write(stream: Stream, type_: pa.DataType, sink: Sink) -> bytes:
    least, largest = [pa.nulls(0, type_)], [pa.nulls(0, type_)]
    nulls = [np.empty(0, np.uint32)]

    def pages() -> Iterator[pa.RecordBatch]:
        for values, rows in sorting.whole_pages(stream, USUAL_PAGE):
            firsts = np.arange(0, len(values), USUAL_PAGE)
            lasts = np.minimum(firsts + USUAL_PAGE, len(values)) - 1
            least.append(values.take(numbers(firsts)))
            largest.append(values.take(numbers(lasts)))
            nulls.append(np.clip(values.null_count - firsts, 0, lasts + 1 - firsts))
            yield pa.RecordBatch.from_arrays([values, numbers(rows)], ["values", "ids"])

    data = pa.schema([("values", type_), pa.field("ids", pa.uint64(), nullable=False)])
    sink.write(DATA, data, pages())
    counts = np.concatenate(nulls).astype(np.uint32)
    table = [
        pa.concat_arrays(least),
        pa.concat_arrays(largest),
        numbers(counts),
        numbers(np.arange(len(counts), dtype=np.uint32)),
    ]
    lookup = pa.schema(
        [
            ("min", type_),
            ("max", type_),
            pa.field("null_count", pa.uint32(), nullable=False),
            pa.field("page_idx", pa.uint32(), nullable=False),
        ]
    )
    sizes = {"batch_size": str(USUAL_PAGE), "range_partitioned": "false"}
    batch = pa.RecordBatch.from_arrays(table, schema=lookup)
    sink.write(LOOKUP, lookup, [batch], metadata=sizes)
    return b""
