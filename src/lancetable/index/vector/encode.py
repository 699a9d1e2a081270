"""Vectors as records of an index: their rows, and themselves or their codes."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.index.base import ROW, VALUE
from lancetable.index.ivf import IvfFlat, IvfPq, IvfRq, Model
from lancetable.index.vector.codec import Details, Hnsw, encode_tensor
from lancetable.index.vector.columns import Records, dtype_of, lists, row_field
from lancetable.index.vector.distance import Floats, distances, normalized
from lancetable.index.vector.kmeans import assigned
from lancetable.index.vector.layout import ROWS
from lancetable.index.vector.rabitq import Rotation, pack_more, quantized
from lancetable.index.vector.storage import Scalar, unpacked
from lancetable.index.vector.top import Rows
from lancetable.index.vector.types import Matrix, VectorType, as_floats, vectors_of

STEP = 1 << 15
"""How many vectors are encoded at a time."""


class Encoder(Protocol):
    """What turns vectors into the records of one kind of index."""

    schema: pa.Schema

    def fill(self, records: Records, vectors: Matrix, partitions: npt.NDArray[np.int64]) -> None:
        """Fill the columns beside the row, of vectors that were assigned to partitions."""
        ...

    def stored(self, records: Records, partition: int) -> Matrix:
        """Return the vectors that records stand for, as 32-bit floats or bytes."""
        ...

    def description(self) -> Mapping[str, Any]:
        """Return how the file describes its columns."""
        ...

    def buffers(self) -> list[bytes]:
        """Return the global buffers behind that of the partitions."""
        ...

    def details(self) -> Details:
        """Return what the manifest says."""
        ...


class PlainEncoder:
    """Whole vectors."""

    def __init__(self, spec: IvfFlat, type_: VectorType) -> None:
        self._spec = spec
        self._dim = type_.dim
        item = pa.from_numpy_dtype(type_.dtype)
        self.schema = pa.schema([row_field(), lists("flat", item, type_.dim)])

    def fill(self, records: Records, vectors: Matrix, partitions: npt.NDArray[np.int64]) -> None:
        """Fill the vectors."""
        del partitions
        records["flat"] = vectors

    def stored(self, records: Records, partition: int) -> Matrix:
        """Return the vectors."""
        del partition
        values = records["flat"]
        return np.ascontiguousarray(values, None if values.dtype == np.uint8 else np.float32)

    def description(self) -> Mapping[str, Any]:
        """Return how the file describes its columns."""
        return {"dim": self._dim}

    def buffers(self) -> list[bytes]:
        """Return no buffers."""
        return []

    def details(self) -> Details:
        """Return what the manifest says."""
        return _with_graph(Details(self._spec.metric), self._spec)


class ScalarEncoder:
    """A byte for each dimension."""

    def __init__(self, spec: IvfFlat, model: Model, dim: int) -> None:
        self._spec = spec
        self._bounds = model.bounds or (0.0, 0.0)
        self._scalar = Scalar(dim, spec.metric, self._bounds)
        self.schema = pa.schema([row_field(), lists("__sq_code", pa.uint8(), dim)])

    def fill(self, records: Records, vectors: Matrix, partitions: npt.NDArray[np.int64]) -> None:
        """Fill the codes."""
        del partitions
        records["__sq_code"] = self._scalar.encode(vectors.astype(np.float32))

    def stored(self, records: Records, partition: int) -> Matrix:
        """Return the vectors that codes stand for."""
        del partition
        start, step = self._scalar.parameters
        return np.ascontiguousarray(start + records["__sq_code"] * step, np.float32)

    def description(self) -> Mapping[str, Any]:
        """Return how the file describes its columns."""
        start, end = self._bounds
        bounds = {"start": start, "end": end}
        return {"dim": self._scalar.dim, "num_bits": 8, "bounds": bounds}

    def buffers(self) -> list[bytes]:
        """Return no buffers."""
        return []

    def details(self) -> Details:
        """Return what the manifest says."""
        return _with_graph(Details(self._spec.metric, "sq", 8), self._spec)


class ProductEncoder:
    """A code for each part of a vector."""

    def __init__(self, spec: IvfPq, model: Model, type_: VectorType) -> None:
        assert model.codebook is not None
        self._spec = spec
        self._dim = type_.dim
        self._dtype = type_.dtype
        self._centroids = np.asarray(model.centroids, np.float32)
        self._codebook = np.asarray(model.codebook, np.float32)
        self._parts = len(self._codebook)
        width = self._parts * spec.bits // 8
        self.schema = pa.schema([row_field(), lists("__pq_code", pa.uint8(), width)])

    def fill(self, records: Records, vectors: Matrix, partitions: npt.NDArray[np.int64]) -> None:
        """Fill the codes."""
        values = vectors.astype(np.float32)
        if self._spec.metric != "dot":
            values = values - self._centroids[partitions]
        codes = np.empty((len(values), self._parts), np.uint8)
        split = values.reshape(len(values), self._parts, -1)
        for part, book in enumerate(self._codebook):
            codes[:, part] = assigned(np.ascontiguousarray(split[:, part]), book)[0]
        if self._spec.bits == 4:
            records["__pq_code"] = codes[:, ::2] | codes[:, 1::2] << 4
        else:
            records["__pq_code"] = codes

    def stored(self, records: Records, partition: int) -> Matrix:
        """Return the vectors that codes stand for."""
        codes = unpacked(np.ascontiguousarray(records["__pq_code"].T), self._spec.bits)
        parts = [book[one] for book, one in zip(self._codebook, codes, strict=True)]
        found: Matrix = np.concatenate(parts, axis=1)
        return found if self._spec.metric == "dot" else found + self._centroids[partition]

    def description(self) -> Mapping[str, Any]:
        """Return how the file describes its columns."""
        return {
            "codebook_position": 2,
            "nbits": self._spec.bits,
            "num_sub_vectors": self._parts,
            "dimension": self._dim,
            "codebook_tensor": [],
            "transposed": True,
        }

    def buffers(self) -> list[bytes]:
        """Return the codebook, by parts, in the shape that readers expect."""
        shape = (1 << self._spec.bits, self._dim)
        return [encode_tensor(self._codebook.reshape(shape).astype(self._dtype))]

    def details(self) -> Details:
        """Return what the manifest says."""
        details = Details(self._spec.metric, "pq", self._spec.bits, self._parts)
        return _with_graph(details, self._spec)


class RotatedEncoder:
    """A sign and further bits for each dimension of what a rotated vector lies off its centroid."""

    def __init__(self, spec: IvfRq, model: Model, dim: int) -> None:
        assert model.signs is not None
        self._spec = spec
        self._signs = model.signs
        self._rotation = Rotation(dim, model.signs)
        self._centroids = np.asarray(model.centroids, np.float32)
        more = spec.bits - 1
        width = 8 * more * -(-dim // 64)
        names = ["__add_factors", "__scale_factors", "__error_factors"]
        fields = [row_field(), lists("_rabit_codes", pa.uint8(), dim // 8)]
        fields += [pa.field(name, pa.float32()) for name in names]
        if more:
            fields.append(lists("__blocked_ex_codes", pa.uint8(), width))
            fields += [pa.field(f"{name}_ex", pa.float32()) for name in names[:2]]
        self.schema = pa.schema(fields)

    def fill(self, records: Records, vectors: Matrix, partitions: npt.NDArray[np.int64]) -> None:
        """Fill the codes and the factors that turn products into distances."""
        centroids = self._centroids[partitions]
        off = vectors.astype(np.float32) - centroids
        turned, centres = self._rotation(off), self._rotation(centroids)
        codes, more = quantized(turned, self._spec.bits), self._spec.bits - 1
        signs = (codes >> more).astype(np.uint8)
        records["_rabit_codes"] = np.packbits(signs, axis=1, bitorder="little")
        self._fill_factors(records, "", signs - np.float32(0.5), (turned, centres))
        if more:
            low = codes & ((1 << more) - 1)
            records["__blocked_ex_codes"] = pack_more(low.astype(np.uint8), more)
            values = codes - np.float32(2**more - 0.5)
            self._fill_factors(records, "_ex", values, (turned, centres))

    def stored(self, records: Records, partition: int) -> Matrix:
        """Return nothing: there are no graphs of rotated codes."""
        del partition
        return np.empty((len(records), 0), np.float32)

    def _fill_factors(
        self, records: Records, ending: str, values: Floats, rotated: tuple[Floats, Floats]
    ) -> None:
        turned, centres = rotated
        is_dot = self._spec.metric == "dot"
        square = np.einsum("ij,ij->i", turned, turned)
        along = np.einsum("ij,ij->i", turned, values)
        is_zero = along == 0
        ratio = square / np.where(is_zero, 1, along)
        scale = np.where(is_zero, 0, -ratio if is_dot else -2 * ratio)
        add = 1 - np.einsum("ij,ij->i", turned, centres) if is_dot else square
        records[f"__add_factors{ending}"] = add - scale * np.einsum("ij,ij->i", values, centres)
        records[f"__scale_factors{ending}"] = scale
        if not ending:
            spread = ratio * np.einsum("ij,ij->i", values, values) / np.where(is_zero, 1, along)
            share = np.maximum(spread - 1, 0) / max(turned.shape[1] - 1, 1)
            error = (1 if is_dot else 2) * 1.9 * np.sqrt(square * share)
            records["__error_factors"] = np.where(is_zero, 0, error)

    def description(self) -> Mapping[str, Any]:
        """Return how the file describes its columns."""
        return {
            "rotate_mat_position": None,
            "fast_rotation_signs": self._signs.tolist(),
            "rotation_type": "fast",
            "code_dim": self._rotation.dim,
            "num_bits": self._spec.bits,
            "packed": True,
            "query_estimator": "raw_query",
        }

    def buffers(self) -> list[bytes]:
        """Return no buffers."""
        return []

    def details(self) -> Details:
        """Return what the manifest says."""
        return Details(self._spec.metric, "rq", self._spec.bits)


def _with_graph(details: Details, spec: IvfFlat) -> Details:
    return details if spec.graph is None else details._replace(hnsw=Hnsw(*spec.graph))


def encoder_for(spec: IvfFlat, model: Model, type_: VectorType) -> Encoder:
    """Return what encodes the vectors of an index."""
    match spec.name.rpartition("_")[2]:
        case "PQ":
            assert isinstance(spec, IvfPq)
            return ProductEncoder(spec, model, type_)
        case "SQ":
            return ScalarEncoder(spec, model, type_.dim)
        case "RQ":
            assert isinstance(spec, IvfRq)
            return RotatedEncoder(spec, model, type_.dim)
        case _:
            return PlainEncoder(spec, type_)


def encoded(
    batch: pa.RecordBatch, spec: IvfFlat, model: Model, encoder: Encoder, type_: VectorType
) -> Iterator[tuple[npt.NDArray[np.int64], Records]]:
    """Yield the partitions and the records of the vectors of a batch that the index holds."""
    vectors, rows = _single(batch, type_)
    for first in range(0, len(rows), STEP):
        found, named = vectors[first : first + STEP], rows[first : first + STEP]
        partitions, found, named = _assigned(found, named, spec, model, type_)
        records: Records = np.empty(len(named), dtype_of(encoder.schema))
        records[ROWS] = named
        encoder.fill(records, found, partitions)
        yield partitions, records


def _single(batch: pa.RecordBatch, type_: VectorType) -> tuple[Matrix, Rows]:
    """Return all vectors of a batch that are not null, and their rows."""
    values, rows = batch.column(VALUE), np.asarray(batch.column(ROW))
    if type_.is_multi:
        counts = np.asarray(values.value_lengths().fill_null(0)).astype(np.int64)
        values, rows = values.flatten(), np.repeat(rows, counts)
    vectors, mask = vectors_of(values, type_)
    return (vectors, rows) if mask is None else (vectors[mask], rows[mask])


def _assigned(
    vectors: Matrix, rows: Rows, spec: IvfFlat, model: Model, type_: VectorType
) -> tuple[npt.NDArray[np.int64], Matrix, Rows]:
    """Return the partitions of vectors, without those that the index does not hold."""
    if type_.item == "uint8":
        far = distances(np.asarray(model.centroids), vectors, type_, spec.metric)
        return far.argmin(axis=1), vectors, rows
    compared: Floats = as_floats(vectors, type_).astype(np.float32, copy=False)
    if spec.metric == "cosine":
        compared = normalized(compared)
        vectors = normalized(as_floats(vectors, type_)).astype(type_.dtype)
    is_finite = np.isfinite(compared).all(axis=1)
    if not is_finite.all():
        compared, vectors, rows = compared[is_finite], vectors[is_finite], rows[is_finite]
    partitions, _ = assigned(compared, np.asarray(model.centroids, np.float32))
    return partitions, vectors, rows
