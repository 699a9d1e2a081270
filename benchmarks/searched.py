"""The texts and vectors that are searched, the queries, and the rows that should be found.

Free of any peer, like `benchmarks.rows`. Texts and queries follow from row numbers alone, so that a
query knows words of a text without reading it.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.rows import SEED

DIMENSION, CLUSTERS, DIRECTIONS = 128, 500, 16
SUB_VECTORS, CODE_BITS = 16, 5
NPROBES, NEIGHBOURS = 10, 10
TAGS, TAGGED = 1_000, 50
"""How many tags there are, and below which one a twentieth of all rows is."""
PARTITION_ROWS = {
    "ivf_flat": 400,
    "ivf_pq": 400,
    "ivf_sq": 400,
    "ivf_rq": 400,
    "ivf_hnsw_sq": 6_250,
}
"""How many rows a partition of each kind of vector index has."""

_SYLLABLES = ["".join(pair) for pair in product("bdfghjklmnprtv", "aou")]
_WORDS = 20_000
_WORD_STRIDE = 49_999
"""A prime: neighbouring frequencies get different words."""
_SHORTEST, _LONGEST = 10, 50
_POOL = 10_000
"""How many queries there are; they are made before the first time is taken."""
Rows = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]


def tags(rows: Rows) -> Rows:
    """Return the tags of rows, each as often as any other."""
    return rows * 7_368_787 % TAGS


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return numbers that look random for numbers that count (splitmix64)."""
    numbers = numbers * np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


@cache
def _vocabulary() -> pa.StringArray:
    """Return words of three syllables, which no stemmer changes."""
    size = len(_SYLLABLES)
    places = [number * _WORD_STRIDE % size**3 for number in range(1, _WORDS + 1)]
    return pa.array(
        [
            _SYLLABLES[place // size**2]
            + _SYLLABLES[place // size % size]
            + _SYLLABLES[place % size]
            for place in places
        ]
    )


def _words(rows: Rows) -> pa.ListArray:
    """Return the words of texts; the frequency of a word is the inverse of its rank."""
    lengths = (_mixed(rows.astype(np.uint64)) % np.uint64(_LONGEST - _SHORTEST + 1)).astype(
        np.int64
    ) + _SHORTEST
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    seeds = np.repeat(rows + 1, lengths) * 64 + places
    parts = _mixed(seeds.astype(np.uint64)) / 2.0**64
    ranks = (np.power(float(_WORDS), parts) - 1).astype(np.int64)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _vocabulary().take(pa.array(ranks)))


def texts(rows: Rows) -> pa.StringArray:
    """Return the texts of rows: ten to fifty words."""
    # Loaded here only, as it would count towards the memory of a peer that does without it.
    import pyarrow.compute as pc

    joined: pa.StringArray = pc.binary_join(_words(rows), " ")
    return joined


@cache
def _asked_texts() -> list[list[str]]:
    texts: list[list[str]] = _words(np.arange(_POOL)).to_pylist()
    return texts


def words_of(row: int, count: int) -> list[str]:
    """Return the first different words of a row's text."""
    words = _asked_texts()[row % _POOL]
    return list(dict.fromkeys(words))[:count]


def phrase_of(row: int) -> str:
    """Return two words that are neighbours in a row's text."""
    words = _asked_texts()[row % _POOL]
    return " ".join(words[4:6])


@cache
def _space() -> tuple[Vectors, Vectors]:
    """Return the centres of clusters, and the few directions in which their vectors differ."""
    random = np.random.default_rng(SEED)
    centres = random.standard_normal((CLUSTERS, DIMENSION), np.float32)
    return centres, random.standard_normal((DIRECTIONS, DIMENSION), np.float32)


def vectors(rows: Rows) -> Vectors:
    """Return a vector for each row, in clusters; the same for the same sequence of rows."""
    random = np.random.default_rng([SEED, int(rows[0])])
    centres, directions = _space()
    noise = random.standard_normal((len(rows), DIRECTIONS), np.float32) @ directions
    clusters: Vectors = centres[random.integers(0, CLUSTERS, len(rows))]
    return clusters + noise / np.float32(2 * DIRECTIONS**0.5)


@cache
def _asked_vectors() -> Vectors:
    """Return vectors that no table has: those of other rows."""
    return vectors(np.arange(1 << 40, (1 << 40) + _POOL))


def queries(rows: Sequence[int]) -> Vectors:
    """Return new vectors of the same clusters, which follow from row numbers."""
    asked: Vectors = _asked_vectors()[np.array(rows) % _POOL]
    return asked


def recall(found: pa.Table, asked: Vectors, count: int, *, only_tagged: bool = False) -> float:
    """Return which part of the nearest rows of each query was found.

    Args:
        found: the rows found, with `id`, and `query_index` of their query.
        asked: the queries.
        count: how many rows the table has.
        only_tagged: whether rows with other tags were left out.
    """
    rows = np.arange(count)
    held = vectors(rows)
    if only_tagged:
        rows = rows[tags(rows) < TAGGED]
        held = held[rows]
    distances = (held**2).sum(axis=1) - 2 * asked @ held.T
    nearest = rows[np.argpartition(distances, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]]
    pairs = zip(found["query_index"].to_pylist(), found["id"].to_pylist(), strict=True)
    wanted = {(query, row) for query, each in enumerate(nearest.tolist()) for row in each}
    return len(wanted.intersection(pairs)) / len(wanted)
