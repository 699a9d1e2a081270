"""Learn the centroids and the codes of an index from a sample of its vectors."""

import numpy as np

from lancetable.errors import InputError
from lancetable.index.ivf import IvfFlat, IvfHnswFlat, IvfPq, IvfRq, IvfSq, Model
from lancetable.index.vector.distance import Floats, normalized
from lancetable.index.vector.kmeans import assigned, centroids_of
from lancetable.index.vector.types import Matrix, VectorType, as_floats

CODE_SAMPLE = 64
"""How many vectors for each code its values are learned from."""
CODE_ROUNDS = 10
_SEED = 7


def sample_rows(spec: IvfFlat, rows: int) -> int:
    """Return how many of so many rows the model is learned from."""
    codes = CODE_SAMPLE << spec.bits if isinstance(spec, IvfPq) else 0
    return min(rows, max(spec.partitions_for(rows) * spec.sample_rate, codes))


def train(spec: IvfFlat, sample: Matrix, rows: int, type_: VectorType) -> Model:
    """Return the model of an index of so many rows.

    Raises:
        InputError: the dimensions cannot be divided into parts.
    """
    if type_.item == "uint8":
        return _of_bits(spec, sample, rows, type_)
    vectors = usable(sample, type_, spec.metric)
    if not len(vectors):
        vectors = np.zeros((1, type_.dim), np.float32)
    partitions = min(spec.partitions_for(rows), len(vectors))
    learned = vectors[: max(partitions * spec.sample_rate, 1)]
    centroids, loss = centroids_of(learned, partitions, is_spherical=spec.metric == "cosine")
    # Files hold both in the type of the column, and codes are made with what files hold.
    centroids = centroids.astype(type_.dtype).astype(np.float32)
    model = Model(centroids, loss=loss)
    if isinstance(spec, IvfPq):
        codebook = _codebook(spec, vectors, centroids)
        return model._replace(codebook=codebook.astype(type_.dtype).astype(np.float32))
    if isinstance(spec, IvfRq):
        if type_.dim % 8:
            raise InputError(f"IvfRq takes a multiple of 8 dimensions, the column has {type_.dim}")
        signs = np.random.default_rng(_SEED).integers(0, 256, type_.dim // 2, np.uint8)
        return model._replace(signs=signs)
    if isinstance(spec, IvfSq):
        return model._replace(bounds=(float(vectors.min()), float(vectors.max())))
    return model


def usable(vectors: Matrix, type_: VectorType, metric: str) -> Floats:
    """Return the vectors that an index holds, as it compares them: finite ones, of length 1."""
    found = as_floats(vectors, type_).astype(np.float32, copy=False)
    if metric == "cosine":
        found = normalized(found)
    return found[np.isfinite(found).all(axis=1)]


def _codebook(spec: IvfPq, vectors: Floats, centroids: Floats) -> Floats:
    parts, codes = spec.parts_for(vectors.shape[1]), 1 << spec.bits
    sample = vectors[: CODE_SAMPLE * codes]
    if spec.metric != "dot":
        sample = sample - centroids[assigned(sample, centroids)[0]]
    split = sample.reshape(len(sample), parts, -1)
    return np.stack(
        [
            centroids_of(
                np.ascontiguousarray(split[:, part]), codes, rounds=CODE_ROUNDS, seed=part
            )[0]
            for part in range(parts)
        ]
    )


def _of_bits(spec: IvfFlat, sample: Matrix, rows: int, type_: VectorType) -> Model:
    """Return centroids by the majority of each bit."""
    if spec.metric != "hamming" or type(spec) not in {IvfFlat, IvfHnswFlat}:
        raise InputError(
            f"vectors of uint8 can have an index of IvfFlat or IvfHnswFlat by hamming, not {spec}"
        )
    if not len(sample):
        sample = np.zeros((1, type_.dim), np.uint8)
    partitions = min(spec.partitions_for(rows), len(sample))
    bits = np.unpackbits(sample, axis=1).astype(np.float32)
    means, loss = centroids_of(bits, partitions)
    return Model(np.packbits(means >= 0.5, axis=1), loss=loss)
