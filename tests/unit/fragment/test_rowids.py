"""From a row id to the address of its live row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancetable.format.manifest.rowids import decode_id_spans, encode_row_ids, spans_of
from lancetable.fragment.rowids import LiveIds, RowIdIndex


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


def live(fragment: int, *numbers: int) -> LiveIds:
    return LiveIds(fragment, spans_of(ids(*numbers)))


def test_ids_in_any_order_are_found():
    index = RowIdIndex.of_fragments([live(0, 7, 3, 9), live(5, 1)])

    addresses, is_known = index.find(ids(9, 1, 3, 4))

    assert is_known.tolist() == [True, True, True, False]
    assert addresses[:3].tolist() == [2, 5 << 32, 1]


def test_only_the_live_copy_of_a_moved_row_counts():
    first = live(0, 10, 11, 12)._replace(deleted=np.array([1]))
    index = RowIdIndex.of_fragments([first, live(1, 11)])

    addresses, is_known = index.find(ids(11, 12))

    assert is_known.all()
    assert addresses.tolist() == [1 << 32, 2]


def test_an_id_beyond_all_others_is_unknown():
    index = RowIdIndex.of_fragments([live(0, 1, 2)])

    assert index.find(ids(3))[1].tolist() == [False]


def test_an_empty_table_knows_no_row():
    assert RowIdIndex.of_fragments([]).find(ids(0))[1].tolist() == [False]


def test_ids_that_a_damaged_table_has_twice_hide_no_others():
    index = RowIdIndex.of_fragments([live(0, 1, 2, 3, 4), live(1, 2)])

    addresses, is_known = index.find(ids(1, 3, 4, 5))

    assert is_known.tolist() == [True, True, True, False]
    assert addresses[:3].tolist() == [0, 2, 3]


@given(
    st.lists(st.integers(0, 60), unique=True),
    st.sets(st.integers(0, 59)),
    st.lists(st.integers(0, 63), max_size=9),
    st.integers(0, 20),
)
def test_the_index_finds_exactly_the_live_rows(numbers, deleted, wanted, cut):
    """Against a dictionary, for sequences as they are stored: ranges, holes, bitmaps, lists."""
    parts = [numbers[:cut], sorted(numbers[cut:])]
    given_ids: list[LiveIds] = []
    expected: dict[int, int] = {}
    for fragment, part in enumerate(parts):
        gone = sorted(offset for offset in deleted if offset < len(part))
        spans = decode_id_spans(encode_row_ids(ids(*part)), len(part))
        given_ids.append(LiveIds(fragment, spans, np.array(gone, np.int64)))
        expected |= {
            number: (fragment << 32) + offset
            for offset, number in enumerate(part)
            if offset not in gone
        }

    addresses, is_known = RowIdIndex.of_fragments(given_ids).find(ids(*wanted))

    assert is_known.tolist() == [number in expected for number in wanted]
    for number, address, known in zip(wanted, addresses.tolist(), is_known.tolist(), strict=True):
        assert not known or address == expected[number]
