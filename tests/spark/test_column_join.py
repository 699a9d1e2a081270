"""Columns of a data frame become columns of a table: what the core does with the same rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancetable
from lancetable.errors import ConflictError, InputError, SchemaError
from lancetable.operations.columns.add import FunctionOptions
from lancetable.operations.columns.joined import refuse_moved_rows
from lancetable.spark import LanceTable
from lancetable.spark.write.column_join import FrameExtension

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("u", pa.uint64())])


@pytest.fixture
def spark(either):
    """All of this works in classic sessions and over Connect."""
    return either


def made(path, **options):
    """Four fragments with deleted rows, and a row without a key."""
    table = lancetable.create_table(path, schema=SCHEMA, **options)
    for first in (0, 10, 20, 30):
        ids = range(first, first + 10)
        rows = [{"id": n if n != 13 else None, "name": f"n{n}", "u": n} for n in ids]
        table.append(pa.Table.from_pylist(rows, SCHEMA))
    table.delete("id in (0, 5, 19, 22)")
    return table


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


@pytest.fixture
def core(tmp_path):
    return made(str(tmp_path / "core"))


@pytest.fixture
def table(spark, path):
    made(path)
    return LanceTable.forPath(spark, path)


def rows(path, *columns):
    found = lancetable.open_table(path).scan(list(columns) or None).to_arrow().to_pylist()
    return [tuple(row.values()) for row in found]


def data_files(path):
    return {one.name for one in (Path(path) / "data").iterdir()}


def other(keys):
    """Rows with keys that the table has, has not any more, and never had."""
    return [
        {
            "id": key,
            "text": None if key is not None and key % 4 == 0 else f"t{key}",
            "v": [1.0, 2.0],
        }
        for key in keys
    ]


KEYS = [0, 1, 3, 5, 8, 19, 22, 24, 35, 38, 39, 99, 100, None, None]
DDL = "id bigint, text string, v array<float>"
STORED = pa.schema([("id", pa.int64()), ("text", pa.string()), ("v", pa.list_(pa.float32(), 2))])


def test_rows_meet_in_a_shuffle(spark, table, path, core):
    frame = spark.createDataFrame([tuple(row.values()) for row in other(KEYS)], DDL)
    frame = frame.repartition(3).withMetadata("v", {"lance.type": "float32[2]"})
    assert table.addColumns(frame, on="id", join="cluster") == ("text", "v")
    core.columns.add(pa.Table.from_pylist(other(KEYS), STORED), on=["id"])
    assert rows(path) == rows(core.uri)
    assert lancetable.open_table(path).schema == core.schema
    assert lancetable.open_table(path).maintenance.check(level="data").is_ok
    # No row of the second fragment has a match, and columns of nulls need no file.
    assert [len(one.files) for one in lancetable.open_table(path).fragments] == [2, 1, 2, 2]


def test_texts_and_several_columns_are_keys(spark, table, path, core):
    found = [(n, f"n{n}", n * 1.5) for n in (1, 2, 17, 29, 31)] + [(3, "n4", 0.0), (4, None, 1.0)]
    frame = spark.createDataFrame(found, "id bigint, name string, x double")
    table.addColumns(frame, on=["name", "id"], join="cluster")
    data = pa.table(
        dict(zip(("id", "name", "x"), map(list, zip(*found, strict=True)), strict=True))
    )
    core.columns.add(data, on=["name", "id"])
    assert rows(path) == rows(core.uri)
    assert sum(row[-1] is not None for row in rows(path)) == 5


@pytest.mark.parametrize("key", ["_rowaddr", "_rowid"])
@pytest.mark.parametrize("stable", [False, True])
def test_rows_are_known_by_themselves(spark, tmp_path, key, stable):
    path = str(tmp_path / "t")
    made(path, stable_row_ids=stable)
    if stable:
        lancetable.open_table(path).update({"name": "'moved'"}, where="id in (7, 33)")
    read = spark.read.format("lance").option("withRowAddress", "true").option("withRowId", "true")
    frame = read.load(path).where("id % 3 = 0").selectExpr(key, "id * 2 twice", "name other")
    more = spark.sql(f"select 77777777777777L {key}, 1L twice, 'none' other")
    none = spark.sql(f"select cast(null as bigint) {key}, 1L twice, 'none' other")
    table = LanceTable.forPath(spark, path)
    table.addColumns(frame.union(more).union(none), on=key, join="cluster")
    for id_, name, _, twice, copied in rows(path):
        is_found = id_ is not None and id_ % 3 == 0
        assert (twice, copied) == ((id_ * 2, name) if is_found else (None, None))


def test_one_row_for_each_key(spark, table, path):
    before = data_files(path)
    twice = spark.createDataFrame([(1, 1), (24, 2), (24, 3), (31, 4)], "id bigint, x int")
    with pytest.raises(InputError, match=r"LANCE_INPUT.*the same key, such as id = 24;"):
        table.addColumns(twice, on="id", join="cluster")
    assert lancetable.open_table(path).version == 6
    assert data_files(path) == before
    # Keys that no row has may come twice, as may keys with nulls.
    unknown = spark.createDataFrame([(99, 1), (99, 2), (None, 3), (1, 4)], "id bigint, x int")
    table.addColumns(unknown, on="id", join="cluster")
    assert [row for row in rows(path, "id", "x") if row[1] is not None] == [(1, 4)]


def test_bad_input_changes_nothing(spark, table, path):
    frame = spark.createDataFrame([(1, "x")], "id bigint, name string")
    with pytest.raises(SchemaError, match=r"LANCE_SCHEMA.*name"):
        table.addColumns(frame, on="id", join="cluster")
    with pytest.raises(SchemaError, match=r"no column 'u'"):
        table.addColumns(frame, on="u", join="cluster")
    with pytest.raises(SchemaError, match="beside its key"):
        table.addColumns(frame, on=["id", "name"], join="cluster")
    with pytest.raises(SchemaError):
        table.addColumns(frame.toDF("id", "none"), on=["none"], join="cluster")
    with pytest.raises(InputError, match="join is 'here'"):
        table.addColumns(frame, on="id", join="here")
    wrong = spark.createDataFrame([(-1, 1)], "u bigint, x int")
    with pytest.raises(Exception, match=r"LANCE_INPUT.*'u'"):
        table.addColumns(wrong, on="u", join="cluster")
    assert lancetable.open_table(path).version == 6


def test_an_attempt_goes_on_where_one_stopped(spark, table, path, tmp_path):
    """The duplicate stops one fragment; what the others got is used again."""
    found = [(n, n * 2) for n in range(40)]
    kept = FunctionOptions(checkpoint=str(tmp_path / "kept"))
    twice = spark.createDataFrame([*found, (24, 0)], "id bigint, x int")
    with pytest.raises(InputError, match="id = 24"):
        table.addColumns(twice, kept, on="id")
    notes = sorted(one.name for one in (tmp_path / "kept").glob("*.json"))
    assert [name.split("-")[0] for name in notes] == ["0", "1", "3"]
    before = data_files(path)
    good = spark.createDataFrame(found, "id bigint, x int")
    table.addColumns(good, kept, on="id")
    assert len(data_files(path) - before) == 1
    assert not (tmp_path / "kept").exists()
    assert rows(path, "id", "x") == [
        (id_, None if id_ is None else id_ * 2) for (id_,) in rows(path, "id")
    ]


def test_a_long_fragment_is_written_piece_by_piece(spark, tmp_path):
    path = str(tmp_path / "t")
    count = 50_000
    table = lancetable.create_table(path, pa.table({"id": pa.array(np.arange(count))}))
    table.delete("id % 7 = 3")
    frame = spark.range(0, count, 2, 4).selectExpr("id", "cast(id as string) s")
    LanceTable.forPath(spark, path).addColumns(
        frame, FunctionOptions(batch_rows=1000), on="id", join="cluster"
    )
    found = lancetable.open_table(path).scan().to_arrow()
    assert found.num_rows == sum(n % 7 != 3 for n in range(count))
    even = pc.equal(pc.bit_wise_and(found["id"], 1), 0)
    expected = pc.if_else(even, pc.cast(found["id"], pa.string()), pa.scalar(None, pa.string()))
    assert found["s"].combine_chunks() == expected.combine_chunks()


def test_addresses_of_rows_that_moved_are_refused(core):
    """Deletes alone and appends alone move nothing; both together may be an update."""
    before = lancetable.open_table(core.uri)
    core.append(pa.Table.from_pylist([{"id": 1000, "name": "x", "u": 1}], SCHEMA))
    refuse_moved_rows(before._snapshot, core._snapshot)
    core.delete("id = 1")
    with pytest.raises(ConflictError, match="read them again"):
        refuse_moved_rows(before._snapshot, core._snapshot)
    before = lancetable.open_table(core.uri)
    core.delete("id = 2")
    refuse_moved_rows(before._snapshot, core._snapshot)
    core.compact()
    with pytest.raises(ConflictError, match="read them again"):
        refuse_moved_rows(before._snapshot, core._snapshot)


def meddling(monkeypatch, meddle):
    """Let somebody else change the table when the first files are written."""
    run, calls = FrameExtension._made, []

    def made_and_meddled(self, *arguments):
        done = run(self, *arguments)
        if not calls:
            meddle()
        calls.append(len(arguments[0].manifest.fragments))
        return done

    monkeypatch.setattr(FrameExtension, "_made", made_and_meddled)
    return calls


def test_rows_that_come_meanwhile_get_their_values(spark, table, path, monkeypatch):
    late = pa.Table.from_pylist([{"id": 99, "name": "late", "u": 99}], SCHEMA)
    calls = meddling(monkeypatch, lambda: lancetable.open_table(path).append(late))
    frame = spark.createDataFrame([(1, 10), (31, 310), (99, 990)], "id bigint, x int")
    table.addColumns(frame, on="id", join="cluster")
    assert [row for row in rows(path, "id", "x") if row[1]] == [(1, 10), (31, 310), (99, 990)]
    # Files of fragments that stayed the same are used again.
    assert calls == [4, 1]
    named = {file["path"] for file in lancetable.open_table(path).inspect.files().to_pylist()}
    assert {f"data/{name}" for name in data_files(path)} <= named


def test_rows_that_move_meanwhile_make_addresses_useless(spark, table, path, monkeypatch):
    before = data_files(path)
    meddling(monkeypatch, lambda: lancetable.open_table(path).compact())
    read = spark.read.format("lance").option("withRowAddress", "true").load(path)
    with pytest.raises(ConflictError, match=r"LANCE_CONFLICT.*read them again"):
        table.addColumns(read.selectExpr("_rowaddr", "id x"), on="_rowaddr", join="cluster")
    compacted = lancetable.open_table(path)
    assert compacted.schema.names == ["id", "name", "u"]
    named = {file["path"] for file in compacted.inspect.files().to_pylist()}
    assert {f"data/{name}" for name in data_files(path) - before} <= named
