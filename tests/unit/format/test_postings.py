"""Postings are decoded as they were written, and damaged ones are refused."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels import compiled, postings
from lancetable.format.encoding.kernels.postings import Pieces, PostingFormat
from tests.postings import blocks_of, items_of, pieces, stream_of

DOCUMENTS = 1 << 20
FORMATS = [PostingFormat(128), PostingFormat(128, plain_tail=True), PostingFormat(256)]
COUNTS = st.sampled_from([0, 1, 2, 127, 128, 129, 255, 256, 257, 700])


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def kernels(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(postings, "DLL", None)
    elif compiled.DLL is None:
        pytest.skip("there are no compiled kernels")


def drawn(seed, count, most=6):
    chance = random.Random(seed)
    ids = sorted(chance.sample(range(DOCUMENTS), count))
    frequencies = [chance.choice([1, 1, 2, chance.randint(1, most)]) for _ in ids]
    return ids, frequencies, chance


@pytest.mark.parametrize("format_", FORMATS)
@given(count=COUNTS, seed=st.integers(0, 1000), most=st.sampled_from([6, 40_000]))
@settings(max_examples=15)
def test_documents_and_frequencies(format_, count, seed, most):
    ids, frequencies, _ = drawn(seed, count, most)
    blocks = pieces(blocks_of(ids, frequencies, format_.block, plain_tail=format_.plain_tail))
    found = postings.decode_postings(blocks, count, format_, DOCUMENTS)
    assert [one.tolist() for one in found] == [ids, frequencies]


@given(count=COUNTS, seed=st.integers(0, 1000), most=st.sampled_from([6, 300]))
@settings(max_examples=15)
def test_positions(count, seed, most):
    _, frequencies, chance = drawn(seed, count, most)
    positions = [sorted(chance.sample(range(5000), one)) for one in frequencies]
    expected = [position for one in positions for position in one]
    counts = np.array(frequencies, np.uint32)
    for block in (128, 256):
        found = postings.decode_positions(pieces(stream_of(positions, block)), block, counts)
        assert found.tolist() == expected
    items = [items_of(one) for one in positions]
    firsts = np.cumsum([0, *map(len, items)]).astype(np.int64)
    flat = pieces([item for one in items for item in one])
    assert postings.decode_position_items(flat, firsts, counts).tolist() == expected


@given(seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_the_best_share_of_each_block(seed):
    ids, frequencies, chance = drawn(seed, 300)
    norms = np.array([chance.random() for _ in range(DOCUMENTS)], np.float32)
    words = np.array(ids, np.uint32), np.array(frequencies, np.uint32)
    shares = [tf / (tf + float(norms[id_])) for id_, tf in zip(ids, frequencies, strict=True)]
    found = postings.block_maxima(*words, norms).tolist()
    assert found == [max(shares[at : at + 128]) for at in range(0, 300, 128)]


@given(
    format_=st.sampled_from(FORMATS),
    count=st.sampled_from([5, 130, 300]),
    place=st.integers(0, 5000),
    byte=st.integers(0, 255),
    cut=st.integers(0, 3),
)
@settings(max_examples=60)
def test_damaged_blocks_are_refused_or_ascend(format_, count, place, byte, cut):
    ids, frequencies, _ = drawn(count, count)
    blocks = pieces(blocks_of(ids, frequencies, format_.block, plain_tail=format_.plain_tail))
    data = blocks.data.copy()
    data[place % len(data)] ^= byte
    edges = blocks.edges.copy()
    edges[-1] -= cut
    try:
        found, _ = postings.decode_postings(Pieces(data, edges), count, format_, DOCUMENTS)
    except CorruptError:
        return
    assert (found[1:] > found[:-1]).all()
    assert found[-1] < DOCUMENTS


@given(place=st.integers(0, 5000), byte=st.integers(1, 255))
@settings(max_examples=60)
def test_damaged_positions_never_crash(place, byte):
    _, frequencies, chance = drawn(7, 200, 300)
    positions = [sorted(chance.sample(range(5000), one)) for one in frequencies]
    counts = np.array(frequencies, np.uint32)
    stream = pieces(stream_of(positions, 128))
    items = [items_of(one) for one in positions]
    firsts = np.cumsum([0, *map(len, items)]).astype(np.int64)
    flat = pieces([item for one in items for item in one])
    for one, decode in (
        (stream, lambda parts: postings.decode_positions(parts, 128, counts)),
        (flat, lambda parts: postings.decode_position_items(parts, firsts, counts)),
    ):
        data = one.data.copy()
        data[place % len(data)] ^= byte
        try:
            found = decode(Pieces(data, one.edges))
        except CorruptError:
            continue
        assert len(found) == sum(frequencies)


def test_blocks_outside_their_bytes_are_refused():
    ids, frequencies, _ = drawn(1, 200)
    blocks = pieces(blocks_of(ids, frequencies, 128))
    beyond = blocks.edges.copy()
    beyond[-1] += 1
    for edges in (beyond, blocks.edges[:-1], blocks.edges[::-1].copy()):
        with pytest.raises(CorruptError, match="block"):
            postings.decode_postings(Pieces(blocks.data, edges), 200, PostingFormat(128), DOCUMENTS)
    with pytest.raises(CorruptError, match="documents of 100"):
        postings.decode_postings(blocks, 200, PostingFormat(128), 100)
