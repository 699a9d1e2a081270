"""Columns put together from parts that several files hold."""

import pyarrow as pa
import pytest

from lancetable.errors import CorruptError
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type
from lancetable.fragment.assemble import assemble

X = Field("x", 2, "int32")
Y = Field("y", 3, "string")
S = Field("s", 1, "struct", children=(X, Y))
ONLY_X = Field("s", 1, "struct", children=(X,))
ONLY_Y = Field("s", 1, "struct", children=(Y,))


def nested(logical_type: str, item: Field) -> Field:
    return Field("l", 9, logical_type, children=(item,))


def test_a_missing_column_is_null_everywhere():
    made = assemble(S, [], 3)

    assert made.type == arrow_type(S)
    assert made.to_pylist() == [None, None, None]


def test_children_of_two_files_meet_in_one_struct():
    left = pa.array([{"x": 1}, None, {"x": 3}], arrow_type(ONLY_X))
    right = pa.array([{"y": "a"}, {"y": "b"}, {"y": None}], arrow_type(ONLY_Y))

    made = assemble(S, [(ONLY_X, left), (ONLY_Y, right)], 3)

    made.validate(full=True)
    assert made.to_pylist() == [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}]


def test_a_missing_child_is_null():
    part = pa.array([{"y": "z"}, {"y": "a"}, None, {"y": "b"}], arrow_type(ONLY_Y)).slice(1)

    made = assemble(S, [(ONLY_Y, part)], 3)

    made.validate(full=True)
    assert made.to_pylist() == [{"x": None, "y": "a"}, None, {"x": None, "y": "b"}]


@pytest.mark.parametrize("logical_type", ["list.struct", "large_list.struct"])
def test_a_missing_child_inside_a_list(logical_type):
    part_field = nested(logical_type, ONLY_X)
    rows = [[{"x": 0}], [{"x": 1}, {"x": 2}], None, [], [None, {"x": 5}]]
    part = pa.array(rows, arrow_type(part_field)).slice(1)
    field = nested(logical_type, S)

    made = assemble(field, [(part_field, part)], 4)

    made.validate(full=True)
    assert made.type == arrow_type(field)
    assert made.to_pylist() == [
        [{"x": 1, "y": None}, {"x": 2, "y": None}],
        None,
        [],
        [None, {"x": 5, "y": None}],
    ]


def test_a_missing_child_inside_a_list_of_fixed_size():
    part_field = nested("fixed_size_list:struct:2", ONLY_X)
    rows = [None, [{"x": 1}, {"x": 2}], [{"x": 3}, None]]
    part = pa.array(rows, arrow_type(part_field)).slice(1)

    made = assemble(nested("fixed_size_list:struct:2", S), [(part_field, part)], 2)

    assert made.to_pylist() == [
        [{"x": 1, "y": None}, {"x": 2, "y": None}],
        [{"x": 3, "y": None}, None],
    ]


def test_a_missing_child_inside_a_map():
    def map_of(value: Field) -> Field:
        entries = Field(
            "entries", 5, "struct", nullable=False, children=(Field("key", 6, "string"), value)
        )
        return Field("m", 4, "map", children=(entries,))

    value = Field("value", 7, "struct", children=(X, Y))
    part_value = Field("value", 7, "struct", children=(X,))
    part = pa.array([[("a", {"x": 1})], None, []], arrow_type(map_of(part_value)))

    made = assemble(map_of(value), [(map_of(part_value), part)], 3)

    assert made.to_pylist() == [[("a", {"x": 1, "y": None})], None, []]


def test_files_that_disagree_about_list_lengths_are_refused():
    left_field, right_field = nested("list.struct", ONLY_X), nested("list.struct", ONLY_Y)
    left = pa.array([[{"x": 1}, {"x": 2}]], arrow_type(left_field))
    right = pa.array([[{"y": "a"}]], arrow_type(right_field))

    with pytest.raises(CorruptError, match="disagree"):
        assemble(nested("list.struct", S), [(left_field, left), (right_field, right)], 1)
