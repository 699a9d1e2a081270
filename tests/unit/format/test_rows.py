"""Sets of rows behave like Python sets, and never lose a row that matches."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancetable.format.rows import MAX_FRAGMENT_ID, MAX_OFFSET, OFFSET_BITS, RowSet, row_address

FRAGMENTS = {0: 4, 2: 3, MAX_FRAGMENT_ID: 2}
EVERY = {id_ << OFFSET_BITS | at for id_, rows in FRAGMENTS.items() for at in range(rows)}
subsets = st.sets(st.sampled_from(sorted(EVERY)))


def rows(values, **options):
    return RowSet.from_addresses(np.array(sorted(values), np.uint64), **options)


@given(subsets, subsets)
def test_operations_are_those_of_sets(one, other):
    left, right = rows(one), rows(other)
    expected = {"and": one & other, "or": one | other, "sub": one - other, "not": EVERY - one}
    found = {
        "and": left & right,
        "or": left | right,
        "sub": left - right,
        "not": left.complement(FRAGMENTS),
    }
    for name, made in found.items():
        assert made == rows(expected[name])
        assert set(made.addresses().tolist()) == expected[name]
        assert len(made) == len(expected[name])
    for id_ in (*FRAGMENTS, 1):
        offsets = left.of_fragment(id_)
        assert offsets.dtype == np.int64
        assert offsets.tolist() == sorted(
            row & MAX_OFFSET for row in one if row >> OFFSET_BITS == id_
        )
    assert {row for row in EVERY if row in left} == one
    by_fragment = {id_: offsets.tolist() for id_, offsets in left.by_fragment().items()}
    assert by_fragment == {
        id_: left.of_fragment(id_).tolist() for id_ in FRAGMENTS if len(left.of_fragment(id_))
    }
    assert left.within([2, 7]) == rows({row for row in one if row >> OFFSET_BITS == 2})
    assert not left.at_most().is_exact


@given(subsets, subsets, subsets, subsets)
def test_a_superset_stays_one(one, more, other, others):
    left = rows(one | more, is_exact=not more)
    right = rows(other | others, is_exact=not others)
    cases = [
        (left & right, one & other),
        (left | right, one | other),
        (left - right, one - other),
        (left.complement(FRAGMENTS), EVERY - one),
    ]
    for found, expected in cases:
        assert expected <= set(found.addresses().tolist())
        if found.is_exact:
            assert found == rows(expected)


def test_ranges_reach_the_largest_address():
    last = 2**64 - 1
    found = RowSet.from_ranges([(0, 3), (5, 5), (last - 1, last + 1)])
    assert found.addresses().tolist() == [0, 1, 2, last - 1, last]
    assert found.of_fragment(MAX_FRAGMENT_ID).tolist() == [MAX_OFFSET - 1, MAX_OFFSET]
    assert (last in found, -1 in found, last + 1 in found, "a" in found) == (
        True,
        False,
        False,
        False,
    )
    assert pickle.loads(pickle.dumps(found)) == found
    assert not len(RowSet.from_addresses([]))


@given(st.integers(0, MAX_FRAGMENT_ID), st.integers(0, MAX_OFFSET))
def test_an_address_names_its_fragment_and_offset(fragment_id, offset):
    address = row_address(fragment_id, offset)
    assert (address >> OFFSET_BITS, address & MAX_OFFSET) == (fragment_id, offset)


def test_the_second_row_of_the_third_fragment():
    assert row_address(2, 1) == 0x2_0000_0001
