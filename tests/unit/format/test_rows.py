"""Row addresses take apart what they were made of."""

from hypothesis import given
from hypothesis import strategies as st

from lancetable.format.rows import MAX_FRAGMENT_ID, MAX_OFFSET, fragment_of, offset_of, row_address


@given(st.integers(0, MAX_FRAGMENT_ID), st.integers(0, MAX_OFFSET))
def test_an_address_names_its_fragment_and_offset(fragment_id, offset):
    address = row_address(fragment_id, offset)
    assert 0 <= address < 2**64
    assert (fragment_of(address), offset_of(address)) == (fragment_id, offset)


def test_the_second_row_of_the_third_fragment():
    assert row_address(2, 1) == 0x2_0000_0001
