"""Vectors of an index as its files hold them: whole, or as codes of scalars or of products.

=========  ==================  ================================================================
kind       column              content
=========  ==================  ================================================================
Plain      ``flat``            the vectors; those of a cosine index have length 1
Scalar     ``__sq_code``       a byte a dimension between two bounds
Product    ``__pq_code``       a code for each part of the vector, or of what it lies off its
                               centroid; by bytes of the code within a partition
=========  ==================  ================================================================
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.records import SearchRecord
from lancetable.index.vector.distance import Floats, distances
from lancetable.index.vector.types import (
    ITEMS,
    METRICS,
    Matrix,
    VectorType,
    vector_type,
    vectors_of,
)

PLAIN, PRODUCT, SCALAR, ROTATED, WIDE_ROTATED = range(5)
"""The kinds in compiled functions."""
Bytes = npt.NDArray[np.uint8]


class Codes(NamedTuple):
    """The vectors of one partition."""

    values: npt.NDArray[Any]
    factors: Floats | None = None


class Query(NamedTuple):
    """A vector to look for; ``rotated`` for codes of rotated vectors."""

    vector: npt.NDArray[Any]
    rotated: Floats | None = None


class Storage(Protocol):
    """One way to hold vectors."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file beside that of the rows."""
        ...

    @property
    def query_dtype(self) -> np.dtype[Any]:
        """The type of the numbers of queries."""
        ...

    def describe(self, record: SearchRecord) -> int:
        """Fill what compiled functions have to know; return how many floats they need room for."""
        ...

    def load(self, columns: Sequence[pa.Array], centroid: Floats, *, by_row: bool) -> Codes:
        """Return the vectors of a partition; ``by_row`` for random access.

        Raises:
            CorruptError: they have another size than the file says.
        """
        ...

    def estimates(self, codes: Codes, query: Query, centroid: Floats, *, by_row: bool) -> Floats:
        """Return about how far vectors are from a query."""
        ...

    def rotate(self, queries: Matrix) -> Floats | None:
        """Return rotated queries, where vectors are."""
        ...


class Plain:
    """Whole vectors."""

    columns = ("flat",)

    def __init__(self, type_: VectorType, metric: str) -> None:
        self.type = type_
        self.metric = "dot" if metric == "cosine" else metric
        self.query_dtype = type_.query_dtype

    def describe(self, record: SearchRecord) -> int:
        """Fill what compiled functions have to know."""
        record.kind, record.type = PLAIN, ITEMS.index(self.type.item)
        record.metric = METRICS.index(self.metric)
        return 0

    def load(self, columns: Sequence[pa.Array], centroid: Floats, *, by_row: bool) -> Codes:
        """Return the vectors of a partition."""
        if vector_type(columns[0].type) != self.type:
            raise CorruptError(f"the vectors of a partition are of type {columns[0].type}")
        matrix, mask = vectors_of(columns[0], self.type)
        if mask is not None and not mask.all():
            raise CorruptError("a vector in a partition is null")
        return Codes(matrix)

    def estimates(self, codes: Codes, query: Query, centroid: Floats, *, by_row: bool) -> Floats:
        """Return how far vectors are from a query."""
        found: Floats = distances(codes.values, query.vector[None, :], self.type, self.metric)[0]
        return found

    def rotate(self, queries: Matrix) -> None:
        """Return nothing: vectors are not rotated."""


