"""Keys as numbers: the published hash, the filters of inserted keys, and exact comparison."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.commit.rules.rows import may_share
from lancetable.commit.transaction import BloomFilter, ExactKeys
from lancetable.format.encoding.kernels.xxhash import hash_binary, hash_matrix, hash_words
from lancetable.operations.keys.join import index_keys
from lancetable.operations.keys.keys import InsertedKeys, codes_of, comparable, key_hashes
from tests.key_filters import key_filter

KNOWN = {
    b"": 0xEF46DB3751D8E999,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


def plain_xxh64(data):
    """Hash one string as the published description says, step by step."""
    mask = 2**64 - 1
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def turn(value, by):
        return ((value << by) | (value >> (64 - by))) & mask

    def mix(lane, word):
        return turn((lane + word * p2) & mask, 31) * p1 & mask

    rest, total = data, p5
    if len(data) >= 32:
        lanes = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while len(rest) >= 32:
            words = [int.from_bytes(rest[at : at + 8], "little") for at in range(0, 32, 8)]
            lanes = [mix(lane, word) for lane, word in zip(lanes, words, strict=True)]
            rest = rest[32:]
        total = sum(turn(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
        for lane in lanes:
            total = ((total ^ mix(0, lane)) * p1 + p4) & mask
    total = (total + len(data)) & mask
    while len(rest) >= 8:
        total = (turn(total ^ mix(0, int.from_bytes(rest[:8], "little")), 27) * p1 + p4) & mask
        rest = rest[8:]
    if len(rest) >= 4:
        word = int.from_bytes(rest[:4], "little")
        total = (turn(total ^ (word * p1 & mask), 23) * p2 + p3) & mask
        rest = rest[4:]
    for byte in rest:
        total = turn(total ^ (byte * p5 & mask), 11) * p1 & mask
    total = (total ^ (total >> 33)) * p2 & mask
    total = (total ^ (total >> 29)) * p3 & mask
    return total ^ (total >> 32)


@pytest.mark.parametrize("text", KNOWN)
def test_published_hashes(text):
    assert plain_xxh64(text) == KNOWN[text]
    assert hash_binary(pa.array([text], pa.large_binary())).tolist() == [KNOWN[text]]


@given(st.lists(st.binary(max_size=80)))
def test_hashes_of_strings(strings):
    array = pa.array([b"left out", *strings], pa.large_binary()).slice(1)
    assert hash_binary(array).tolist() == list(map(plain_xxh64, strings))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_hashes_of_numbers(numbers):
    words = np.array(numbers, np.uint64)
    matrix = words.astype("<u8").view(np.uint8).reshape(-1, 8)
    assert hash_words(words).tolist() == hash_matrix(matrix).tolist()
    assert hash_words(words).tolist() == [plain_xxh64(n.to_bytes(8, "little")) for n in numbers]


def inserted(hashes):
    keys = InsertedKeys(len(hashes))
    keys.add(hashes)
    return keys.filter((3,))


@pytest.mark.parametrize("count", [0, 100, 4096, 4097, 9000, 20_000])
def test_filters_are_those_of_a_loop_over_the_keys(count):
    hashes = hash_words(np.arange(count, dtype=np.uint64))
    assert inserted(hashes) == key_filter((3,), hashes.tolist())


def test_few_keys_may_share_with_a_filter_of_many():
    hashes = hash_words(np.arange(9000, dtype=np.uint64))
    few, many = inserted(hashes[:100]), inserted(hashes)
    assert isinstance(few.keys, ExactKeys)
    assert isinstance(many.keys, BloomFilter)
    assert may_share(few, many)
    others = hash_words(np.arange(10**6, 10**6 + 100, dtype=np.uint64))
    shared = [may_share(inserted(others[at : at + 1]), many) for at in range(100)]
    assert sum(shared) < 10


def test_keys_of_several_columns_are_their_parts_in_order():
    columns = [pa.array([1, 2]), comparable(pa.array(["a", "bc"]), "s")]
    wanted = [
        plain_xxh64((1).to_bytes(8, "little") + b"\0a\0"),
        plain_xxh64((2).to_bytes(8, "little") + b"\0bc\0"),
    ]
    assert key_hashes(columns).tolist() == wanted


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=15),
    st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=15),
)
def test_an_index_finds_what_a_loop_finds(source, wanted):
    index = index_keys([pa.array(source, pa.int64())])
    places, rows = index.find(codes_of([pa.array(wanted, pa.int64())]))
    found = sorted(zip(places.tolist(), rows.tolist(), strict=True))
    assert found == sorted(
        (place, row)
        for place, key in enumerate(wanted)
        for row, other in enumerate(source)
        if key is not None and key == other
    )
