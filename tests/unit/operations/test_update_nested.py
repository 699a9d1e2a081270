"""Setting parts of structs: by rows, by columns, in merges; nulls above and below."""

import copy

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lancetable
from lancetable.errors import InputError, SchemaError
from lancetable.format.schema.types import schema_from_arrow
from lancetable.operations.input.assign import bind_assignments, parse_assignments

INNER = pa.struct([("d", pa.string()), ("e", pa.int16())])
OUTER = pa.struct([("b", pa.int32()), ("c", INNER)])
SCHEMA = pa.schema([("id", pa.int64()), ("a", OUTER), ("l", pa.list_(INNER))])
ROWS = [
    {"id": 0, "a": {"b": 1, "c": {"d": "x", "e": 5}}, "l": [{"d": "l", "e": 1}]},
    {"id": 1, "a": None, "l": None},
    {"id": 2, "a": {"b": None, "c": None}, "l": []},
    {"id": 3, "a": {"b": 3, "c": {"d": None, "e": None}}, "l": [None]},
    {"id": 4, "a": None, "l": None},
]


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    made = lancetable.create_table(
        tmp_path / "t",
        pa.Table.from_pylist(ROWS, SCHEMA),
        stable_row_ids=request.param,
        max_rows_per_file=3,
    )
    made.delete("id = 4")
    return made


@pytest.fixture(params=["rows", "columns"])
def mode(request):
    return request.param


def parts(table):
    return {row["id"]: row["a"] for row in table.scan(["id", "a"]).to_arrow().to_pylist()}


def test_a_part_is_set_and_the_others_stay(table, mode):
    table.update({"a.b": "a.b * 10 + id", "a.c.d": "coalesce(a.c.d, 'new')"}, "id <> 1", mode=mode)
    assert parts(table) == {
        0: {"b": 10, "c": {"d": "x", "e": 5}},
        1: None,
        2: {"b": None, "c": {"d": "new", "e": None}},
        3: {"b": 33, "c": {"d": "new", "e": None}},
    }
    assert table.scan(["l"]).to_arrow().num_rows == 4


def test_a_missing_struct_is_made_to_hold_its_part(table, mode):
    table.update({"a.c.e": "id"}, mode=mode)
    assert parts(table)[1] == {"b": None, "c": {"d": None, "e": 1}}
    assert parts(table)[2] == {"b": None, "c": {"d": None, "e": 2}}


def test_a_missing_struct_stays_missing_when_its_part_becomes_null(table, mode):
    table.update({"a.b": "null", "a.c.e": "null"}, mode=mode)
    assert parts(table) == {
        0: {"b": None, "c": {"d": "x", "e": None}},
        1: None,
        2: {"b": None, "c": None},
        3: {"b": None, "c": {"d": None, "e": None}},
    }


def test_a_whole_inner_struct_is_set(table, mode):
    table.update({"a.c": "l[1]"}, "id = 0", mode=mode)
    assert parts(table)[0] == {"b": 1, "c": {"d": "l", "e": 1}}
    table.update({"a.c": "null"}, mode=mode)
    assert [row and row["c"] for row in parts(table).values()] == [None] * 4


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ({"a.x": "1"}, SchemaError, "no 'x' below 'a'"),
        ({"x.b": "1"}, SchemaError, "'x.b' cannot be set, it is not in the table"),
        ({"id.b": "1"}, SchemaError, "it has no parts"),
        ({"l.d": "'x'"}, SchemaError, "'l' is not a struct"),
        ({"a": "null", "a.b": "1"}, SchemaError, "'a' and 'a.b' overlap"),
        ({"a.c.d": "'x'", "a.c": "null"}, SchemaError, "'a.c' and 'a.c.d' overlap"),
        ({"a.b": "1", "a.`b`": "2"}, SchemaError, "overlap"),
        ({"a.b": "1.5"}, InputError, "'a.b' of type int32"),
        ({"a.c.e": "70000"}, InputError, "'a.c.e' of type int16"),
    ],
)
def test_what_does_not_fit_changes_nothing(table, mode, values, error, text):
    version, before = table.version, parts(table)
    with pytest.raises(error, match=text):
        table.update(values, mode=mode)
    assert (lancetable.open_table(table.uri).version, parts(table)) == (version, before)


