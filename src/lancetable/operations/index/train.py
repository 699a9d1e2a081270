"""Learn from a sample of the rows what all segments of an index share, before they are built."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.format.schema.types import without_extensions
from lancetable.fragment.readers import Readers
from lancetable.index.ivf import IvfFlat
from lancetable.index.specs import Spec
from lancetable.index.vector.train import sample_rows, train
from lancetable.index.vector.types import Matrix, VectorType, vector_type, vectors_of
from lancetable.operations.index.segments import column_type
from lancetable.operations.rows.parts import part_of
from lancetable.scan.plans import Plans
from lancetable.scan.request import ScanRequest
from lancetable.scan.take import Taker

_SEED = 0
_MULTI = 4
"""Of lists of vectors so many fewer rows are read."""


def trained(snapshot: Snapshot, column: str, spec: Spec, fragment_ids: AbstractSet[int]) -> Spec:
    """Return the parameters of an index with its model, learned from some fragments or from all.

    Raises:
        InputError: the parameters do not fit the column.
    """
    if not isinstance(spec, IvfFlat) or spec.model is not None:
        return spec
    type_ = cast("VectorType", vector_type(column_type(snapshot, column)))
    fragments = [one for one in snapshot.manifest.fragments if one.id in fragment_ids]
    readers = Readers(part_of(snapshot, fragments or snapshot.manifest.fragments))
    rows = readers.starts[-1]
    count = sample_rows(spec, rows)
    count = min(count, max(count // _MULTI, 1)) if type_.is_multi else count
    chosen = np.sort(np.random.default_rng(_SEED).choice(rows, count, replace=False))
    request = ScanRequest(columns=(column,))
    taken = Taker(Plans(snapshot.manifest.schema).of(request), readers).by_offset(chosen)
    parts = [_vectors(chunk, type_) for chunk in taken.column(0).chunks]
    sample = np.concatenate([*parts, np.empty((0, type_.dim), type_.dtype)])
    sample = sample[np.random.default_rng(_SEED).permutation(len(sample))]
    return spec.with_model(train(spec, sample, rows, type_))


def untrained(spec: Spec) -> Spec:
    """Return the parameters of an index without what was learned from earlier rows."""
    return replace(spec, model=None, partitions=None) if isinstance(spec, IvfFlat) else spec


def _vectors(values: pa.Array, type_: VectorType) -> Matrix:
    values = without_extensions(values)
    vectors, mask = vectors_of(values.flatten() if type_.is_multi else values, type_)
    return vectors if mask is None else vectors[mask]
