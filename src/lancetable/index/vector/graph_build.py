"""Build the graph of a partition: vectors are inserted one after the other.

A new vector descends the levels to its own, finds its near neighbours there and on each level
below, and is linked with those that are apart from each other; they are linked back, and keep the
best of too many links.
"""

import heapq
import json
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.index.files import SegmentFiles
from lancetable.index.vector.codec import Hnsw
from lancetable.index.vector.distance import Floats, distances
from lancetable.index.vector.graph import DISTANCE, load_graph
from lancetable.index.vector.layout import INDEX, Layout
from lancetable.index.vector.storage import number
from lancetable.index.vector.types import ITEMS, METRICS, Matrix, VectorType

_SEED = 42


class BuiltGraph(NamedTuple):
    """A graph as files have it: one level after the other, their vectors in ascending order."""

    level_offsets: tuple[int, ...]
    ids: npt.NDArray[np.uint32]
    edges: npt.NDArray[np.int64]
    """Where the neighbours of each start, and where the last ones end."""
    neighbours: npt.NDArray[np.uint32]
    distances: Floats
    entry: int

    def description(self, parameters: Hnsw) -> str:
        """Return how the file describes the graph."""
        described = {
            "entry_point": self.entry,
            "params": {
                "max_level": parameters.max_level,
                "m": parameters.m,
                "ef_construction": parameters.ef_construction,
                "prefetch_distance": 2,
            },
            "level_offsets": self.level_offsets,
        }
        return json.dumps(described)


def graph_parameters(layout: Layout) -> Hnsw:
    """Return how the graphs of a segment were built.

    Raises:
        CorruptError: the segment does not record it properly.
    """
    described = next((one.get("params") for one in layout.graphs if one), None)
    if described is None:
        return Hnsw(20, 150, 7)
    if not isinstance(described, dict):
        raise CorruptError(f"the graphs of a vector index are described as {described!r}")
    m, ef = number(described, "m", 2, 1 << 16), number(described, "ef_construction", 1, 1 << 20)
    return Hnsw(m, ef, number(described, "max_level", 1, 32))


def read_graph(files: SegmentFiles, layout: Layout, place: int) -> BuiltGraph:
    """Return the graph of a partition as the files have it.

    Raises:
        CorruptError: it does not fit its vectors.
    """
    assert layout.graph_rows is not None
    first, count = (
        int(one[place]) for one in (layout.graph_rows.offsets, layout.graph_rows.lengths)
    )
    rows, vectors = range(first, first + count), int(layout.partitions.lengths[place])
    if not vectors:
        return _exported(_empty(0, graph_parameters(layout)), 0, graph_parameters(layout))
    graph = load_graph(files, INDEX, rows, layout.graphs[place], vectors)
    (far,) = files.read(INDEX, (DISTANCE,), rows)
    distances_ = np.ascontiguousarray(far.values.to_numpy(), np.float32)
    if len(distances_) != len(graph.neighbours):
        raise CorruptError("a graph of a vector index has another number of distances than links")
    offsets = layout.graphs[place]["level_offsets"]
    return BuiltGraph(
        tuple(offsets), graph.ids, graph.edges, graph.neighbours, distances_, graph.entry
    )


class _Links(NamedTuple):
    """The links of all vectors: a row for each vector and level, with room for so many."""

    levels: npt.NDArray[np.uint8]
    upper: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint32]
    distances: Floats
    counts: npt.NDArray[np.int32]

    def row(self, vector: int, level: int) -> int:
        """Return the row of a vector on a level."""
        return int(self.upper[vector]) + level - 1 if level else vector


def build_graph(vectors: Matrix, metric: str, parameters: Hnsw) -> BuiltGraph:
    """Return the graph of 32-bit floats, or of bytes, as they are stored."""
    links = _empty(len(vectors), parameters)
    if not len(vectors):
        return _exported(links, 0, parameters)
    make = _plain if DLL is None else _compiled
    return _exported(links, make(vectors, metric, parameters, links), parameters)


def _empty(count: int, parameters: Hnsw) -> _Links:
    draw = np.random.default_rng(_SEED).random(count)
    heights = -np.log(np.maximum(draw, 1e-12)) / np.log(max(parameters.m, 2))
    levels = np.minimum(heights, max(parameters.max_level - 1, 0)).astype(np.uint8)
    upper = count + np.cumsum(levels, dtype=np.int64) - levels
    rooms = np.full(count + int(levels.sum()), parameters.m + 1, np.int64)
    rooms[:count] = 2 * parameters.m + 1
    starts = np.concatenate([[0], np.cumsum(rooms)])
    total = int(starts[-1])
    return _Links(
        levels,
        upper,
        starts,
        np.zeros(total, np.uint32),
        np.zeros(total, np.float32),
        np.zeros(len(rooms), np.int32),
    )


