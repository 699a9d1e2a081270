"""Roaring bitmaps, against the library that defines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancetable.errors import CorruptError
from lancetable.format.manifest.roaring import decode_bitmap

ranges = st.lists(
    st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 9000), st.sampled_from([1, 1, 2, 7])),
    max_size=6,
)


def bitmap(parts):
    made = BitMap()
    for start, count, step in parts:
        made |= BitMap(range(start, min(start + count * step, 2**32), step))
    return made


@given(ranges, st.booleans())
def test_the_values_are_those_of_the_library(parts, with_runs):
    made = bitmap(parts)
    if with_runs:
        made.run_optimize()
    found = decode_bitmap(made.serialize(), most=2**32)
    assert np.array_equal(found, np.array(made, np.uint32))


@given(ranges, st.booleans(), st.data())
def test_damage_is_noticed_or_harmless(parts, with_runs, data):
    made = bitmap(parts)
    if with_runs:
        made.run_optimize()
    bytes_ = bytearray(made.serialize())
    place = data.draw(st.integers(0, len(bytes_) - 1))
    bytes_[place] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(bytes_), bytes(bytes_[:place])):
        try:
            found = decode_bitmap(damaged, most=1 << 20)
        except CorruptError:
            continue
        assert (np.diff(found.astype(np.int64)) > 0).all()


def test_a_small_bitmap_of_many_values_is_refused_before_it_is_expanded():
    made = BitMap(range(2**26))
    made.run_optimize()
    with pytest.raises(CorruptError, match="67108864 values"):
        decode_bitmap(made.serialize(), most=1000)