class Scalar:
    """A byte a dimension, cut off to the step below."""

    columns = ("__sq_code",)
    query_dtype = np.dtype(np.float32)

    def __init__(self, dim: int, metric: str, bounds: tuple[float, float]) -> None:
        self.dim = dim
        self.metric = "dot" if metric == "dot" else "l2"
        start, end = bounds
        self.bounds = bounds
        self.parameters = np.array([start, (end - start) / 255 or 1.0], np.float32)

    def describe(self, record: SearchRecord) -> int:
        """Fill what compiled functions have to know."""
        record.kind, record.metric = SCALAR, METRICS.index(self.metric)
        record.parameters = address(self.parameters)
        return self.dim

    def load(self, columns: Sequence[pa.Array], centroid: Floats, *, by_row: bool) -> Codes:
        """Return the codes of a partition."""
        return Codes(byte_rows(columns[0], self.dim))

    def estimates(self, codes: Codes, query: Query, centroid: Floats, *, by_row: bool) -> Floats:
        """Return about how far vectors are from a query."""
        start, step = self.parameters
        if self.metric == "dot":
            near: Floats = codes.values.astype(np.float32) @ query.vector
            far: Floats = 1 - (start + step / 2) * query.vector.sum() - step * near
            return far
        wanted = self.encode(query.vector[None, :]).astype(np.int32)
        difference = codes.values.astype(np.int32) - wanted
        found: Floats = np.einsum("ij,ij->i", difference, difference) * (step * step)
        return found.astype(np.float32)

    def encode(self, vectors: Matrix) -> Bytes:
        """Return the codes of vectors."""
        start, step = self.parameters
        found: Bytes = np.clip((vectors - start) / step, 0, 255).astype(np.uint8)
        return found

    def rotate(self, queries: Matrix) -> None:
        """Return nothing: vectors are not rotated."""


class Product:
    """A code for each part of a vector: the number of the nearest of its values.

    ``codebook`` has the shape (parts, codes, dimensions of a part).
    """

    columns = ("__pq_code",)
    query_dtype = np.dtype(np.float32)

    def __init__(self, codebook: Floats, metric: str, *, is_transposed: bool = True) -> None:
        self.codebook = codebook
        self.metric = "dot" if metric == "dot" else "l2"
        self.parts, codes, self.part_dim = codebook.shape
        self.bits = codes.bit_length() - 1
        self.width = self.parts * self.bits // 8
        self._is_transposed = is_transposed
        self._by_dimension = np.ascontiguousarray(codebook.transpose(0, 2, 1))

    def describe(self, record: SearchRecord) -> int:
        """Fill what compiled functions have to know."""
        record.kind, record.metric = PRODUCT, METRICS.index(self.metric)
        record.sub_vectors, record.code_bits = self.parts, self.bits
        record.codebook = address(self._by_dimension)
        return int(self.width) * 256

    def load(self, columns: Sequence[pa.Array], centroid: Floats, *, by_row: bool) -> Codes:
        """Return the codes of a partition, by rows or by bytes of the code."""
        codes = byte_rows(columns[0], self.width)
        if self._is_transposed:
            codes = codes.reshape(self.width, -1)
        wants_transposed = not by_row
        if wants_transposed != self._is_transposed:
            codes = codes.T
        return Codes(np.ascontiguousarray(codes))

    def estimates(self, codes: Codes, query: Query, centroid: Floats, *, by_row: bool) -> Floats:
        """Return about how far vectors are from a query."""
        by_byte = codes.values.T if by_row else codes.values
        wanted = query.vector - centroid if self.metric == "l2" else query.vector
        parts = wanted.reshape(self.parts, 1, self.part_dim)
        if self.metric == "l2":
            tables = ((parts - self.codebook) ** 2).sum(axis=2)
        else:
            tables = -(parts * self.codebook).sum(axis=2)
        found = np.full(by_byte.shape[1], 0 if self.metric == "l2" else 1, np.float32)
        for part, numbers in enumerate(unpacked(by_byte, self.bits)):
            found += tables[part][numbers]
        return found

    def rotate(self, queries: Matrix) -> None:
        """Return nothing: vectors are not rotated."""


def unpacked(by_byte: Bytes, bits: int) -> Bytes:
    """Return one row for each part from codes by bytes; of two in a byte the low half first."""
    if bits == 8:
        return by_byte
    halves = np.stack([by_byte & 15, by_byte >> 4], axis=1)
    return halves.reshape(-1, by_byte.shape[1])


def byte_rows(column: pa.Array, width: int) -> Bytes:
    """Return a column of lists of bytes as a matrix.

    Raises:
        CorruptError: it is of another type, or has nulls.
    """
    if vector_type(column.type) != VectorType("uint8", width):
        raise CorruptError(f"codes are of type {column.type}, expected {width} bytes each")
    found, mask = vectors_of(column, VectorType("uint8", width))
    if mask is not None:
        raise CorruptError("a code is null")
    return found


def number(values: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """Return a whole number of the description of a file.

    Raises:
        CorruptError: it is missing or out of range.
    """
    found = values.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        raise CorruptError(f"{name} of a vector index is {found!r}, expected {least} to {most}")
    return found
