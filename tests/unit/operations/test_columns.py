"""Adding, changing and dropping columns: values, field ids, files, resuming, and refusals."""

import pyarrow as pa
import pytest

import lancetable
from lancetable.commit.transaction import DataReplacement, Merge, Project, Update
from lancetable.errors import ExpressionError, InputError, SchemaError
from lancetable.operations.columns.add import FunctionOptions, add_computed_columns
from lancetable.operations.columns.alter import cast_column
from tests.unit.operations.everywhere import fail_everywhere


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    data = pa.table(
        {
            "id": list(range(7)),
            "s": [None if n == 3 else f"s{n}" for n in range(7)],
            "st": pa.array([None if n == 2 else {"x": n, "y": str(n)} for n in range(7)]),
        }
    )
    made = lancetable.create_table(
        str(tmp_path / "t"), data.slice(0, 5), stable_row_ids=request.param
    )
    made.append(data.slice(5))
    made.delete("id in (1, 5)")
    return made


def column(table, name):
    return table.scan([name]).to_arrow().column(0).to_pylist()


def field(table, path):
    from lancetable.format.schema.project import resolve

    return resolve(table._snapshot.manifest.schema, path)[-1]


def operation(table):
    return table._snapshot.transaction().operation


def test_columns_of_nulls_write_no_file(table):
    files = [fragment.files for fragment in table.fragments]
    new = pa.struct([pa.field("z", pa.float64())])
    table.columns.add([pa.field("n", pa.list_(pa.int8())), pa.field("st", new)])
    assert [fragment.files for fragment in table.fragments] == files
    assert operation(table).preserves_nullability
    assert column(table, "n") == [None] * 5
    assert column(table, "st")[:2] == [{"x": 0, "y": "0", "z": None}, None]


def test_columns_from_sql(table):
    table.columns.add({"twice": "id * 2", "st.w": "st.x + 1", "t": "upper(s)"})
    assert column(table, "twice") == [0, 4, 6, 8, 12]
    assert column(table, "t") == ["S0", "S2", None, "S4", "S6"]
    assert column(table, "st")[0] == {"x": 0, "y": "0", "w": 1}
    assert column(table, "st")[1] is None
    assert isinstance(operation(table), Merge)
    assert [len(fragment.files) for fragment in table.fragments] == [2, 2]


def test_new_ids_were_never_used(table):
    table.columns.add({"a": "1"})
    first = field(table, "a").id
    table.columns.drop(["a"])
    table.columns.add({"b": "2"})
    assert field(table, "b").id >= first
    assert column(table, "b") == [2] * 5


def test_a_function_gets_what_it_asks_for(table):
    seen = []

    def lengths(batch):
        seen.append(batch.schema.names)
        return {"n": [None if s is None else len(s) for s in batch["s"].to_pylist()]}

    table.columns.add(lengths, function=FunctionOptions(inputs=("s",), batch_rows=2))
    assert column(table, "n") == [2, 2, None, 2, 2]
    assert set(map(tuple, seen)) == {("s",)}


def test_a_function_goes_on_where_it_failed(table, tmp_path):
    calls = []
    options = FunctionOptions(
        inputs=("id",),
        schema=pa.schema([("sq", pa.int64())]),
        checkpoint=str(tmp_path / "kept"),
        batch_rows=1,
    )

    def squares(batch):
        ids = batch["id"].to_pylist()
        calls.extend(ids)
        if 4 in ids and calls.count(4) == 1:
            raise RuntimeError("no more tokens")
        return {"sq": [n * n for n in ids]}

    with pytest.raises(RuntimeError):
        table.columns.add(squares, function=options)
    assert "sq" not in lancetable.open_table(table.uri).schema.names
    done = set(calls) - {4}
    table.columns.add(squares, function=options)
    assert column(table, "sq") == [0, 4, 9, 16, 36]
    assert all(calls.count(n) == 1 for n in done)
    assert not (tmp_path / "kept").exists()