def _compiled(vectors: Matrix, metric: str, parameters: Hnsw, links: _Links) -> int:
    count, ef = len(vectors), parameters.ef_construction
    room = ef + 2 * parameters.m + 2
    visited, heap = np.zeros(count, np.uint32), np.empty(count + ef, np.float32)
    heap_rows, picked = np.empty(count + ef, np.uint64), np.empty(room, np.float32)
    picked_ids = np.empty(room, np.uint32)
    type_ = ITEMS.index(vectors.dtype.name)
    entry: int = DLL.lt_build_graph(
        *(address(vectors), type_, count, vectors.shape[1], METRICS.index(metric)),
        *(address(links.levels), address(links.upper), address(links.starts)),
        *(parameters.m, ef, address(links.ids), address(links.distances)),
        *(address(links.counts), address(visited), address(heap), address(heap_rows)),
        *(address(picked), address(picked_ids)),
    )
    return entry


def _exported(links: _Links, entry: int, parameters: Hnsw) -> BuiltGraph:
    offsets, ids, rows = [0], [], []
    for level in range(max(parameters.max_level, 1)):
        members = np.flatnonzero(links.levels >= level)
        ids.append(members.astype(np.uint32))
        rows.append(members if not level else links.upper[members] + level - 1)
        offsets.append(offsets[-1] + len(members))
    order = np.concatenate(rows)
    counts = links.counts[order].astype(np.int64)
    edges = np.concatenate([[0], np.cumsum(counts)])
    inside = np.arange(int(edges[-1])) - np.repeat(edges[:-1], counts)
    places = np.repeat(links.starts[order], counts) + inside
    return BuiltGraph(
        tuple(offsets),
        np.concatenate(ids),
        edges,
        links.ids[places],
        links.distances[places],
        entry,
    )


def _plain(vectors: Matrix, metric: str, parameters: Hnsw, links: _Links) -> int:
    """Insert all vectors without the compiled function."""
    plain = _Plain(vectors, metric, parameters, links)
    entry, top = 0, int(links.levels[0])
    for vector in range(1, len(vectors)):
        plain.insert(vector, entry, top)
        if links.levels[vector] > top:
            entry, top = vector, int(links.levels[vector])
    return entry


class _Plain:
    """A graph in the making, with pairs of distances and vectors."""

    def __init__(self, vectors: Matrix, metric: str, parameters: Hnsw, links: _Links) -> None:
        self._vectors = vectors
        self._metric = metric
        self._m, self._ef = parameters.m, parameters.ef_construction
        self._links = links
        self._type = VectorType(vectors.dtype.name, vectors.shape[1])

    def insert(self, vector: int, entry: int, top: int) -> None:
        """Link a vector with its near neighbours."""
        level = int(self._links.levels[vector])
        nearest = (float(self._far(vector, [entry])[0]), entry)
        for at in range(top, level, -1):
            nearest = self._near(vector, at, nearest, 1)[0]
        for at in range(min(level, top), -1, -1):
            found = self._near(vector, at, nearest, self._ef)
            nearest = found[0]
            kept = self._chosen(found, self._m)
            self._write(self._links.row(vector, at), kept)
            for far, other in kept:
                row = self._links.row(other, at)
                room = int(self._links.starts[row + 1] - self._links.starts[row]) - 1
                linked = [*self._read(row), (far, vector)]
                if len(linked) > room:
                    linked = self._chosen(sorted(linked), room)
                self._write(row, linked)

    def _far(self, vector: int, others: list[int]) -> Floats:
        query = self._vectors[vector][None, :]
        found: Floats = distances(self._vectors[others], query, self._type, self._metric)[0]
        return found

    def _near(
        self, vector: int, level: int, start: tuple[float, int], most: int
    ) -> list[tuple[float, int]]:
        """Return the nearest vectors of a level in order."""
        seen, opened, found = {start[1]}, [start], [(-start[0], -start[1])]
        while opened:
            far, place = heapq.heappop(opened)
            if len(found) == most and far > -found[0][0]:
                break
            others = [one for _, one in self._read(self._links.row(place, level))]
            others = [one for one in others if one not in seen]
            seen.update(others)
            if not others:
                continue
            for distance, other in zip(self._far(vector, others).tolist(), others, strict=True):
                if len(found) < most or distance < -found[0][0]:
                    heapq.heappush(opened, (distance, other))
                    heapq.heappush(found, (-distance, -other))
                    if len(found) > most:
                        heapq.heappop(found)
        return sorted((-far, -one) for far, one in found)

    def _chosen(self, found: list[tuple[float, int]], most: int) -> list[tuple[float, int]]:
        if len(found) <= most:
            return found
        kept: list[tuple[float, int]] = []
        for far, one in found:
            others = [other for _, other in kept]
            if len(kept) < most and (not others or far < float(self._far(one, others).min())):
                kept.append((far, one))
        rest = [one for one in found if one not in kept]
        return [*kept, *rest[: most - len(kept)]]

    def _read(self, row: int) -> list[tuple[float, int]]:
        first = int(self._links.starts[row])
        stop = first + int(self._links.counts[row])
        far, ids = self._links.distances[first:stop], self._links.ids[first:stop]
        return list(zip(far.tolist(), ids.tolist(), strict=True))

    def _write(self, row: int, linked: list[tuple[float, int]]) -> None:
        first, count = int(self._links.starts[row]), len(linked)
        self._links.distances[first : first + count] = [far for far, _ in linked]
        self._links.ids[first : first + count] = [one for _, one in linked]
        self._links.counts[row] = count
