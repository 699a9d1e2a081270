"""Partitions, tensors and details of vector indices between their messages and values."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, Message

from lancetable.errors import CorruptError
from lancetable.format.proto import vector_pb2
from lancetable.index.vector.types import METRICS

_M = TypeVar("_M", bound=Message)
_DTYPES = ("uint16", "float16", "float32", "float64", "uint8", "uint16", "uint32", "uint64")


class Partitions(NamedTuple):
    """Where the rows of each partition stand in a file, and what they are near."""

    centroids: npt.NDArray[Any] | None
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    loss: float | None = None


class Hnsw(NamedTuple):
    """How the graphs of an index were built."""

    m: int
    ef_construction: int
    max_level: int


class Details(NamedTuple):
    """What the manifest says of a vector index; ``quantizer`` is flat, pq, sq or rq."""

    metric: str
    quantizer: str = "flat"
    bits: int = 0
    sub_vectors: int = 0
    hnsw: Hnsw | None = None
    target_rows: int = 0


def decode_partitions(data: bytes) -> Partitions:
    """Return the partitions of a file.

    Raises:
        CorruptError: the bytes are damaged.
    """
    message = _parsed(vector_pb2.IVF, data, "the partitions of a vector index")
    offsets = np.array(message.offsets, np.uint64).astype(np.int64)
    lengths = np.array(message.lengths, np.int64)
    if len(offsets) != len(lengths) or bool((offsets < 0).any()):
        raise CorruptError(
            f"a vector index has {len(offsets)} offsets and {len(lengths)} lengths of partitions"
        )
    centroids: npt.NDArray[Any] | None = None
    if message.HasField("centroids_tensor"):
        centroids = _tensor(message.centroids_tensor)
    elif message.centroids and len(lengths) and not len(message.centroids) % len(lengths):
        centroids = np.array(message.centroids, np.float32).reshape(len(lengths), -1)
    if centroids is not None and (centroids.ndim != 2 or len(centroids) != len(lengths)):
        raise CorruptError(
            f"a vector index has centroids of shape {centroids.shape} for {len(lengths)} partitions"
        )
    loss = message.loss if message.HasField("loss") else None
    return Partitions(centroids, offsets, lengths, loss)


def encode_partitions(partitions: Partitions) -> bytes:
    """Return the message of the partitions of a file."""
    message = vector_pb2.IVF(
        offsets=partitions.offsets.tolist(), lengths=partitions.lengths.tolist()
    )
    if partitions.centroids is not None:
        message.centroids_tensor.CopyFrom(_tensor_message(partitions.centroids))
    if partitions.loss is not None:
        message.loss = partitions.loss
    found: bytes = message.SerializeToString()
    return found


def decode_tensor(data: bytes) -> npt.NDArray[Any]:
    """Return an array of numbers.

    Raises:
        CorruptError: the bytes are damaged.
    """
    return _tensor(_parsed(vector_pb2.Tensor, data, "an array of a vector index"))


def encode_tensor(values: npt.NDArray[Any]) -> bytes:
    """Return the message of an array."""
    found: bytes = _tensor_message(values).SerializeToString()
    return found


def decode_details(data: bytes) -> Details:
    """Return what the manifest says of an index; the files alone are decisive.

    Raises:
        CorruptError: the bytes are damaged.
    """
    message = _parsed(vector_pb2.VectorIndexDetails, data, "the details of a vector index")
    if message.metric_type >= len(METRICS):
        raise CorruptError(f"a vector index has the unknown metric {message.metric_type}")
    quantizer = message.WhichOneof("compression") or "flat"
    graph = message.hnsw_index_config
    is_graph = message.HasField("hnsw_index_config")
    return Details(
        METRICS[message.metric_type],
        quantizer,
        getattr(getattr(message, quantizer), "num_bits", 0),
        message.pq.num_sub_vectors,
        Hnsw(graph.max_connections, graph.construction_ef, graph.max_level) if is_graph else None,
        message.target_partition_size,
    )


def encode_details(details: Details) -> bytes:
    """Return the message of what the manifest says of an index."""
    message = vector_pb2.VectorIndexDetails(
        metric_type=METRICS.index(details.metric), target_partition_size=details.target_rows
    )
    if details.hnsw is not None:
        graph = message.hnsw_index_config
        graph.max_connections, graph.construction_ef, graph.max_level = details.hnsw
    chosen = getattr(message, details.quantizer)
    chosen.SetInParent()
    if details.quantizer != "flat":
        chosen.num_bits = details.bits
    if details.quantizer == "pq":
        chosen.num_sub_vectors = details.sub_vectors
    found: bytes = message.SerializeToString()
    return found


def _tensor(message: vector_pb2.Tensor) -> npt.NDArray[Any]:
    if message.data_type >= len(_DTYPES):
        raise CorruptError(f"an array of a vector index has the unknown type {message.data_type}")
    dtype = np.dtype(_DTYPES[message.data_type])
    shape = tuple(message.shape)
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize != len(message.data):
        raise CorruptError(
            f"an array of a vector index of shape {shape} has {len(message.data)} bytes, "
            f"expected {count * dtype.itemsize}"
        )
    return np.frombuffer(message.data, dtype).reshape(shape)


def _tensor_message(values: npt.NDArray[Any]) -> vector_pb2.Tensor:
    # Index 0 is bfloat16, which is also held as uint16.
    kind = _DTYPES.index(values.dtype.name, 1)
    return vector_pb2.Tensor(data_type=kind, shape=values.shape, data=values.tobytes())


def _parsed(kind: type[_M], data: bytes, what: str) -> _M:
    try:
        found: _M = kind.FromString(data)
    except DecodeError:
        raise CorruptError(f"{what} cannot be decoded") from None
    return found