def test_a_folder_with_other_files_stays(table, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("notes.arrow", "download.part"):
        (kept / name).write_text("mine")
    options = FunctionOptions(inputs=("id",), checkpoint=str(kept))
    table.columns.add(lambda batch: {"sq": batch["id"]}, function=options)
    assert {path.name for path in kept.iterdir()} == {"notes.arrow", "download.part"}


@pytest.mark.parametrize(
    "function",
    [
        lambda batch: {"n": [1]},
        lambda batch: 5,
        lambda batch: {"id": [0] * batch.num_rows},
    ],
)
def test_a_function_that_gives_something_else(table, function):
    before = {entry.path for entry in table._snapshot.store.list("")}
    with pytest.raises(InputError):
        table.columns.add(function)
    assert {entry.path for entry in table._snapshot.store.list("")} == before


def test_columns_of_other_rows_by_key(table):
    other = pa.table({"id": pa.array([6, 0, 77], pa.int8()), "j": ["six", "zero", "none"]})
    table.columns.add(other, on="id")
    assert column(table, "j") == ["zero", None, None, None, "six"]


def test_columns_of_other_rows_by_address_and_row_id(table):
    for key in ("_rowaddr", "_rowid"):
        rows = table.scan(["id", key]).to_arrow()
        other = pa.table({key: rows[key], f"by{key}": rows["id"]}).slice(1)
        table.columns.add(other, on=[key])
        assert column(table, f"by{key}") == [None, 2, 3, 4, 6]


def test_a_key_that_stands_twice_in_the_other_rows(table):
    with pytest.raises(InputError, match="several rows"):
        table.columns.add({"id": [0, 0], "j": [1, 2]}, on="id")


def test_dropping(table):
    table.columns.drop(["st.x", "s"])
    assert table.schema.names == ["id", "st"]
    assert column(table, "st")[0] == {"y": "0"}
    assert isinstance(operation(table), Project)
    for names in (["id", "st"], ["st.y"], ["nope"], []):
        with pytest.raises(InputError):
            table.columns.drop(names)


def test_files_without_live_columns_go(table):
    table.columns.add({"a": "1"})
    table.columns.drop(["a"])
    assert [len(fragment.files) for fragment in table.fragments] == [1, 1]


def test_renaming(table):
    ids = field(table, "st.x").id, field(table, "s").id
    table.columns.rename("st.x", "xx")
    table.columns.rename("s", "text")
    assert (field(table, "st.xx").id, field(table, "text").id) == ids
    assert column(table, "text")[0] == "s0"
    for old, new in (("id", "text"), ("id", "_rowid"), ("id", ""), ("nope", "n"), ("st.xx", "y")):
        with pytest.raises(SchemaError):
            table.columns.rename(old, new)


def test_reordering(table):
    before = table.scan().to_arrow()
    table.columns.reorder(["st", "id", "s"])
    assert table.scan().to_arrow().equals(before.select(["st", "id", "s"]))
    for names in (["id", "s"], ["id", "s", "st", "st"], ["id", "s", "x"]):
        with pytest.raises(SchemaError):
            table.columns.reorder(names)


def test_columns_of_nulls_are_added_by_path(table):
    result = table.columns.add([pa.field("st.z", pa.int8()), pa.field("n", pa.string())])
    assert result.columns == ("st.z", "n")
    assert column(table, "n") == [None] * 5
    assert column(table, "st")[0] == {"x": 0, "y": "0", "z": None}
    table.columns.add(pa.field("st.inner", pa.struct([("q", pa.int64())])))
    table.columns.add([pa.field("st.inner.r", pa.string())])
    table.update({"st.inner.r": "'r'"}, "id = 0")
    found = {row["id"]: row["st"] for row in table.scan().to_arrow().to_pylist()}
    assert found[0] == {"x": 0, "y": "0", "z": None, "inner": {"q": None, "r": "r"}}
    for name in ("st.x", "st.z", "nope.z", "id.z"):
        with pytest.raises(SchemaError):
            table.columns.add(pa.field(name, pa.int8()))
    with pytest.raises(InputError, match="no column is named"):
        table.columns.add([])


def test_a_renamed_part_is_told_by_its_path(table):
    assert table.columns.rename("st.x", "w").columns == ("st.w",)


def test_nulls_are_forbidden_only_where_there_are_none(table):
    with pytest.raises(InputError, match="'s' must not be null"):
        table.columns.set_nullable("s", nullable=False)
    table.columns.set_nullable("id", nullable=False)
    table.columns.set_nullable("st.x", nullable=False)
    assert not operation(table).preserves_nullability
    assert not table.schema.field("id").nullable
    with pytest.raises(InputError):
        table.append([{"id": None}])
    table.columns.set_nullable("id", nullable=True)
    assert operation(table).preserves_nullability
    table.append([{"id": None, "st": None}])
    assert column(table, "id")[-1] is None


def test_casting_gives_a_new_id_at_the_same_place(table):
    old = field(table, "id").id
    table.columns.cast("id", pa.int16())
    assert table.schema.names == ["id", "s", "st"]
    assert table.schema.field("id").type == pa.int16()
    assert field(table, "id").id > old
    assert column(table, "id") == [0, 2, 3, 4, 6]
    assert not operation(table).preserves_nullability
    table.columns.cast("st.x", pa.string())
    assert column(table, "st")[0] == {"x": "0", "y": "0"}


def test_casting_a_column_that_forbids_nulls(table):
    table.columns.set_nullable("id", nullable=False)
    table.columns.cast("id", pa.float64())
    assert column(table, "id") == [0.0, 2.0, 3.0, 4.0, 6.0]
    assert not table.schema.field("id").nullable


def test_lossy_casts_change_nothing(table):
    before = {entry.path for entry in table._snapshot.store.list("")}
    for name, type_ in (("s", pa.int32()), ("st", pa.int32()), ("nope", pa.int32())):
        with pytest.raises(InputError):
            table.columns.cast(name, type_)
    assert {entry.path for entry in table._snapshot.store.list("")} == before


def test_deleted_values_do_not_disturb(table):
    table.update({"s": "'42'"})
    table.append([{"id": 9, "s": "no number"}])
    table.delete("id = 9")
    table.columns.cast("s", pa.int32())
    assert set(column(table, "s")) == {42}


def test_replacing_a_column_with_a_file_of_its_own(table):
    table.columns.add({"a": "id"})
    assert table.columns.replace({"a": "a + 10"}).rows == 5
    assert isinstance(operation(table), DataReplacement)
    assert column(table, "a") == [10, 12, 13, 14, 16]


def test_replacing_a_column_of_a_shared_file(table):
    table.columns.replace({"s": "'new'"})
    assert isinstance(operation(table), Update)
    assert set(column(table, "s")) == {"new"}
    rows = table.scan(["_rowaddr", "id"]).to_arrow()
    table.columns.replace(
        pa.table({"_rowaddr": rows["_rowaddr"], "s": rows["id"].cast("string")}), on="_rowaddr"
    )
    assert column(table, "s") == ["0", "2", "3", "4", "6"]
    with pytest.raises(InputError, match="such as those with id = "):
        table.columns.replace({"id": [0], "s": ["x"]}, on="id")


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"id": "1"}, SchemaError),
        ({"st.x": "1"}, SchemaError),
        ({"s.x": "1"}, SchemaError),
        ({"_rowid": "1"}, SchemaError),
        ({"a": "nope + 1"}, ExpressionError),
        ({"a": "1 / 0"}, ExpressionError),
        ({}, InputError),
        (pa.field("n", pa.int32(), nullable=False), SchemaError),
        (pa.field("id", pa.int64()), SchemaError),
        ({"new": "1", "id": "1"}, SchemaError),
        ({"new": "1", "st.x": "1"}, SchemaError),
        (pa.schema([("id", pa.int64()), ("new", pa.int64())]), SchemaError),
        (pa.schema([("new", pa.int64()), ("id", pa.int64())]), SchemaError),
        ([pa.field("st.z", pa.int8()), pa.field("st.x", pa.int64())], SchemaError),
        (pa.field("st", pa.struct([("x", pa.int64()), ("z", pa.int8())])), SchemaError),
        (pa.field("st", pa.struct([])), SchemaError),
        (lambda batch: {"new": batch["id"], "id": batch["id"]}, SchemaError),
        (17, InputError),
    ],
)
def test_what_cannot_be_added(table, columns, error):
    before = {entry.path for entry in table._snapshot.store.list("")}
    with pytest.raises(error):
        table.columns.add(columns)
    assert {entry.path for entry in table._snapshot.store.list("")} == before


