"""Merging rows: clauses against a plain model, keys of all kinds, races, and what is refused."""

import datetime as dt
import decimal
import tempfile
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable
from lancetable.commit.transaction import BloomFilter, ExactKeys, Merge, Update
from lancetable.errors import ExpressionError, InputError, SchemaError
from lancetable.operations.merge.clauses import Act, Clause, When
from lancetable.operations.merge.run import MergeOptions, merge
from lancetable.operations.results import ChangeOptions
from tests.unit.operations.everywhere import fail_everywhere


def rows(table, names=None):
    return table.scan(names).to_arrow().to_pylist()


def by_id(table):
    return {row["id"]: row for row in rows(table)}


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    made = lancetable.create_table(
        str(tmp_path / "t"),
        {"id": list(range(5)), "v": [n * 10 for n in range(5)], "s": list("abcde")},
        stable_row_ids=request.param,
    )
    made.append({"id": [5, 6, 7, None], "v": [50, 60, 70, 80], "s": ["f", "g", None, "n"]})
    made.delete("id = 6")
    return made


def upsert(table, data, on="id"):
    return table.merge(data, on).when_matched_update_all().when_not_matched_insert_all()


def test_an_upsert_changes_and_inserts(table):
    result = upsert(table, {"id": [1, 7, 9], "v": [-1, -7, -9], "s": ["x", "y", "z"]}).execute()
    assert (result.inserted, result.updated, result.deleted) == (1, 2, 0)
    found = by_id(table)
    assert [found[n]["v"] for n in (0, 1, 7, 9)] == [0, -1, -7, -9]
    assert len(rows(table)) == 9


def test_a_deleted_key_is_inserted_again(table):
    assert upsert(table, {"id": [6], "v": [1], "s": ["x"]}).execute().inserted == 1


def test_null_keys_match_nothing(table):
    result = upsert(table, {"id": [None, None], "v": [1, 2], "s": ["x", "y"]}).execute()
    assert (result.inserted, result.updated) == (2, 0)
    assert sum(row["id"] is None for row in rows(table)) == 3


def test_columns_that_the_source_lacks_stay(table):
    upsert(table, {"id": [1, 20], "v": [-1, -20]}).execute()
    found = by_id(table)
    assert (found[1]["s"], found[1]["v"], found[20]["s"]) == ("b", -1, None)


def test_the_first_clause_that_holds_acts(table):
    result = (
        table.merge({"id": [0, 1, 2, 30, 31], "op": ["d", "u", "k", "i", "x"]}, on=["id"])
        .when_matched_delete("source.op = 'd'")
        .when_matched_update({"v": "target.v + source.id"}, "op = 'u'")
        .when_not_matched_insert({"id": "source.id", "v": "id * 2"}, "op = 'i'")
        .execute()
    )
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 1)
    found = by_id(table)
    assert 0 not in found
    assert 31 not in found
    assert (found[1]["v"], found[2]["v"], found[30]["v"]) == (11, 20, 60)


def test_rows_that_the_source_does_not_have(table):
    result = (
        table.merge({"id": [0, 1]}, on="id")
        .when_not_matched_by_source_delete("v > 40")
        .when_not_matched_by_source_update({"s": "s || '?'"}, "id is not null")
        .execute()
    )
    assert (result.updated, result.deleted) == (3, 3)
    assert {id_: row["s"] for id_, row in by_id(table).items()} == {
        0: "a",
        1: "b",
        2: "c?",
        3: "d?",
        4: "e?",
    }


def test_without_anything_to_do_there_is_no_version(table):
    version = table.version
    result = table.merge({"id": [99]}, on="id").when_matched_delete().execute()
    assert (result.version, table.version) == (version, version)


def test_ids_and_versions_of_rows(table):
    if not table._snapshot.manifest.next_row_id:
        pytest.skip("no stable row ids")
    names = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = {row["id"]: row for row in rows(table, names)}
    next_id = table._snapshot.manifest.next_row_id
    upsert(table, {"id": [50, 1, 51, 5], "v": [1] * 4, "s": ["x"] * 4}).execute()
    for row in rows(table, names):
        if row["id"] in {50, 51}:
            assert row["_rowid"] >= next_id
            assert row["_row_created_at_version"] == table.version
            continue
        old = before[row["id"]]
        assert row["_rowid"] == old["_rowid"]
        assert row["_row_created_at_version"] == old["_row_created_at_version"]
        is_changed = row["id"] in {1, 5}
        last = table.version if is_changed else old["_row_last_updated_at_version"]
        assert row["_row_last_updated_at_version"] == last


