"""Metadata and columns of the files of a vector index.

==================  ===============================================================
``index.idx``       the centroids of the partitions, and graphs if there are any
``auxiliary.idx``   the rows and their vectors, one partition after the other
==================  ===============================================================
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.index.files import SegmentFiles
from lancetable.index.vector.codec import Partitions, decode_partitions, decode_tensor
from lancetable.index.vector.rabitq import Rotated, Rotation
from lancetable.index.vector.storage import Plain, Product, Scalar, Storage, number
from lancetable.index.vector.types import METRICS, Matrix, VectorType, vector_type

INDEX, AUXILIARY = "index.idx", "auxiliary.idx"
ROWS = "_rowid"
KINDS = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
MOST_DIMENSIONS = 1 << 16


class Layout(NamedTuple):
    """The description of a segment; ``graphs`` has that of each partition's graph."""

    kind: str
    metric: str
    centroids: Matrix
    centroid_type: VectorType
    partitions: Partitions
    storage: Storage
    described: Mapping[str, Any]
    loss: float | None = None
    graphs: tuple[Mapping[str, Any], ...] = ()
    graph_rows: Partitions | None = None

    @property
    def by_rows(self) -> frozenset[str]:
        """The columns that are stored by rows, although they are usually arranged for search."""
        plain = {"transposed": "__pq_code", "packed": "_rabit_codes"}
        return frozenset(
            column for name, column in plain.items() if self.described.get(name) is not True
        )

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return self.centroid_type.dim


def read_layout(files: SegmentFiles) -> Layout:
    """Return the description of a segment.

    Raises:
        CorruptError: the files contradict themselves or each other.
        UnsupportedError: they are of another release.
    """
    metadata = files.metadata(INDEX)
    said = _mapping(metadata.get("lance:index", ""))
    kind, metric = said.get("type"), said.get("distance_type")
    if kind not in KINDS or metric not in METRICS:
        raise UnsupportedError(f"a vector index of type {kind!r} by {metric!r} is not supported")
    index = _partitions(files, INDEX)
    partitions = _partitions(files, AUXILIARY)
    if index.centroids is None or len(partitions.lengths) != len(index.lengths):
        raise CorruptError(
            f"a vector index has {len(partitions.lengths)} partitions and "
            f"{'no' if index.centroids is None else len(index.lengths)} centroids"
        )
    _check_rows(partitions, files.rows(AUXILIARY))
    centroids = index.centroids
    dim = centroids.shape[1]
    if not 0 < dim <= MOST_DIMENSIONS or centroids.dtype.name not in {
        *("float16", "float32", "float64", "uint8"),
    }:
        raise CorruptError(f"the centroids of a vector index are {dim} {centroids.dtype} each")
    if (metric == "hamming") != (centroids.dtype == np.uint8):
        raise CorruptError(f"the centroids of an index by {metric} are of {centroids.dtype}")
    described = _storage_description(files)
    storage = _storage(files, str(kind).rpartition("_")[2], str(metric), dim, described)
    graphs: tuple[Mapping[str, Any], ...] = ()
    if "HNSW" in str(kind):
        graphs = _graphs(metadata.get("lance:hnsw", ""), len(index.lengths))
        _check_rows(index, files.rows(INDEX))
    item = "uint8" if centroids.dtype == np.uint8 else "float32"
    return Layout(
        str(kind),
        str(metric),
        np.ascontiguousarray(centroids, item),
        VectorType(item, dim),
        partitions,
        storage,
        described,
        index.loss,
        graphs,
        index if graphs else None,
    )


def _storage_description(files: SegmentFiles) -> Mapping[str, Any]:
    texts = _parsed(files.metadata(AUXILIARY).get("storage_metadata", ""))
    if not isinstance(texts, list) or len(texts) != 1 or not isinstance(texts[0], str):
        raise CorruptError("a vector index does not describe its storage")
    return _mapping(texts[0])


def _storage(
    files: SegmentFiles, kind: str, metric: str, dim: int, described: Mapping[str, Any]
) -> Storage:
    match kind:
        case "FLAT":
            type_ = vector_type(files.type(AUXILIARY, "flat"))
            if type_ is None or type_.dim != dim or metric not in type_.metrics:
                raise CorruptError(f"the vectors of an index of {dim} dimensions are {type_}")
            return Plain(type_, metric)
        case "SQ":
            return _scalar(metric, dim, described)
        case "PQ":
            return _product(files, metric, dim, described)
        case _:
            return _rotated(files, metric, dim, described)


