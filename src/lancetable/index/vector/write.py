"""Write the two files of a vector index, partition by partition."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.index.base import Sink
from lancetable.index.vector.codec import Partitions, encode_partitions
from lancetable.index.vector.columns import Records, to_batch
from lancetable.index.vector.layout import AUXILIARY, INDEX
from lancetable.index.vector.types import Matrix

_FLAT = pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)])
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


def write_segment(sink: Sink, partitions: Iterable[Records], written: Written) -> None:
    """Write the records of each partition in turn.

    Raises:
        StoreError: a file cannot be written.
    """
    count = len(written.centroids)
    lengths: list[int] = []
    buffers: list[bytes] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for records in partitions:
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
    none = np.zeros(count, np.int64)
    index = Partitions(written.centroids, none, none, written.loss)
    sink.write(
        INDEX,
        _FLAT,
        [],
        metadata={
            "lance:index": json.dumps({"type": written.kind, "distance_type": written.metric}),
            "lance:ivf": _PLACE,
            "lance:flat": json.dumps([""] * count),
        },
        buffers=[encode_partitions(index)],
    )
