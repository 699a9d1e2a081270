"""From a row id to the address of its live row."""

import numpy as np

from lancetable.fragment.rowids import RowIdIndex


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


def test_ids_in_any_order_are_found():
    index = RowIdIndex.of_fragments([(0, ids(7, 3, 9), None), (5, ids(1), None)])

    addresses, is_known = index.find(ids(9, 1, 3, 4))

    assert is_known.tolist() == [True, True, True, False]
    assert addresses[:3].tolist() == [2, 5 << 32, 1]


def test_only_the_live_copy_of_a_moved_row_counts():
    live_of_first = np.array([0, 2])
    index = RowIdIndex.of_fragments([(0, ids(10, 11, 12), live_of_first), (1, ids(11), None)])

    addresses, is_known = index.find(ids(11, 12))

    assert is_known.all()
    assert addresses.tolist() == [1 << 32, 2]


def test_an_id_beyond_all_others_is_unknown():
    index = RowIdIndex.of_fragments([(0, ids(1, 2), None)])

    assert index.find(ids(3))[1].tolist() == [False]


def test_an_empty_table_knows_no_row():
    assert RowIdIndex.of_fragments([]).find(ids(0))[1].tolist() == [False]
