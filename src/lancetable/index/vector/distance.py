"""Distances between vectors.

========  ======================================================
l2        the sum of the squared differences
cosine    1 - the cosine of the angle; NaN for vectors of length 0
dot       1 - the product
hamming   the number of bits that differ
========  ======================================================

A distance that involves NaN is NaN, and such a vector is never found.
"""

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.index.vector.types import ITEMS, METRICS, Matrix, VectorType, as_floats

Floats = npt.NDArray[np.float32]


def distances(vectors: Matrix, queries: Matrix, type_: VectorType, metric: str) -> Floats:
    """Return the distance of each query (rows) to each vector (columns)."""
    found = np.empty((len(queries), len(vectors)), np.float32)
    if DLL is None:
        with np.errstate(all="ignore"):
            for place, query in enumerate(queries):
                found[place] = _plain(as_floats(vectors, type_), query, metric)
        return found
    lengths = _lengths(queries).astype(np.float32)
    DLL.lt_distances(
        address(vectors),
        ITEMS.index(type_.item),
        len(vectors),
        type_.dim,
        address(queries),
        len(queries),
        METRICS.index(metric),
        address(lengths),
        address(found),
    )
    return found


def normalized(vectors: Matrix) -> Matrix:
    """Return vectors of length 1; those of length 0 become NaN."""
    with np.errstate(all="ignore"):
        scaled: Matrix = vectors / _lengths(vectors)[:, None]
    return scaled.astype(vectors.dtype)


def _lengths(vectors: Matrix) -> Matrix:
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=vectors.dtype)
        found: Matrix = np.sqrt(squares.astype(np.float64 if vectors.itemsize == 8 else np.float32))
    return found


def _plain(vectors: Matrix, query: Matrix, metric: str) -> Matrix:
    if metric == "hamming":
        differing: Matrix = np.bitwise_xor(vectors, query)
        bits: Matrix = np.unpackbits(differing, axis=1).sum(axis=1, dtype=np.int64)
        return bits
    if metric == "l2":
        difference: Matrix = vectors - query
        squares: Matrix = np.einsum("ij,ij->i", difference, difference)
        return squares
    product: Matrix = vectors @ query
    if metric == "cosine":
        product = product / (_lengths(vectors) * _lengths(query[None, :])[0])
    return 1 - product