def test_new_columns_come_with_the_rows(table):
    version = table.version
    result = (
        upsert(table, {"id": [1, 60], "v": [0, 1], "s": ["p", "q"], "extra": [1.5, 2.5]})
        .with_schema_evolution()
        .execute()
    )
    assert (result.version, result.inserted, result.updated) == (version + 1, 1, 1)
    assert isinstance(table._snapshot.transaction().operation, Merge)
    found = by_id(table)
    assert (found[0]["extra"], found[1]["extra"], found[60]["extra"]) == (None, 1.5, 2.5)
    assert len(rows(table)) == 9


def test_new_columns_can_be_asked_for_as_in_an_append(table):
    data = {"id": [1, 9], "w": ["x", "y"]}
    merge = table.merge(data, on="id", merge_schema=True)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert {row["id"]: row["w"] for row in rows(table)}[1] == "x"
    assert by_id(table)[9] == {"id": 9, "v": None, "s": None, "w": "y"}


def test_columns_that_would_be_ignored_are_refused(table):
    with pytest.raises(SchemaError, match=r"extra.*with_schema_evolution"):
        upsert(table, {"id": [1], "extra": [1]}).execute()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"id": [1, 1, 9], "v": [1, 2, 3]}, "several rows of the source match.* 1;"),
        ({"id": [9, 8, 9], "v": [1, 2, 3]}, "inserted with one key: 9;"),
        ({"v": [1]}, "no column 'id'"),
        ({"id": ["x"], "v": [1]}, "id"),
    ],
)
def test_what_is_refused_changes_nothing(table, data, message):
    before = {entry.path for entry in table._snapshot.store.list("")}
    with pytest.raises(InputError, match=message):
        upsert(table, pa.table(data)).execute()
    assert {entry.path for entry in table._snapshot.store.list("")} == before


def test_duplicates_can_be_allowed(table):
    data = {"id": [9, 8, 9], "v": [1, 2, 3]}
    assert upsert(table, data).with_duplicates().execute().inserted == 3


def test_wrong_conditions_are_refused(table):
    with pytest.raises(ExpressionError):
        table.merge({"id": [1]}, on="id").when_matched_delete("source.nope = 1").execute()
    with pytest.raises(ExpressionError):
        table.merge({"id": [1]}, on="id").when_not_matched_insert({"id": "target.id"}).execute()
    with pytest.raises(InputError, match="no clause"):
        table.merge({"id": [1]}, on="id").execute()


def test_one_row_of_the_source_may_match_several(tmp_path):
    table = lancetable.create_table(str(tmp_path / "d"), {"k": [1, 1, 2], "v": [1, 2, 3]})
    result = table.merge({"k": [1], "v": [9]}, on="k").when_matched_update_all().execute()
    assert result.updated == 2
    assert sorted(row["v"] for row in rows(table)) == [3, 9, 9]