def test_a_required_part_is_never_null(tmp_path, mode):
    struct = pa.struct([pa.field("must", pa.int64(), nullable=False), pa.field("may", pa.int64())])
    data = pa.table({"id": [0, 1], "a": pa.array([{"must": 1, "may": 2}, None], struct)})
    table = lancetable.create_table(tmp_path / "t", data)
    with pytest.raises(InputError, match=r"'a\.must' must not be null"):
        table.update({"a.may": "7"}, mode=mode)
    with pytest.raises(InputError, match=r"'a\.must' must not be null"):
        table.update({"a.must": "null"}, "id = 0", mode=mode)
    table.update({"a.must": "a.may + 1"}, "id = 0", mode=mode)
    table.update({"a.must": "5", "a.may": "6"}, "id = 1", mode=mode)
    assert parts(table) == {0: {"must": 3, "may": 2}, 1: {"must": 5, "may": 6}}


def test_columns_are_replaced_by_part(table):
    table.columns.replace({"a.b": "id + 1"})
    found = parts(table)
    assert [row["b"] for row in found.values()] == [1, 2, 3, 4]
    assert found[0]["c"] == {"d": "x", "e": 5}


def test_clauses_of_a_merge_set_parts(table):
    source = [{"id": 0, "z": 7}, {"id": 1, "z": 8}, {"id": 9, "z": 9}]
    (
        table.merge(source, on="id")
        .when_matched_update({"a.c.e": "source.z + coalesce(target.a.c.e, 100)"})
        .when_not_matched_insert({"id": "id", "a.b": "z"})
        .when_not_matched_by_source_update({"a.c.d": "'gone'"}, condition="id = 3")
        .execute()
    )
    assert parts(table) == {
        0: {"b": 1, "c": {"d": "x", "e": 12}},
        1: {"b": None, "c": {"d": None, "e": 108}},
        2: {"b": None, "c": None},
        3: {"b": 3, "c": {"d": "gone", "e": None}},
        9: {"b": 9, "c": None},
    }


def test_a_merge_refuses_unknown_and_overlapping_parts(table):
    merge = table.merge([{"id": 0, "z": 7}], on="id")
    with pytest.raises(SchemaError, match="no 'q' below 'a'"):
        merge.when_matched_update({"a.q": "1"}).execute()
    with pytest.raises(SchemaError, match="overlap"):
        merge.when_matched_update({"a": "null", "a.b": "1"}).execute()


@pytest.mark.oracle
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_the_reference_reads_the_same(tmp_path, mode, version):
    import lance

    data = pa.Table.from_pylist(ROWS, SCHEMA)
    table = lancetable.create_table(tmp_path / "t", data, storage_version=version)
    table.update({"a.b": "id", "a.c.d": "'n' || id"}, "id <> 2", mode=mode)
    dataset = lance.dataset(table.uri)
    dataset.validate()
    assert dataset.to_table().to_pylist() == table.scan().to_arrow().to_pylist()


INNERS = st.none() | st.fixed_dictionaries(
    {"d": st.none() | st.text(max_size=2), "e": st.none() | st.integers(-9, 9)}
)
OUTERS = st.none() | st.fixed_dictionaries({"b": st.none() | st.integers(-9, 9), "c": INNERS})
PATHS = {"a.b": "x", "a.c": "y", "a.c.d": "y.d", "a.c.e": "y.e"}


def expected(row, paths):
    """Return the struct of a row after parts of it were set, in plain Python."""
    values = {
        "a.b": row["x"],
        "a.c": row["y"],
        "a.c.d": row["y"] and row["y"]["d"],
        "a.c.e": row["y"] and row["y"]["e"],
    }
    found = copy.deepcopy(row["a"])
    for path in paths:
        if found is None and values[path] is not None:
            found = {"b": None, "c": None}
        if found is None:
            continue
        _, *steps, last = path.split(".")
        place = found
        if steps:
            if found["c"] is None and values[path] is not None:
                found["c"] = {"d": None, "e": None}
            place = found["c"]
        if place is not None:
            place[last] = values[path]
    return found


@given(
    st.lists(
        st.fixed_dictionaries(
            {"a": OUTERS, "x": st.none() | st.integers(-9, 9), "y": INNERS},
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(
        [("a.b",), ("a.c",), ("a.c.d",), ("a.b", "a.c"), ("a.c.e", "a.c.d"), ("a.b", "a.c.e")]
    ),
    st.integers(0, 2),
)
def test_any_struct_is_set_as_in_plain_python(rows, paths, first):
    schema = pa.schema([("a", OUTER), ("x", pa.int32()), ("y", INNER)])
    batch = pa.Table.from_pylist(rows, schema).combine_chunks().to_batches()[0].slice(first)
    values = parse_assignments({path: PATHS[path] for path in paths})
    (assignment,) = bind_assignments(values, schema_from_arrow(schema), schema)
    made = assignment.values(batch)
    made.validate(full=True)
    assert made.to_pylist() == [expected(row, paths) for row in rows[first:]]