def _scalar(metric: str, dim: int, described: Mapping[str, Any]) -> Scalar:
    number(described, "num_bits", 8, 8)
    bounds = described.get("bounds")
    found = [bounds.get(name) for name in ("start", "end")] if isinstance(bounds, dict) else []
    if not found or not all(isinstance(one, int | float) for one in found):
        raise CorruptError("a vector index does not say between which bounds its codes are")
    start, end = (float(one) for one in found if one is not None)
    if not np.isfinite([start, end]).all() or start > end:
        raise CorruptError(f"the codes of a vector index are between {start} and {end}")
    return Scalar(dim, metric, (start, end))


def _product(files: SegmentFiles, metric: str, dim: int, described: Mapping[str, Any]) -> Product:
    bits = number(described, "nbits", 4, 8)
    parts = number(described, "num_sub_vectors", 1, dim)
    place = number(described, "codebook_position", 1, 1 << 31)
    codebook = decode_tensor(files.global_buffer(AUXILIARY, place))
    if bits not in {4, 8} or dim % parts or parts * bits % 8 or codebook.size != dim << bits:
        raise CorruptError(
            f"a vector index has {parts} codes of {bits} bits for {dim} dimensions, and a "
            f"codebook of {codebook.size} numbers"
        )
    whole = codebook.astype(np.float32).reshape(parts, 1 << bits, dim // parts)
    is_transposed = described.get("transposed") is True
    return Product(whole, metric, is_transposed=is_transposed)


def _rotated(files: SegmentFiles, metric: str, dim: int, described: Mapping[str, Any]) -> Rotated:
    bits = number(described, "num_bits", 1, 9)
    number(described, "code_dim", dim, dim)
    if dim % 8:
        raise CorruptError(f"the codes of a vector index are of {dim} dimensions")
    signs: Any = described.get("fast_rotation_signs")
    matrix: Matrix | None = None
    if described.get("rotation_type") == "matrix":
        place = number(described, "rotate_mat_position", 1, 1 << 31)
        matrix = decode_tensor(files.global_buffer(AUXILIARY, place)).astype(np.float32)
        signs = None
        if matrix.shape != (dim, dim):
            raise CorruptError(f"the rotation of a vector index has the shape {matrix.shape}")
    elif not isinstance(signs, list) or len(signs) != dim // 2 or not set(signs) <= _BYTES:
        raise CorruptError("a vector index does not say how its vectors are rotated")
    return Rotated(
        Rotation(dim, None if signs is None else np.array(signs, np.uint8), matrix),
        metric,
        bits,
        is_packed=described.get("packed") is True,
        of_residual=described.get("query_estimator") != "raw_query",
    )


_BYTES = frozenset(range(256))


def _partitions(files: SegmentFiles, name: str) -> Partitions:
    place = files.metadata(name).get("lance:ivf", "")
    if not place.isdecimal():
        raise CorruptError(f"{name} does not say where its partitions are described")
    return decode_partitions(files.global_buffer(name, int(place)))


def _check_rows(partitions: Partitions, rows: int) -> None:
    stops = partitions.offsets + partitions.lengths
    if len(stops) and (int(stops.max()) > rows or int(partitions.offsets.max()) > rows):
        raise CorruptError(f"a partition of a vector index ends at {stops.max()} of {rows} rows")


def _graphs(text: str, partitions: int) -> tuple[Mapping[str, Any], ...]:
    texts = _parsed(text)
    if not isinstance(texts, list) or len(texts) != partitions:
        raise CorruptError(f"a vector index does not describe {partitions} graphs")
    return tuple(_mapping(one) if one else {} for one in texts)


def _mapping(text: object) -> Mapping[str, Any]:
    found = _parsed(text)
    if not isinstance(found, dict):
        raise CorruptError(f"a vector index describes itself as {text!r}")
    return found


def _parsed(text: object) -> object:
    try:
        found: object = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    return found


def rows_of(column: pa.Array) -> Any:  # noqa: ANN401 - an array of numbers
    """Return the rows of a partition.

    Raises:
        CorruptError: they are of another type, or null.
    """
    if column.type != pa.uint64() or column.null_count:
        raise CorruptError(f"rows of a vector index are of type {column.type}, expected uint64")
    return np.ascontiguousarray(column.to_numpy())
