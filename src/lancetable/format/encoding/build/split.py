"""Split rows into several pages when one page would have too many levels.

A chunk counts its levels in 16 bits. Where values are rare among null and empty lists, the
levels between two chunks of values can be more.
"""

from collections.abc import Iterator

import numpy as np

from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.build.shred import Shredded
from lancetable.format.encoding.build.values import MOST_VALUES
from lancetable.format.encoding.repdef import layers_of, visible

MOST_LEVELS = 65535


def is_crowded(leaf: Shredded) -> bool:
    """Return whether a chunk of values might have more levels than can be counted."""
    if leaf.rep is None or leaf.def_ is None or len(leaf.rep) <= MOST_LEVELS:
        return False
    shown = visible(leaf.def_, layers_of(leaf.layers))
    if shown is None:
        return False
    # Levels behind the last value of a chunk belong to the next one, except for the last chunk.
    lasts = np.flatnonzero(shown)[MOST_VALUES - 1 : -1 : MOST_VALUES]
    edges = np.concatenate([[0], lasts + 1, [len(shown)]])
    return int(np.diff(edges).max()) > MOST_LEVELS


def split_rows(leaf: Shredded) -> Iterator[tuple[Shredded, int]]:
    """Cut a leaf between rows so that every part has few levels, and say how many rows it has.

    A single row may have more.
    """
    if leaf.rep is None or leaf.def_ is None:
        return
    layers = layers_of(leaf.layers)
    starts = np.append(np.flatnonzero(leaf.rep == layers.max_rep), len(leaf.rep))
    shown = visible(leaf.def_, layers)
    values = np.append(0, np.cumsum(np.ones(len(leaf.rep), np.bool_) if shown is None else shown))
    for first, last in _row_spans(starts):
        begin, end = int(starts[first]), int(starts[last])
        place = int(values[begin])
        part = leaf._replace(
            values=leaf.values.slice(place, int(values[end]) - place),
            rep=leaf.rep[begin:end],
            def_=leaf.def_[begin:end],
        )
        yield part, last - first


def _row_spans(starts: Integers) -> Iterator[tuple[int, int]]:
    rows = len(starts) - 1
    first = 0
    while first < rows:
        reached = int(np.searchsorted(starts, starts[first] + MOST_LEVELS, "right")) - 1
        last = min(max(reached, first + 1), rows)
        yield first, last
        first = last
