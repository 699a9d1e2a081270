"""The compiled ranking leaves out only what cannot be among the best."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancetable.format.encoding.kernels import compiled, ranking
from lancetable.format.encoding.kernels.ranking import (
    Corpus,
    Part,
    Positions,
    Postings,
    Ranking,
    best,
)

pytestmark = pytest.mark.skipif(compiled.DLL is None, reason="there are no compiled kernels")


def corpus_of(chance, documents, *, shuffled, masked, first_row):
    rows = np.arange(documents, dtype=np.uint64) * np.uint64(3) + np.uint64(first_row)
    if shuffled:
        chance.shuffle(rows)
    # Few distinct lengths give many equal scores.
    norms = chance.choice([0.5, 0.75, 1.0, 2.5], documents).astype(np.float32)
    allowed = chance.random(documents) < 0.6 if masked else None
    return norms, Corpus(rows, norms * np.float32(0.9), allowed, 1 / 0.9)


def postings_of(chance, documents, share, norms, *, with_positions):
    ids = np.flatnonzero(chance.random(documents) < share).astype(np.uint32)
    if not len(ids):
        return None
    frequencies = chance.choice([1, 1, 1, 2, 5], len(ids)).astype(np.uint32)
    found = Postings(ids, frequencies, norms)
    if with_positions:
        values = [np.sort(chance.choice(12, one, replace=False)) for one in frequencies]
        starts = np.concatenate([[0], np.cumsum(frequencies)]).astype(np.int64)
        found.positions = Positions(
            np.concatenate(values).astype(np.uint32), starts, int(frequencies.max())
        )
    return found


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_pruned_rankings_are_those_of_all_documents(data):
    chance = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    kind = data.draw(st.sampled_from(["any", "all", "phrase"]))
    words = data.draw(st.integers(1, 5))
    sizes = data.draw(st.lists(st.sampled_from([1, 50, 3000, 9000]), min_size=1, max_size=3))
    shares = [data.draw(st.sampled_from([0.001, 0.02, 0.3, 0.9])) for _ in range(words)]
    weights = [data.draw(st.sampled_from([0.0, 0.3, 1.7, 6.0])) for _ in range(words)]
    most = data.draw(st.sampled_from([1, 3, 10, 200]))
    parts = []
    for number, size in enumerate(sizes):
        norms, corpus = corpus_of(
            chance,
            size,
            shuffled=data.draw(st.booleans()),
            masked=data.draw(st.booleans()),
            first_row=number % 2 * 20_000,
        )
        lists = [
            postings_of(chance, size, share, norms, with_positions=kind == "phrase")
            for share in shares
        ]
        if words > 1 and data.draw(st.booleans()):
            lists[1] = lists[0]
        parts.append(Part(corpus, weights, lists))
    wanted = Ranking(
        tuple(np.cumsum(chance.choice([1, 1, 2], words)).tolist()),
        needs_all=kind != "any",
        slop=data.draw(st.integers(0, 2)) if kind == "phrase" else None,
    )
    expected = ranking._every(parts, wanted, most)
    found = best(parts, wanted, most)
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.scores.tolist() == expected.scores.tolist()


def test_nothing_to_rank():
    norms, corpus = corpus_of(
        np.random.default_rng(0), 5, shuffled=False, masked=False, first_row=0
    )
    for wanted in (Ranking(()), Ranking((0,)), Ranking((0,), needs_all=True)):
        for parts in ([], [Part(corpus, [1.0], [None])][: len(wanted.groups)]):
            assert len(best(parts, wanted, 10).rows) == 0
    full = Postings(np.arange(5, dtype=np.uint32), np.ones(5, np.uint32), norms)
    assert len(best([Part(corpus, [1.0], [full])], Ranking((0,)), 0).rows) == 0
