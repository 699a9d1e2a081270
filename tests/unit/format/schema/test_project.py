"""Parts of a schema by path and by id."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import SchemaError
from lancetable.format.schema.project import project, project_ids, quote, resolve, split_path
from lancetable.format.schema.types import arrow_schema, schema_from_arrow

POINT = pa.struct([("x", pa.int32()), ("y", pa.int32())])
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("user", pa.struct([("name", pa.string()), ("at", POINT)])),
        ("points", pa.list_(POINT)),
        ("odd.name", pa.struct([("a b", pa.int8()), ("c`d", pa.int8())])),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("deep", pa.list_(pa.list_(POINT))),
    ]
)
SCHEMA = schema_from_arrow(ARROW)


def shape(names):
    return {field.name: str(field.type) for field in arrow_schema(project(SCHEMA, names))}


def test_top_level_columns_come_in_the_order_asked_for():
    assert list(shape(["user", "id"])) == ["user", "id"]
    assert project(SCHEMA, ["user"]).fields[0] == SCHEMA.fields[1]


def test_paths_below_one_column_are_joined_in_schema_order():
    assert shape(["user.at.y", "id", "user.name"]) == {
        "user": "struct<name: string, at: struct<y: int32>>",
        "id": "int64",
    }


@pytest.mark.parametrize("path", ["points.x", "points.item.x"])
def test_a_list_may_be_passed_through(path):
    item = arrow_schema(project(SCHEMA, [path])).field("points").type.value_type
    assert item == pa.struct([("x", pa.int32())])


def test_two_lists_may_be_passed_through():
    assert resolve(SCHEMA, "deep.y")[-1].name == "y"
    assert "y" not in str(shape(["deep.item.item.x"]))


def test_odd_names_are_quoted():
    assert list(shape(["`odd.name`.`a b`"])) == ["odd.name"]
    assert resolve(SCHEMA, "`odd.name`.`c``d`")[-1].name == "c`d"
    assert resolve(SCHEMA, "odd.name")[-1].name == "odd.name"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("usr", ["'usr'", "did you mean 'user'"]),
        ("user.nam", ["'nam'", "below 'user'", "'name'"]),
        ("zzz", ["there are 'id'"]),
        ("id.x", ["it has no parts"]),
        ("m.key", ["map", "whole"]),
        ("`user", ["not closed"]),
        ("user..name", ["empty step"]),
        ("`user`name", ["needs a dot"]),
    ],
)
def test_unknown_columns_are_named(path, words):
    with pytest.raises(SchemaError) as caught:
        project(SCHEMA, [path])
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("names", [["id", "id"], ["user.name", "user.name"], ["user", "user.name"]])
def test_a_column_asked_for_twice(names):
    with pytest.raises(SchemaError, match="twice"):
        project(SCHEMA, names)


@given(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=4))
def test_quoting_is_undone_by_splitting(steps):
    assert split_path(".".join(quote(step) for step in steps)) == steps


def test_ids_select_leaves_and_keep_their_parents():
    ids = {field.name: field.id for field in SCHEMA.fields[1].walk()}
    kept = project_ids(SCHEMA, [0, ids["y"]])
    assert [field.name for field in kept.walk()] == ["id", "user", "at", "y"]


def test_a_parent_alone_keeps_nothing():
    assert project_ids(SCHEMA, [SCHEMA.fields[1].id]).fields == ()


def test_a_packed_struct_is_its_own_leaf():
    packed = pa.field("p", POINT, metadata={"lance-encoding:packed": "true"})
    schema = schema_from_arrow(pa.schema([packed]))
    assert project_ids(schema, [0]) == schema


def test_a_map_is_kept_whole():
    schema = schema_from_arrow(pa.schema([("m", pa.map_(pa.string(), pa.int32()))]))
    assert project_ids(schema, [2]) == schema
