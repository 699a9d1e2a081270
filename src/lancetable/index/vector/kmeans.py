"""Centroids of a sample: rounds of assignment and means; empty clusters split large ones."""

import numpy as np
import numpy.typing as npt

from lancetable.index.vector.distance import Floats, normalized

ROUNDS = 12
_HELD = 1 << 22
"""How many distances are held at a time."""
_SETTLED = 1e-4
"""The rounds end when the loss falls by a smaller part."""


def centroids_of(
    sample: Floats, count: int, *, rounds: int = ROUNDS, is_spherical: bool = False, seed: int = 0
) -> tuple[Floats, float]:
    """Return centroids of a sample and the sum of the squared distances to them.

    With fewer vectors than centroids, some centroids are alike.
    """
    draw = np.random.default_rng(seed)
    chosen = draw.permutation(len(sample))[:count]
    centroids = sample[np.resize(chosen, count)].astype(np.float32)
    loss = np.inf
    for _ in range(rounds):
        nearest, far = assigned(sample, centroids)
        before, loss = loss, float(far.sum(dtype=np.float64))
        centroids = _means(sample, nearest, centroids, draw)
        if is_spherical:
            unit = normalized(centroids)
            centroids = np.where(np.isfinite(unit), unit, centroids)
        if before - loss <= _SETTLED * loss:
            break
    return np.ascontiguousarray(centroids, np.float32), loss


def assigned(vectors: Floats, centroids: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the nearest centroid of each vector, and the squared distance to it."""
    nearest = np.empty(len(vectors), np.int64)
    far = np.empty(len(vectors), np.float32)
    squares = np.einsum("ij,ij->i", centroids, centroids)
    turned = np.ascontiguousarray(centroids.T)
    step = max(_HELD // max(len(centroids), 1), 1)
    for first in range(0, len(vectors), step):
        part = vectors[first : first + step]
        relative = squares - 2 * (part @ turned)
        best = relative.argmin(axis=1)
        nearest[first : first + step] = best
        least = np.take_along_axis(relative, best[:, None], axis=1)[:, 0]
        far[first : first + step] = least + np.einsum("ij,ij->i", part, part)
    return nearest, np.maximum(far, 0)


def _means(
    sample: Floats, nearest: npt.NDArray[np.int64], old: Floats, draw: np.random.Generator
) -> Floats:
    counts = np.bincount(nearest, minlength=len(old))
    order = np.argsort(nearest, kind="stable")
    filled = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[filled]
    means = old.copy()
    sums = np.add.reduceat(sample[order], starts, axis=0, dtype=np.float32)
    means[filled] = sums / counts[filled, None]
    empty = np.flatnonzero(counts == 0)
    if len(empty) and len(filled):
        # An empty cluster takes half of a large one: both go to the sides of its centroid.
        large = filled[np.argsort(-counts[filled], kind="stable")]
        from_ = np.resize(large, len(empty))
        spread = sample.std(axis=0) * np.float32(0.01)
        shift = draw.normal(size=(len(empty), sample.shape[1])).astype(np.float32) * spread
        means[empty] = means[from_] + shift
        means[from_] -= shift
    return means