KEYS = {
    "int8": pa.array([1, -2, 3, None], pa.int8()),
    "uint64": pa.array([1, 2**63 + 5, 2**64 - 1, None], pa.uint64()),
    "double": pa.array([0.5, float("nan"), 0.0, None]),
    "half": pa.array(np.array([0.5, 1.5, 2.5, 9], np.float16)),
    "string": pa.array(["a", "", "long text " * 9, None]),
    "binary": pa.array([b"a", b"", b"\0", None], pa.large_binary()),
    "decimal": pa.array([decimal.Decimal("1.10"), decimal.Decimal("-2.00"), None, None]),
    "date": pa.array([dt.date(2020, 1, 1), dt.date(1960, 1, 1), None, None]),
    "timestamp": pa.array([1, 2, 3, None], pa.timestamp("us", "UTC")),
    "bool": pa.array([True, False, None, None]),
    "fixed": pa.array([b"ab", b"cd", b"ef", None], pa.binary(2)),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_kind(tmp_path, kind):
    keys = KEYS[kind]
    valid = keys.drop_null()
    table = lancetable.create_table(
        str(tmp_path / "k"), pa.table({"k": keys.slice(0, 2), "v": [0, 0]})
    )
    data = pa.table({"k": keys, "v": [1] * len(keys)})
    result = upsert(table, data, on="k").with_duplicates().execute()
    assert (result.updated, result.inserted) == (2, len(keys) - 2)
    again = upsert(table, pa.table({"k": valid, "v": [2] * len(valid)}), on="k").execute()
    assert (again.updated, again.inserted) == (len(valid), 0)


def test_minus_zero_is_zero(tmp_path):
    table = lancetable.create_table(str(tmp_path / "z"), {"k": [0.0], "v": [1]})
    assert upsert(table, {"k": [-0.0], "v": [2]}, on="k").execute().updated == 1


def test_lists_are_no_keys(tmp_path):
    table = lancetable.create_table(str(tmp_path / "l"), {"k": [[1]], "v": [1]})
    with pytest.raises(InputError, match="cannot be a key"):
        upsert(table, {"k": [[1]], "v": [2]}, on="k").execute()


def test_keys_of_several_columns_and_inside_structs(tmp_path):
    data = pa.table({"a": ["x", "x", "y"], "b": [{"n": 1}, {"n": 2}, None], "v": [1, 2, 3]})
    table = lancetable.create_table(str(tmp_path / "c"), data)
    change = pa.table({"a": ["x", "y", "y"], "b": [{"n": 2}, {"n": 1}, None], "v": [-2, 9, 8]})
    result = upsert(table, change, on=["a", "b.n"]).execute()
    assert (result.updated, result.inserted) == (1, 2)
    found = {(row["a"], row["b"] and row["b"]["n"], row["v"]) for row in rows(table)}
    assert found == {("x", 1, 1), ("x", 2, -2), ("y", None, 3), ("y", 1, 9), ("y", None, 8)}


def test_inserted_keys_are_recorded(table):
    upsert(table, {"id": [100, 101], "v": [1, 1], "s": ["", ""]}).execute()
    operation = table._snapshot.transaction().operation
    assert isinstance(operation, Update)
    assert operation.inserted_rows is not None
    assert operation.inserted_rows.field_ids == (0,)
    assert isinstance(operation.inserted_rows.keys, ExactKeys)
    assert len(operation.inserted_rows.keys.key_hashes) == 2
    many = list(range(1000, 9000))
    upsert(table, {"id": many, "v": many, "s": ["x"] * len(many)}).execute()
    assert isinstance(table._snapshot.transaction().operation.inserted_rows.keys, BloomFilter)


def test_of_two_merges_of_one_key_one_inserts(table):
    other = lancetable.open_table(table.uri)
    first = upsert(table, {"id": [300, 301], "v": [1, 1], "s": ["a", "a"]}).execute()
    second = upsert(other, {"id": [301, 302], "v": [2, 2], "s": ["b", "b"]}).execute()
    assert (first.inserted, second.inserted, second.updated) == (2, 1, 1)
    found = by_id(other)
    assert [found[n]["v"] for n in (300, 301, 302)] == [1, 2, 2]


def test_an_append_meanwhile_is_seen(table):
    other = lancetable.open_table(table.uri)
    table.append({"id": [400], "v": [1], "s": ["a"]})
    assert upsert(other, {"id": [400], "v": [2], "s": ["b"]}).execute().updated == 1


def test_many_threads_insert_each_key_once(tmp_path):
    uri = str(tmp_path / "race")
    lancetable.create_table(uri, schema=pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    failed = []

    def work(number):
        try:
            for step in range(4):
                data = {"id": list(range(step * 5, step * 5 + 10)), "n": [number] * 10}
                upsert(lancetable.open_table(uri), data).execute()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(row["id"] for row in rows(lancetable.open_table(uri))) == list(range(25))


def test_a_source_beyond_the_memory_limit_is_spilled(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = lancetable.create_table(str(tmp_path / "t"), {"id": list(range(3000)), "v": [0] * 3000})

    def batches():
        for start in range(2000, 5000, 500):
            ids = list(range(start, start + 500))[::-1]
            yield pa.RecordBatch.from_pydict({"id": ids, "v": [n * 2 for n in ids]})

    result = upsert(table, batches()).with_memory(20_000).execute()
    assert (result.updated, result.inserted) == (1000, 2000)
    assert all(row["v"] == (row["id"] * 2 if row["id"] >= 2000 else 0) for row in rows(table))
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_keys_are_compared_in_passes_when_memory_is_short(table):
    data = {"id": [3, 1, 9, 4, 2], "v": [-3, -1, -9, -4, -2], "s": ["x"] * 5}
    assert upsert(table, data).with_memory(1).execute().updated == 4
    with pytest.raises(InputError, match="several rows of the source match"):
        upsert(table, {"id": [1, 2, 1], "v": [0, 0, 0]}).with_memory(1).execute()


def test_a_failure_leaves_nothing_behind(table):
    clauses = [Clause(When.MATCHED, Act.UPDATE), Clause(When.NOT_MATCHED, Act.INSERT)]
    data = {"id": [1, 7, 9], "v": [-1, -7, -9], "s": ["x", "y", "z"]}
    failures = fail_everywhere(
        table, lambda faulty: merge(faulty, data, ["id"], clauses, MergeOptions(ChangeOptions()))
    )
    assert len(failures) > 5
    assert by_id(lancetable.open_table(table.uri))[9]["v"] == -9


IDS = st.one_of(st.none(), st.integers(0, 8))
SOURCES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(-5, 5)), unique_by=lambda row: row[0], max_size=8
)
CLAUSES = st.lists(
    st.sampled_from(
        [
            ("matched", "update", None),
            ("matched", "update", "source.v > 0"),
            ("matched", "delete", "target.v < source.v"),
            ("matched", "delete", None),
            ("not matched", "insert", None),
            ("not matched", "insert", "source.v <> 0"),
            ("by source", "delete", "v > 2"),
            ("by source", "update", None),
        ]
    ),
    min_size=1,
    max_size=4,
)
HOLDS = {
    None: lambda old, new: True,
    "source.v > 0": lambda old, new: new > 0,
    "target.v < source.v": lambda old, new: old < new,
    "source.v <> 0": lambda old, new: new != 0,
    "v > 2": lambda old, new: old > 2,
}


def modelled(old, new, clauses):
    """Merge lists of (id, v) pairs, slowly and plainly."""
    source = dict(new)
    result = []
    for id_, value in old:
        kind = "matched" if id_ in source else "by source"
        acts = [
            act
            for when, act, condition in clauses
            if when == kind and HOLDS[condition](value, source.get(id_))
        ]
        act = acts[0] if acts else None
        if act == "update":
            result.append((id_, source[id_] if kind == "matched" else value + 100))
        elif act is None:
            result.append((id_, value))
    known = {id_ for id_, _ in old}
    for id_, value in new:
        if id_ not in known and any(
            when == "not matched" and HOLDS[condition](None, value)
            for when, _, condition in clauses
        ):
            result.append((id_, value))
    return sorted(result, key=repr)


@settings(max_examples=40)
@given(st.lists(st.tuples(IDS, st.integers(-5, 5)), max_size=12), SOURCES, CLAUSES)
def test_merges_equal_the_model(old, new, clauses):
    with tempfile.TemporaryDirectory() as folder:
        schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
        table = lancetable.create_table(f"{folder}/t", schema=schema)
        for part in (old[::2], old[1::2]):
            table.append(pa.Table.from_pylist([{"id": i, "v": v} for i, v in part], schema))
        data = pa.Table.from_pylist([{"id": i, "v": v} for i, v in new], schema)
        builder = table.merge(data, on=["id"])
        for when, act, condition in clauses:
            if (when, act) == ("matched", "update"):
                builder = builder.when_matched_update_all(condition)
            elif (when, act) == ("matched", "delete"):
                builder = builder.when_matched_delete(condition)
            elif when == "not matched":
                builder = builder.when_not_matched_insert_all(condition)
            elif act == "delete":
                builder = builder.when_not_matched_by_source_delete(condition)
            else:
                builder = builder.when_not_matched_by_source_update({"v": "v + 100"})
        before = len(old)
        result = builder.execute()
        found = [(row["id"], row["v"]) for row in rows(table)]
        assert sorted(found, key=repr) == modelled(old, new, clauses)
        assert before + result.inserted - result.deleted == len(found)


def test_a_match_can_be_refused(table):
    version, known = table.version, table.scan().to_arrow()
    source = known.slice(0, 2)
    merge = table.merge(source, on=["id"]).when_matched_fail().when_not_matched_insert_all()
    with pytest.raises(InputError, match=r"2 rows of fragment 0 match the source.*row_addresses="):
        merge.execute()
    assert lancetable.open_table(table.uri).version == version
    fits = table.merge(source, on=["id"]).when_matched_fail("source.id < 0")
    assert not fits.execute().is_new_version
    assert table.scan().to_arrow().equals(known)
