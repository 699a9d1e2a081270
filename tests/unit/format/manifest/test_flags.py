"""Which feature flags stop a reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.flags import Feature, check_readable


@pytest.mark.parametrize("flags", [0, 1, 2, 3, 4, 8, 16, 32, 128, 256, 1024, 2051, 16384, 32768])
def test_what_is_understood_is_read(flags):
    check_readable(flags, flags)


@pytest.mark.parametrize(
    ("bit", "word"),
    [
        (64, "overlay"),
        (512, "fragment reuse"),
        (65536, "zone"),
        (131072, "unknown"),
        (2**63, "unk"),
    ],
)
def test_what_is_not_understood_is_named(bit, word):
    with pytest.raises(UnsupportedError, match=f"{bit}.*{word}.*untouched"):
        check_readable(bit | 1, bit | 1)


@given(st.integers(17, 63))
def test_an_unknown_writer_flag_does_not_stop_a_reader(bit):
    check_readable(0, 1 << bit)
    with pytest.raises(UnsupportedError):
        check_readable(1 << bit, 0)


@pytest.mark.parametrize("pair", [256, 1024, 16384, 65536])
def test_half_a_pair_is_damage(pair):
    with pytest.raises(CorruptError, match=str(pair)):
        check_readable(0, pair)


def test_the_bits_are_those_of_the_format():
    assert [int(feature) for feature in Feature] == [1 << bit for bit in range(17)]
