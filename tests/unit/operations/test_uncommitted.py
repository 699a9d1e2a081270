"""Fragments that are written now and committed later."""

import pickle

import pyarrow as pa
import pytest

import lancetable as lt

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    return lt.create_table(str(tmp_path / "t"), ROWS, stable_row_ids=request.param)


def ids(table):
    return table.scan(["id"]).to_arrow()["id"].to_pylist()


def test_several_writes_become_one_version(table):
    parts = [
        pickle.loads(pickle.dumps(lt.open_table(table.uri).write_fragments({"id": [n]})))
        for n in (10, 11)
    ]
    assert [part.rows for part in parts] == [1, 1]
    assert lt.open_table(table.uri).version == 1
    result = table.commit_fragments(parts, commit="both")
    assert (result.version, result.rows) == (2, 2)
    assert ids(table) == [1, 2, 3, 10, 11]
    assert table.history(limit=1)[0].message == "both"


def test_fragments_replace_all_rows(table):
    part = table.write_fragments({"id": [10]})
    table.append({"id": [4]})
    table.commit_fragments([part], mode="overwrite")
    assert ids(table) == [10]
    assert table.schema.names == ["id", "s"]


def test_rows_that_come_meanwhile_stay(table):
    part = table.write_fragments({"id": [10]})
    other = lt.open_table(table.uri)
    other.append({"id": [4]})
    other.columns.add({"n": "id * 2"})
    table.commit_fragments([part])
    assert ids(table) == [1, 2, 3, 4, 10]
    assert table.scan(["n"]).to_arrow()["n"].to_pylist()[-1] is None


def test_nothing_is_committed_twice(table):
    part = table.write_fragments({"id": [10]})
    with pytest.raises(lt.InputError, match="given twice"):
        table.commit_fragments([part, part])
    table.commit_fragments([part])
    with pytest.raises(lt.InputError, match="part of version 2 already"):
        table.commit_fragments([part])
    assert ids(table) == [1, 2, 3, 10]


def test_columns_that_changed_meanwhile(table):
    part = table.write_fragments({"id": [10]})
    lt.open_table(table.uri).columns.cast("id", pa.float64())
    with pytest.raises(lt.ConflictError, match="columns of the table changed"):
        table.commit_fragments([part])
    assert lt.open_table(table.uri).count() == 3


def test_a_new_column_that_forbids_nulls(table):
    part = table.write_fragments({"id": [10]})
    other = lt.open_table(table.uri)
    other.columns.add({"n": "1"})
    other.columns.set_nullable("n", nullable=False)
    with pytest.raises(lt.ConflictError, match="columns of the table changed"):
        table.commit_fragments([part])


def test_fragments_of_another_table_or_branch(table, tmp_path):
    other = lt.create_table(str(tmp_path / "u"), ROWS)
    part = other.write_fragments({"id": [10]})
    with pytest.raises(lt.InputError, match="were written for"):
        table.commit_fragments([part])
    table.branches.create("b")
    part = lt.open_table(table.uri, branch="b").write_fragments({"id": [10]})
    with pytest.raises(lt.InputError, match="were written for"):
        table.commit_fragments([part])
    with pytest.raises(lt.InputError, match="mode is 'x'"):
        table.commit_fragments([], mode="x")
    with pytest.raises(lt.InputError, match="write_fragments"):
        table.commit_fragments([1])


def test_a_bad_value_leaves_no_file(table):
    before = {entry.path for entry in table._snapshot.store.list("")}
    with pytest.raises(lt.SchemaError):
        table.write_fragments({"id": ["x"]})
    assert {entry.path for entry in table._snapshot.store.list("")} == before


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("base", [None, "other"])
def test_a_missing_file_is_named_and_nothing_is_committed(tmp_path, mode, base):
    bases = {} if base is None else {base: tmp_path / base}
    table = lt.create_table(tmp_path / "t", ROWS, bases=bases)
    parts = [
        table.write_fragments({"id": [number]}, target_bases=tuple(bases)) for number in (10, 11)
    ]
    name = parts[1].fragments[0].files[0].path
    (path,) = tmp_path.rglob(name)
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(lt.ConflictError, match=f"{name}' of the fragments is gone"):
        table.commit_fragments(parts, mode=mode)
    opened = lt.open_table(table.uri, allow=map(str, bases.values()))
    assert (opened.version, ids(opened)) == (1, [1, 2, 3])
    path.write_bytes(content)
    table.commit_fragments(parts, mode=mode)
    assert ids(table)[-2:] == [10, 11]


def test_fragments_in_a_base_that_the_handle_does_not_know_yet(tmp_path):
    table = lt.create_table(tmp_path / "t", ROWS)
    other = lt.open_table(table.uri)
    other.bases.add({"other": tmp_path / "other"})
    part = other.write_fragments({"id": [10]}, target_bases=("other",))
    held = lt.open_table(table.uri, version=1, allow=[str(tmp_path / "other")])
    held.commit_fragments([part])
    assert ids(held) == [1, 2, 3, 10]
