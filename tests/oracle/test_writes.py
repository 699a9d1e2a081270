"""Tables that we write are the same to pylance, and both may write to one table in turn."""

import datetime as dt
import uuid
from dataclasses import replace

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable as lt
from tests.same import assert_same_table
from tests.strategies import ABILITIES, tables

pytestmark = pytest.mark.oracle

NAMES = ("a", "b", "Upper Case", "ключ", "select", "0")
"""Names that pylance can project; a backtick in one is too much for it."""

TABLE = pa.table(
    {
        "id": pa.array(range(100), pa.int64()),
        "text": [None if n % 7 == 0 else f"row {n}" for n in range(100)],
        "vector": pa.array(
            [[n, n + 1, n + 2, n + 3] for n in range(100)], pa.list_(pa.float32(), 4)
        ),
        "nested": pa.array([{"x": n, "y": [str(n)] * (n % 3)} for n in range(100)]),
        "day": pa.array([dt.date(2026, 1, 1)] * 100),
    }
)


def check(path):
    """Read a table with both, and have pylance validate it."""
    theirs = lance.dataset(str(path))
    theirs.validate()
    ours = lt.open_table(str(path))
    assert ours.version == theirs.version
    assert ours.count() == theirs.count_rows()
    table = theirs.to_table()
    assert_same_table(ours.scan().to_arrow(), table)
    return table


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_both_append_in_turn(tmp_path, version, stable):
    path = tmp_path / "t"
    table = lt.create_table(path, TABLE, storage_version=version, stable_row_ids=stable)
    for turn in range(3):
        lance.write_dataset(TABLE.slice(turn, 5), str(path), mode="append")
        table.append(TABLE.slice(10 * turn, 7))
    expected = [TABLE]
    for turn in range(3):
        expected += [TABLE.slice(turn, 5), TABLE.slice(10 * turn, 7)]
    assert_same_table(check(path), pa.concat_tables(expected))
    theirs = lance.dataset(str(path))
    theirs.delete("id % 3 = 0")
    table.append(TABLE.slice(0, 3))
    check(path)
    if stable:
        ids = lt.open_table(path).scan([], with_row_id=True).to_arrow()["_rowid"].to_pylist()
        theirs = lance.dataset(str(path)).to_table(columns=[], with_row_id=True)
        assert ids == theirs["_rowid"].to_pylist()
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_we_append_to_their_tables(tmp_path, version):
    path = tmp_path / "t"
    lance.write_dataset(TABLE, str(path), data_storage_version=version)
    lt.open_table(path).append(TABLE)
    assert_same_table(check(path), pa.concat_tables([TABLE, TABLE]))
    files = {
        f.file_minor_version
        for one in lance.dataset(str(path)).get_fragments()
        for f in one.data_files()
    }
    assert files == {int(version[-1])}


def test_new_columns_are_columns_to_them(tmp_path):
    path = tmp_path / "t"
    table = lt.create_table(path, TABLE, stable_row_ids=True)
    table.append([{"id": 1, "extra": {"deep": 1}}], merge_schema=True)
    table.append([{"id": 2, "nested": {"x": 5, "z": True}}], merge_schema=True)
    found = check(path)
    assert found.schema.names[-1] == "extra"
    theirs = lance.dataset(str(path))
    assert theirs.to_table(filter="nested.z").num_rows == 1
    theirs.add_columns({"sum": "id + 1"})
    table.refresh().append([{"id": 3, "sum": 4}])
    check(path)


def test_a_missing_column_is_null_to_them(tmp_path):
    path = tmp_path / "t"
    table = lt.create_table(path, TABLE)
    table.append([{"text": "alone"}])
    assert check(path)["id"].to_pylist()[-1] is None


def test_overwrites_and_restores(tmp_path):
    path = tmp_path / "t"
    table = lt.create_table(path, TABLE)
    table.overwrite(pa.table({"other": [1, 2]}))
    check(path)
    lance.write_dataset(TABLE.slice(0, 3), str(path), mode="overwrite")
    table.refresh().restore(1)
    assert_same_table(check(path), TABLE)
    theirs = lance.dataset(str(path)).checkout_version(2)
    theirs.restore()
    assert check(path).to_pydict() == {"other": [1, 2]}
    table.refresh().truncate()
    assert check(path).num_rows == 0
    table.append([{"other": 3}])
    check(path)


