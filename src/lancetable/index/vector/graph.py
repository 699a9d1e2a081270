"""Graphs of near neighbours within a partition: levels of ever fewer vectors, the first has all."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.index.files import SegmentFiles
from lancetable.index.vector.storage import number

ID, NEIGHBOURS, DISTANCE = "__vector_id", "__neighbors", "_distance"
COLUMNS = (ID, NEIGHBOURS)


class Graph(NamedTuple):
    """The graph of a partition; vectors are named by their place in it.

    ``levels`` tells where each level starts in ``ids``, ``edges`` where the neighbours of each of
    these start, and both where the last one ends.
    """

    levels: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint32]
    edges: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.uint32]
    entry: int

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return self.ids.nbytes + self.edges.nbytes + self.neighbours.nbytes


def load_graph(
    files: SegmentFiles, name: str, rows: range, described: Mapping[str, Any], vectors: int
) -> Graph:
    """Return the graph of a partition of so many vectors.

    Raises:
        CorruptError: it names vectors that are not there, or its levels are not in order.
    """
    entry = number(described, "entry_point", 0, max(vectors - 1, 0))
    offsets = described.get("level_offsets")
    if not isinstance(offsets, list) or not all(isinstance(one, int) for one in offsets):
        raise CorruptError("a graph of a vector index does not say where its levels start")
    levels = np.array([one for one in offsets if one <= len(rows)], np.int64)
    ids, lists = files.read(name, COLUMNS, rows)
    edges = np.asarray(lists.offsets).astype(np.int64)
    graph = Graph(
        _trimmed(levels),
        np.ascontiguousarray(ids.to_numpy(), np.uint32),
        edges,
        np.ascontiguousarray(lists.values.to_numpy(), np.uint32),
        entry,
    )
    _check(graph, vectors)
    return graph


def _trimmed(levels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the levels without the empty ones at the end."""
    if not len(levels):
        return levels
    count = 1 + int(np.count_nonzero(np.diff(levels)))
    return levels[:count].copy()


def _check(graph: Graph, vectors: int) -> None:
    levels, ids, edges = graph.levels, graph.ids, graph.edges
    is_sound = (
        len(levels) >= 2
        and int(levels[0]) == 0
        and int(levels[-1]) == len(ids)
        and bool((np.diff(levels) > 0).all())
        and int(levels[1]) == vectors
        and np.array_equal(ids[:vectors], np.arange(vectors, dtype=np.uint32))
        and len(edges) == len(ids) + 1
        and bool((np.diff(edges) >= 0).all())
        and int(edges[0]) >= 0
        and int(edges[-1]) <= len(graph.neighbours)
        and (not len(graph.neighbours) or int(graph.neighbours.max()) < vectors)
        and (not len(ids) or int(ids.max()) < vectors)
    )
    if not is_sound:
        raise CorruptError(f"the graph of a partition does not fit its {vectors} vectors")
