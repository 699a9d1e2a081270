"""Columns of vectors as matrices: their types, their values and the queries on them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import InputError
from lancetable.format.arrays import Mask

Matrix: TypeAlias = npt.NDArray[Any]
"""One vector a row; bfloat16 as the upper halves of 32-bit floats (uint16)."""
Vector: TypeAlias = Sequence[float] | Sequence[Sequence[float]] | npt.NDArray[Any] | pa.Array
"""A vector or several: numbers, rows of numbers, or Arrow lists."""

METRICS = ("l2", "cosine", "dot", "hamming")
"""In the order of their numbers in index files and in compiled functions."""
_NAMES = {"euclidean": "l2"}
_ITEMS: dict[pa.DataType, str] = {
    pa.float32(): "float32",
    pa.float16(): "float16",
    pa.float64(): "float64",
    pa.uint8(): "uint8",
    pa.binary(2): "bfloat16",
}
ITEMS = tuple(_ITEMS.values())
"""In the order of their numbers in compiled functions."""
_DTYPES = {"bfloat16": "uint16"}


class VectorType(NamedTuple):
    """The type of a column of vectors, or of lists of vectors."""

    item: str
    dim: int
    is_multi: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """How values are held in a matrix."""
        return np.dtype(_DTYPES.get(self.item, self.item))

    @property
    def query_dtype(self) -> np.dtype[Any]:
        """How queries are held in a matrix."""
        return np.dtype(self.item if self.item in {"float64", "uint8"} else "float32")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics by which such vectors are compared."""
        return METRICS[3:] if self.item == "uint8" else METRICS[:3]


def vector_type(type_: pa.DataType) -> VectorType | None:
    """Return the type of vectors in a column; None when it does not hold vectors."""
    is_multi = pt.is_list(type_) or pt.is_large_list(type_)
    inner = type_.value_type if is_multi else type_
    if not pt.is_fixed_size_list(inner) or not inner.list_size:
        return None
    item = _ITEMS.get(inner.value_type)
    return None if item is None else VectorType(item, inner.list_size, is_multi)


def parse_metric(given: str | None, type_: VectorType, default: str | None = None) -> str:
    """Return the metric that an argument names, or the default one.

    Raises:
        InputError: there is no such metric, or it does not compare such vectors.
    """
    if given is None:
        return default or type_.metrics[0]
    name = str(given).lower()
    name = _NAMES.get(name, name)
    if name not in METRICS:
        raise InputError(f"metric is {given!r}; give one of {', '.join(METRICS)}")
    if name not in type_.metrics:
        raise InputError(
            f"metric {name!r} does not compare vectors of {type_.item}; "
            f"give {' or '.join(type_.metrics)}"
        )
    return name


def queries_of(given: Vector, type_: VectorType) -> Matrix:
    """Return one or more vectors to look for as a matrix, rounded to the type of the column.

    Raises:
        InputError: they are not numbers, or have another dimension than the column.
    """
    try:
        found = np.asarray(given.to_pylist() if isinstance(given, pa.Array) else given)
        found = found.astype(np.float64) if found.dtype.kind == "O" else found
    except (TypeError, ValueError):
        found = np.empty(0, "U")
    if found.dtype.kind not in "iuf" or found.ndim not in {1, 2}:
        raise InputError(
            "vector must be a list of numbers, or a list of such lists of equal length"
        )
    if found.shape[-1] != type_.dim:
        raise InputError(f"the vector has {found.shape[-1]} dimensions, the column has {type_.dim}")
    matrix = found.reshape(-1, type_.dim)
    if type_.item == "uint8":
        if matrix.size and not bool(((matrix >= 0) & (matrix <= 255)).all()):
            raise InputError("vector has values outside 0 to 255, the column is of uint8")
        return np.ascontiguousarray(matrix.astype(np.uint8))
    with np.errstate(over="ignore"):
        rounded = matrix.astype(np.float16) if type_.item == "float16" else matrix
        return np.ascontiguousarray(rounded.astype(type_.query_dtype))


def is_matrix(given: Vector) -> bool:
    """Return whether something holds several vectors."""
    return np.ndim(np.asarray(given.to_pylist() if isinstance(given, pa.Array) else given)) == 2


def vectors_of(array: pa.Array, type_: VectorType) -> tuple[Matrix, Mask | None]:
    """Return the vectors of an array of fixed size lists, and which have all their values."""
    first, stop = array.offset * type_.dim, (array.offset + len(array)) * type_.dim
    values = array.values.slice(first, stop - first)
    data = np.frombuffer(values.buffers()[1] or b"", type_.dtype)
    data = data[values.offset : values.offset + len(values)]
    matrix = np.require(data.reshape(len(array), type_.dim), requirements=("C", "A"))
    usable = [np.asarray(array.is_valid())] if array.null_count else []
    if values.null_count:
        whole = np.asarray(values.is_valid()).reshape(len(array), type_.dim)
        usable.append(np.asarray(whole.all(axis=1)))
    return matrix, np.logical_and.reduce(usable) if usable else None


def as_floats(matrix: Matrix, type_: VectorType) -> Matrix:
    """Return vectors as 32-bit floats; those of 64 bits and of uint8 as they are."""
    if type_.item == "bfloat16":
        return (matrix.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return matrix.astype(np.float32) if type_.item == "float16" else matrix
