"""Deleted rows, and the way from live rows to their offsets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancetable.fragment.deletions import Deletions

deleted = st.sets(st.integers(0, 40)).map(sorted)


def made(offsets: list[int]) -> Deletions:
    return Deletions(np.array(offsets, np.int64))


@given(deleted)
def test_the_nth_live_row_is_found(offsets):
    live = [row for row in range(60) if row not in offsets]

    found = made(offsets).physical(np.arange(len(live)))

    assert found.tolist() == live


@given(deleted)
def test_rank_is_the_inverse_of_physical(offsets):
    deletions = made(offsets)
    ranks = np.arange(60 - len(offsets))

    assert deletions.rank(deletions.physical(ranks)).tolist() == ranks.tolist()


@given(deleted.filter(bool), st.lists(st.integers(0, 60)))
def test_membership(offsets, asked):
    found = made(offsets).are(np.array(asked, np.int64))

    assert found.tolist() == [row in offsets for row in asked]


@given(deleted, st.integers(0, 60), st.integers(0, 60))
def test_within_counts_from_the_start_of_the_range(offsets, one, other):
    start, stop = sorted((one, other))

    found = made(offsets).within(start, stop)

    assert found.tolist() == [row - start for row in offsets if start <= row < stop]
