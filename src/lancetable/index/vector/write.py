"""Write the two files of a vector index, partition by partition."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from lancetable.format.arrays import numbers
from lancetable.index.base import Sink
from lancetable.index.vector.codec import Hnsw, Partitions, encode_partitions
from lancetable.index.vector.columns import Records, to_batch
from lancetable.index.vector.graph import DISTANCE, ID, NEIGHBOURS
from lancetable.index.vector.graph_build import BuiltGraph
from lancetable.index.vector.layout import AUXILIARY, INDEX
from lancetable.index.vector.types import Matrix

_FLAT = pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)])
_GRAPH = pa.schema(
    [
        pa.field(ID, pa.uint32()),
        pa.field(NEIGHBOURS, pa.list_(pa.uint32())),
        pa.field(DISTANCE, pa.list_(pa.float32())),
    ]
)
_PLACE = "1"
"""The number of the global buffer with the partitions."""


class Written(NamedTuple):
    """What the files say beside the records."""

    kind: str
    metric: str
    centroids: Matrix
    loss: float | None
    schema: pa.Schema
    description: Mapping[str, Any]
    buffers: list[bytes]
    parameters: Hnsw | None = None
    """Of the graphs, if there are any."""


Graphs: TypeAlias = Callable[[Records, int], BuiltGraph]
"""Return the graph of the records of a partition, given with its number."""


def write_segment(
    sink: Sink,
    partitions: Iterable[Records],
    written: Written,
    graphs: Graphs | None = None,
) -> None:
    """Write the records of each partition in turn, and their graphs.

    Raises:
        StoreError: a file cannot be written.
    """
    count = len(written.centroids)
    lengths: list[int] = []
    buffers: list[bytes] = []
    built: list[BuiltGraph] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for records in partitions:
            if graphs is not None:
                built.append(graphs(records, len(lengths)))
            lengths.append(len(records))
            if len(records):
                yield to_batch(records, written.schema)
        sizes = np.array(lengths, np.int64)
        offsets = np.cumsum(sizes) - sizes
        buffers.append(encode_partitions(Partitions(None, offsets, sizes)))
        buffers.extend(written.buffers)

    metadata = {
        "distance_type": written.metric,
        "lance:ivf": _PLACE,
        "storage_metadata": json.dumps([json.dumps(written.description)]),
    }
    sink.write(AUXILIARY, written.schema, batches(), metadata=metadata, buffers=buffers)
    sizes = np.array([len(one.ids) for one in built] or [0] * count, np.int64)
    index = Partitions(written.centroids, np.cumsum(sizes) - sizes, sizes, written.loss)
    named = {"type": written.kind, "distance_type": written.metric}
    about = {"lance:index": json.dumps(named), "lance:ivf": _PLACE}
    if written.parameters is None:
        about["lance:flat"] = json.dumps([""] * count)
    else:
        about["lance:hnsw"] = json.dumps([one.description(written.parameters) for one in built])
    schema = _FLAT if written.parameters is None else _GRAPH
    batches_of_graphs = (_graph_batch(one) for one in built if len(one.ids))
    buffers_of_index = [encode_partitions(index)]
    sink.write(INDEX, schema, batches_of_graphs, metadata=about, buffers=buffers_of_index)


def _graph_batch(graph: BuiltGraph) -> pa.RecordBatch:
    edges = numbers(graph.edges.astype(np.int32))
    columns = [
        numbers(graph.ids),
        pa.ListArray.from_arrays(edges, numbers(graph.neighbours)),
        pa.ListArray.from_arrays(edges, numbers(graph.distances)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_GRAPH)