def test_rows_replaced_where_a_predicate_holds(tmp_path):
    path = tmp_path / "t"
    for stable in (False, True):
        table = lt.create_table(
            path / str(stable),
            TABLE,
            stable_row_ids=stable,
            max_rows_per_file=30,
        )
        table.overwrite([{"id": 1000}, {"id": 1001}], where="id < 35 or id = 99", check=False)
        found = check(path / str(stable))
        assert found["id"].to_pylist() == [*range(35, 99), 1000, 1001]


def test_settings_and_notes_are_theirs_too(tmp_path):
    path = tmp_path / "t"
    table = lt.create_table(path, TABLE)
    table.config.update({"k": "v", "gone": "x"})
    table.config.update({"gone": None})
    table.schema_metadata.update({"schema": "note"})
    table.columns.update_metadata({"nested.x": {"unit": "m"}})
    table.metadata.update({"owner": "me"})
    theirs = lance.dataset(str(path))
    theirs.validate()
    assert theirs.config() == {"k": "v"}
    assert theirs.schema.metadata[b"schema"] == b"note"
    assert theirs.schema.field("nested").type.field("x").metadata == {b"unit": b"m"}
    assert theirs.metadata == {"owner": "me"}
    theirs.update_config({"their": "key"})
    assert table.refresh().config == {"k": "v", "their": "key"}


def test_messages_are_in_the_history(tmp_path):
    path = tmp_path / "t"
    table = lt.create_table(path, TABLE, commit="made")
    table.append(TABLE, commit=lt.CommitOptions("grown", {"job": "5"}))
    theirs = lance.dataset(str(path))
    found = theirs.read_transaction(2)
    assert found.transaction_properties == {"__lance_commit_message": "grown", "job": "5"}


def test_special_columns(tmp_path):
    path = tmp_path / "t"
    rows = pa.table(
        {
            "j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":[1,null]}', None])),
            "u": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([uuid.UUID(int=5).bytes, None], pa.binary(16))
            ),
            "d": pa.array(["x", "x"]).dictionary_encode(),
            "h": pa.array(np.array([1.5, 2.5], np.float16)),
        }
    )
    table = lt.create_table(path, rows)
    table.append(rows)
    theirs = lance.dataset(str(path))
    theirs.validate()
    found = theirs.to_table()
    assert found["j"].to_pylist() == ['{"a":[1,null]}', None] * 2
    assert found["d"].to_pylist() == ["x"] * 4
    assert_same_table(lt.open_table(path).scan().to_arrow(), found)


def test_blobs_are_theirs_too(tmp_path):
    marked = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = [b"one", b"x" * 100_000, b"y" * 5_000_000, b""]
    for version in ("2.1", "2.2"):
        path = tmp_path / version
        rows = pa.table([pa.array(data, pa.large_binary())], schema=pa.schema([marked]))
        table = lt.create_table(path, rows, storage_version=version)
        table.append(rows)
        theirs = lance.dataset(str(path))
        files = theirs.take_blobs("b", indices=list(range(8)))
        assert [file.readall() for file in files] == data * 2


@given(data=st.data(), version=st.sampled_from(["2.0", "2.1", "2.2"]))
@settings(max_examples=25)
def test_random_tables(tmp_path_factory, data, version):
    path = tmp_path_factory.mktemp("random") / "t"
    rows = data.draw(tables(replace(ABILITIES[version], names=NAMES), most_rows=400))
    table = lt.create_table(
        path,
        rows,
        storage_version=version,
        max_rows_per_file=data.draw(st.integers(50, 500)),
    )
    table.append(rows)
    theirs = lance.dataset(str(path))
    theirs.validate()
    assert_same_table(theirs.to_table(), pa.concat_tables([rows, rows]))
    assert_same_table(table.scan().to_arrow(), pa.concat_tables([rows, rows]))