def test_other_rows_with_a_column_that_is_there(table):
    with pytest.raises(SchemaError, match="column 's' already"):
        table.columns.add({"id": [0], "new": [1], "s": ["x"]}, on="id")
    assert "new" not in table.schema.names


def test_an_append_meanwhile_gets_the_column_too(table):
    other = lancetable.open_table(table.uri)
    table.append([{"id": 50}])
    other.columns.add({"twice": "id * 2"})
    assert column(other, "twice")[-1] == 100
    data = {entry.path for entry in other._snapshot.store.list("data")}
    assert data == {f"data/{file.path}" for one in other.fragments for file in one.files}


def test_an_append_meanwhile_is_cast_too(table):
    other = lancetable.open_table(table.uri)
    table.append([{"id": 50}])
    other.columns.cast("id", pa.int32())
    assert column(other, "id")[-1] == 50


@pytest.mark.parametrize(
    "change",
    [
        lambda faulty: add_computed_columns(faulty, {"a": "id * 2"}),
        lambda faulty: cast_column(faulty, "id", pa.int32()),
    ],
)
def test_a_failure_leaves_nothing_behind(table, change):
    assert len(fail_everywhere(table, change)) > 5
    assert column(lancetable.open_table(table.uri), "id") == [0, 2, 3, 4, 6]
