"""Measure which share of the nearest rows an index finds."""

import numpy as np

from lancetable.errors import InputError
from lancetable.fragment.readers import Readers
from lancetable.scan.plans import Plans
from lancetable.scan.request import ScanRequest
from lancetable.scan.take import Taker
from lancetable.scan.vector_request import VectorOptions, VectorRequest
from lancetable.scan.vectors.nearest import VectorSearch

_SEED = 0


def measure_recall(
    readers: Readers, column: str, sample: int, limit: int, options: VectorOptions
) -> float:
    """Return the share of the nearest rows of some vectors of the table that its index finds.

    Raises:
        InputError: there are no vectors, or a number is not positive.
    """
    if sample < 1:
        raise InputError(f"sample is {sample}; give a number from 1")
    rows = readers.starts[-1]
    chosen = np.random.default_rng(_SEED).choice(rows, min(sample, rows), replace=False)
    plan = Plans(readers.source.manifest.schema).of(ScanRequest(columns=(column,)))
    vectors = Taker(plan, readers).by_offset(np.sort(chosen)).column(0).to_pylist()
    kept: dict[object, object] = {}
    found = wanted = 0
    for vector in vectors:
        if vector is None or not vector or None in vector:
            continue
        near = VectorSearch(readers, VectorRequest(column, vector, limit, options=options), kept)
        exact = VectorRequest(
            column,
            vector,
            limit,
            options=VectorOptions(metric=near.metric),
            use_indices=False,
        )
        (truth,) = VectorSearch(readers, exact, kept).find()
        (answer,) = near.find()
        wanted += len(truth.rows)
        found += len(np.intersect1d(truth.rows, answer.rows))
    if not wanted:
        raise InputError(f"column {column!r} has no vectors to look for")
    return found / wanted
