"""Search the partitions of one segment of a vector index; those that were read are kept."""

import ctypes
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.arrays import Mask
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.records import PartitionRecord, SearchRecord
from lancetable.index.files import SegmentFiles
from lancetable.index.vector.distance import Floats, distances, normalized
from lancetable.index.vector.graph import Graph, load_graph
from lancetable.index.vector.layout import AUXILIARY, INDEX, ROWS, Layout, read_layout, rows_of
from lancetable.index.vector.live import Live
from lancetable.index.vector.storage import Codes, Query
from lancetable.index.vector.top import Rows, Top
from lancetable.index.vector.types import Matrix

KEPT_BYTES = 512 << 20
_GONE = np.uint64(2**64 - 1)
_NUMBERS = itertools.count()
_Key = tuple[int, int, str]


class Moved(NamedTuple):
    """Where rows stand now that were moved since a segment was built, and which were kept."""

    name: str
    translate: Callable[[Rows], tuple[Rows, Mask]]


class Partition(NamedTuple):
    """A partition in memory; ``record`` names its arrays to compiled functions."""

    rows: Rows
    codes: Codes
    centroid: Floats
    graph: Graph | None
    record: npt.NDArray[np.int64]

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        factors = 0 if self.codes.factors is None else self.codes.factors.nbytes
        graph = 0 if self.graph is None else self.graph.bytes
        return self.rows.nbytes + self.codes.values.nbytes + factors + graph


class Kept:
    """Partitions that were read; the least recently used are forgotten."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most = most_bytes
        self._held = 0
        self._kept: OrderedDict[_Key, Partition] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _Key) -> Partition | None:
        """Return a partition that is still kept."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: _Key, partition: Partition) -> None:
        """Keep a partition, and forget others while there are too many."""
        with self._lock:
            old = self._kept.pop(key, None)
            self._held += partition.bytes - (0 if old is None else old.bytes)
            self._kept[key] = partition
            while self._held > self._most:
                self._held -= self._kept.popitem(last=False)[1].bytes


PARTITIONS = Kept()
"""Those of this process."""


class VectorSegment:
    """An opened segment."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        self.layout: Layout = read_layout(files)
        self._lengths = self.layout.partitions.lengths
        layout = self.layout
        self._squares = (
            np.einsum("ij,ij->i", layout.centroids, layout.centroids)
            if layout.metric in {"l2", "cosine"}
            else None
        )
        self._number = next(_NUMBERS)

    @property
    def rows(self) -> int:
        """The number of vectors."""
        return int(self._lengths.sum())

    def __len__(self) -> int:
        return len(self._lengths)

    def prepare(self, queries: Matrix) -> Matrix:
        """Return queries as the vectors of the segment are."""
        given = normalized(queries) if self.layout.metric == "cosine" else queries
        return np.ascontiguousarray(given, self.layout.storage.query_dtype)

    def ranked(self, queries: Matrix, most: int) -> npt.NDArray[np.int64]:
        """Return the partitions nearest to each prepared query, the nearest first."""
        layout = self.layout
        centroids = layout.centroids
        if layout.metric == "hamming":
            far = distances(centroids, queries, layout.centroid_type, "hamming")
        else:
            product = queries.astype(np.float32) @ centroids.T
            far = -product if self._squares is None else self._squares - 2 * product
        most = min(most, far.shape[1])
        if most * 4 < far.shape[1]:
            near = np.argpartition(far, most - 1, axis=1)[:, :most]
            order = np.argsort(np.take_along_axis(far, near, axis=1), axis=1, kind="stable")
            return np.take_along_axis(near, order, axis=1)
        return np.argsort(far, axis=1, kind="stable")[:, :most]

    def search(
        self,
        queries: Matrix,
        chosen: Sequence[npt.NDArray[np.int64]],
        top: Top,
        *,
        live: Live | None = None,
        moved: Moved | None = None,
        ef: int | None = None,
    ) -> None:
        """Take the rows of chosen partitions into the nearest of each prepared query.

        Raises:
            CorruptError: a partition is damaged.
        """
        joined = np.concatenate([*chosen, np.empty(0, np.int64)])
        numbers, places = np.unique(joined, return_inverse=True)
        partitions = [self._partition(one, moved) for one in numbers.tolist()]
        if not partitions:
            return
        starts = np.concatenate([[0], np.cumsum([len(one) for one in chosen])]).astype(np.int64)
        rotated = self.layout.storage.rotate(queries)
        beam = max(top.most, 1) * 3 // 2 if ef is None else max(ef, top.most)
        if DLL is None:
            self._search(queries, rotated, partitions, (places, starts), top, live)
            return
        records = np.concatenate([one.record for one in partitions])
        record, room = self._record(partitions, top, live, beam)
        whole = None if rotated is None else np.ascontiguousarray(rotated, np.float32)
        record.rotated = 0 if whole is None else address(whole)
        places = np.ascontiguousarray(places, np.int64)
        DLL.lt_search_partitions(
            ctypes.addressof(record),
            address(records),
            address(places),
            address(starts),
            len(queries),
            address(queries),
            address(top.distances),
            address(top.rows),
            address(top.counts),
        )
        del room

    def _record(
        self, partitions: Sequence[Partition], top: Top, live: Live | None, ef: int
    ) -> tuple[SearchRecord, list[npt.NDArray[np.generic]]]:
        """Return how to search, and the arrays that it names."""
        record = SearchRecord()
        tables = np.empty(max(self.layout.storage.describe(record), 1), np.float32)
        largest = 0
        if self.layout.graphs:
            largest = max(len(one.rows) for one in partitions)
        heap = np.empty(largest + ef, np.float32)
        heap_rows = np.empty(largest + ef, np.uint64)
        visited = np.empty(max(largest, 1), np.uint8)
        record.dim, record.most, record.ef = self.layout.dim, top.most, ef
        record.range, record.tables = address(top.range), address(tables)
        record.heap, record.heap_rows = address(heap), address(heap_rows)
        record.visited = address(visited)
        if live is not None:
            # An empty array would have no address, and stand for all rows.
            spans = live.spans if len(live.spans) else np.full((1, 3), -1, np.int64)
            record.spans, record.span_count = address(spans), len(spans)
            record.live = address(live.marks)
            return record, [tables, heap, heap_rows, visited, spans]
        return record, [tables, heap, heap_rows, visited]

    def _search(
        self,
        queries: Matrix,
        rotated: Floats | None,
        partitions: Sequence[Partition],
        chosen: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
        top: Top,
        live: Live | None,
    ) -> None:
        """Search all vectors of partitions, without their graphs."""
        places, starts = chosen
        masks: dict[int, Mask | None] = {}
        for number, query in enumerate(queries):
            asked = Query(query, None if rotated is None else rotated[number])
            for place in places[starts[number] : starts[number + 1]].tolist():
                one = partitions[place]
                if place not in masks:
                    masks[place] = None if live is None else live.mask(one.rows)
                far = self.layout.storage.estimates(
                    one.codes, asked, one.centroid, by_row=one.graph is not None
                )
                top.offer_to(number, far.astype(np.float32), one.rows, masks[place])

    def warm(self) -> None:
        """Read the partitions, as far as there is room."""
        read = 0
        for number in range(len(self)):
            if read > KEPT_BYTES:
                return
            read += self._partition(number, None).bytes

    def _partition(self, number: int, moved: Moved | None) -> Partition:
        key = (self._number, number, "" if moved is None else moved.name)
        found = PARTITIONS.get(key)
        if found is None:
            found = self._load(number, moved)
            PARTITIONS.put(key, found)
        return found

    def _load(self, number: int, moved: Moved | None) -> Partition:
        layout = self.layout
        first, count = int(layout.partitions.offsets[number]), int(self._lengths[number])
        columns = (ROWS, *layout.storage.columns)
        found = self._files.read(AUXILIARY, columns, range(first, first + count))
        rows = rows_of(found[0])
        if any(len(column) != count for column in found):
            raise CorruptError(f"a partition of {count} vectors has {len(rows)} rows")
        if moved is not None:
            rows, is_kept = moved.translate(rows)
            rows[~is_kept] = _GONE
        centroid = np.ascontiguousarray(layout.centroids[number], np.float32)
        graph = self._graph(number, count) if layout.graphs and count else None
        codes = layout.storage.load(found[1:], centroid, by_row=graph is not None)
        return Partition(rows, codes, centroid, graph, _named(rows, codes, centroid, graph))

    def _graph(self, number: int, vectors: int) -> Graph:
        layout = self.layout
        assert layout.graph_rows is not None
        first, count = (
            int(one[number]) for one in (layout.graph_rows.offsets, layout.graph_rows.lengths)
        )
        return load_graph(
            self._files, INDEX, range(first, first + count), layout.graphs[number], vectors
        )


def _named(
    rows: Rows, codes: Codes, centroid: Floats, graph: Graph | None
) -> npt.NDArray[np.int64]:
    """Return the record of a partition as its words."""
    record = PartitionRecord(
        codes=address(codes.values),
        rows=address(rows),
        length=len(rows),
        centroid=address(centroid),
        factors=0 if codes.factors is None else address(codes.factors),
    )
    if graph is not None:
        record.levels, record.level_count = address(graph.levels), len(graph.levels) - 1
        record.ids, record.edges = address(graph.ids), address(graph.edges)
        record.neighbours, record.entry = address(graph.neighbours), graph.entry
    return np.frombuffer(bytes(record), np.int64)
