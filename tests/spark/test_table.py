"""The table API: what PySpark users know, with the rows that the core gives."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancetable
from lancetable.errors import ExistsError, InputError, TableNotFoundError
from lancetable.operations.columns.add import FunctionOptions
from lancetable.spark import LanceTable
from lancetable.spark.merge.builder import keys_of


@pytest.fixture
def spark(either):
    """All of this works in classic sessions and over Connect."""
    return either


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


@pytest.fixture
def table(spark, path):
    schema = pa.schema([("id", pa.uint64()), ("name", pa.string()), ("n", pa.int32())])
    made = lancetable.create_table(path, schema=schema)
    for first in (0, 5):
        rows = [{"id": n, "name": f"n{n}", "n": n * 10} for n in range(first, first + 5)]
        made.append(pa.Table.from_pylist(rows, schema))
    return LanceTable.forPath(spark, path)


def rows(path, *columns):
    found = lancetable.open_table(path).scan(list(columns) or None).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_tables_are_found(spark, path, table):
    assert LanceTable.isLanceTable(spark, path)
    assert not LanceTable.isLanceTable(spark, f"{path}-none")
    with pytest.raises(TableNotFoundError, match="LANCE_TABLE_NOT_FOUND"):
        LanceTable.forPath(spark, f"{path}-none")
    assert table.count() == 10
    assert table.alias("t").toDF().where("t.id > 7").count() == 2


def test_delete_and_update(table, path):
    assert table.delete("id >= 8") == 2
    assert table.update("id < 2", {"n": "n + 1", "name": "upper(name)"}) == 2
    assert rows(path)[:3] == [(0, "N0", 1), (1, "N1", 11), (2, "n2", 20)]
    assert table.update(set={"n": "0"}) == 8
    assert {row[0] for row in rows(path, "n")} == {0}
    with pytest.raises(InputError, match="nothing is set"):
        table.update("id = 1")
    assert table.delete() == 8
    assert table.count() == 0


def test_merge_with_all_clauses(spark, table, path):
    source = spark.createDataFrame(
        [(1, "new", 1), (2, "gone", 2), (50, "added", 3), (51, "left out", 4)],
        "id bigint, name string, n int",
    ).selectExpr("cast(id as decimal(20,0)) id", "name", "n")
    counts = (
        table.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedDelete("s.name = 'gone'")
        .whenMatchedUpdate(set={"t.name": "s.name", "n": "t.n + s.n"})
        .whenNotMatchedInsertAll("s.n < 4")
        .whenNotMatchedBySourceUpdate("t.id = 9", set={"name": "'alone'"})
        .whenNotMatchedBySourceDelete("t.id in (7, 8)")
        .execute()
        .collect()
    )
    assert [tuple(row) for row in counts] == [(6, 2, 3, 1, 4, True)]
    assert rows(path) == [
        (0, "n0", 0),
        (1, "new", 11),
        (3, "n3", 30),
        (4, "n4", 40),
        (5, "n5", 50),
        (6, "n6", 60),
        (9, "alone", 90),
        (50, "added", 3),
    ]


def test_merge_adds_columns(spark, table, path):
    source = spark.sql("select cast(3 as decimal(20,0)) id, 'x' name, 1 n, true more")
    builder = table.merge(source, ["id"]).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    with pytest.raises(lancetable.SchemaError, match="more"):
        builder.execute()
    builder.withSchemaEvolution().execute()
    assert rows(path)[3] == (3, "x", 1, True)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("t.id > s.id", "columns of the same name"),
        ("t.id = s.other", "columns of the same name"),
        ("t.id = s.id or t.n = s.n", "columns of the same name"),
        ("a.id = b.id", "called 't'"),
        ("t.id = s.id and t.n = r.n", "one source"),
    ],
)
def test_merge_conditions_are_keys(condition, message):
    with pytest.raises(InputError, match=message):
        keys_of(condition, "t")


def test_columns_can_be_computed_on_workers(table, path):
    assert table.addColumns({"twice": "n * 2"}) == ("twice",)

    def embed(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = pc.cast(batch.column("n"), pa.float32())
        lists = pa.FixedSizeListArray.from_arrays(values, 1)
        return pa.RecordBatch.from_arrays([lists], ["v"])

    assert table.addColumns(embed) == ("v",)
    assert lancetable.open_table(path).schema.field("v").type == pa.list_(pa.float32(), 1)
    assert rows(path, "id", "twice", "v")[2] == (2, 40, [20.0])


def test_columns_come_from_a_frame(spark, table, path):
    keys = spark.sql("select cast(id as decimal(20,0)) id, -id minus from range(0, 8, 2)")
    assert table.addColumns(keys, on="id") == ("minus",)
    assert rows(path, "id", "minus")[:3] == [(0, 0), (1, None), (2, -2)]
    read = spark.read.format("lance").option("withRowAddress", "true").load(path)
    places = read.selectExpr("_rowaddr", "array(cast(n as float), 1f) v")
    hinted = places.withMetadata("v", {"lance.type": "float32[2]"})
    assert table.addColumns(hinted, on=["_rowaddr"]) == ("v",)
    assert lancetable.open_table(path).schema.field("v").type == pa.list_(pa.float32(), 2)
    assert rows(path, "n", "v")[9] == (90, [90.0, 1.0])


def test_a_function_gets_the_rows_where_they_are_read(table, path):
    table.addColumns(
        lambda batch: {
            "v": pa.FixedSizeListArray.from_arrays(batch.column("n").cast(pa.float32()), 1)
        }
    )

    def largest(batches):
        for batch in batches:
            assert batch.schema.field("v").type == pa.list_(pa.float32(), 1)
            assert batch.schema.names == ["v"]
            most = pc.max(batch.column("v").flatten()).as_py()
            yield pa.RecordBatch.from_pydict({"most": [most]})

    found = table.mapInArrow(largest, "most double", columns=["v"], where="n < 70").collect()
    assert max(row["most"] for row in found) == 60.0
    with pytest.raises(lancetable.SchemaError, match=r"LANCE_SCHEMA.*none"):
        table.mapInArrow(largest, "most double", columns=["none"])


def test_history_detail_and_restore(spark, table, path):
    table.delete("id = 0")
    found = table.history().collect()
    assert [row["version"] for row in found] == [4, 3, 2, 1]
    assert [row["operation"] for row in found] == ["Delete", "Append", "Append", "Overwrite"]
    assert found[0]["engineInfo"].startswith("lancetable ")
    assert found[0]["operationMetrics"]["numRowsRemoved"] == 1
    assert found[0]["operationParameters"]["predicate"] == "id = 0"
    assert len(table.history(2).collect()) == 2
    (detail,) = table.detail().collect()
    assert (detail["format"], detail["numRows"], detail["numFragments"]) == ("lance", 9, 2)
    assert detail["sizeInBytes"] > 0
    assert table.restoreToVersion(2) == 5
    assert table.count() == 5
    stamp = lancetable.open_table(path, version=4).timestamp.isoformat()
    assert table.restoreToTimestamp(stamp) == 6
    assert table.count() == 9
    made = lancetable.open_table(path, version=2).timestamp
    assert made is not None
    naive = made + timedelta(hours=9)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert table.restoreToTimestamp(naive.replace(tzinfo=None).isoformat()) == 7
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert table.count() == 5


def test_tables_can_be_made(spark, path):
    builder = (
        LanceTable.create(spark)
        .location(path)
        .addColumn("id", "bigint", nullable=False)
        .addColumn("v", "array<float>", type="float32[4]")
        .property("owner", "me")
        .stableRowIds()
    )
    builder.execute()
    made = lancetable.open_table(path)
    assert made.schema.field("v").type == pa.list_(pa.float32(), 4)
    assert not made.schema.field("id").nullable
    assert made.config == {"owner": "me"}
    with pytest.raises(ExistsError, match="LANCE_EXISTS"):
        builder.execute()
    LanceTable.createIfNotExists(spark).location(path).addColumn("x", "int").execute()
    assert lancetable.open_table(path).schema.names == ["id", "v"]
    LanceTable.createOrReplace(spark).location(path).addColumn("x", "int").execute()
    assert lancetable.open_table(path).schema.names == ["x"]
    with pytest.raises(InputError, match="location"):
        LanceTable.create(spark).execute()
    assert Path(path).exists()


def test_compaction_runs_on_workers(table, path):
    table.delete("id = 3")
    foreseen = table.optimize().dryRun().executeCompaction().collect()[0]
    assert (foreseen["isDryRun"], foreseen["numFragmentsRemoved"]) == (True, 2)
    assert lancetable.open_table(path).version == 4
    assert table.optimize().explain() == lancetable.open_table(path).compact(dry_run=True).explain()
    expected = rows(path)
    assert table.optimize().where("id = 99").executeCompaction().collect()[0]["numRows"] == 0
    optimize = table.optimize(target_rows=100, max_bytes_per_file=1 << 30)
    done = optimize.executeCompaction().collect()[0]
    assert (done["version"], done["numFragmentsAdded"], done["numDeletedRows"]) == (5, 1, 1)
    assert rows(path) == expected
    assert len(lancetable.open_table(path).fragments) == 1
    table.optimize().executeZOrderBy("n", "id").collect()
    assert rows(path) == expected
    with pytest.raises(InputError, match="LANCE_INPUT"):
        table.optimize(target_rows=0)


def test_old_versions_are_told_before_they_are_removed(table, path):
    table.delete("id = 3")
    (told,) = table.vacuum(0).collect()
    assert (told["isDryRun"], told["versions"]) == (True, [1, 2, 3])
    assert len(lancetable.open_table(path).versions()) == 4
    (done,) = table.vacuum(0, dryRun=False).collect()
    assert (done["isDryRun"], done["numFiles"]) == (False, told["numFiles"])
    assert [info.version for info in lancetable.open_table(path).versions()] == [4]
    assert table.vacuum().collect()[0]["versions"] == []
    assert table.count() == 9
    with pytest.raises(InputError, match=r"LANCE_INPUT.*negative"):
        table.vacuum(-1)


@pytest.mark.parametrize("is_shallow", [True, False])
def test_clones_have_the_rows_of_a_version(table, path, is_shallow):
    expected = rows(path)
    stamp = lancetable.open_table(path).timestamp.isoformat()
    table.delete("id > 4")
    assert table.clone(f"{path}-a", isShallow=is_shallow).count() == 5
    old = table.cloneAtVersion(3, f"{path}-b", isShallow=is_shallow)
    assert rows(f"{path}-b") == expected
    old.delete("id = 0")
    assert table.count() == 5
    assert rows(path)[0][0] == 0
    assert table.cloneAtTimestamp(stamp, f"{path}-c", isShallow=is_shallow).count() == 10
    with pytest.raises(ExistsError, match="LANCE_EXISTS"):
        table.clone(f"{path}-b")


def test_changes_are_told(table):
    table.update("id = 1", {"n": "-1"})
    kinds = sorted(tuple(row) for row in table.changes(3).select("_change_type", "n").collect())
    assert kinds == [("delete", 10), ("insert", -1)]
    assert table.changes(0, 2).count() == 5
    with pytest.raises(InputError, match="up to a later one"):
        table.changes(4, 2)


def test_a_backfill_goes_on_where_it_stopped(table, path, tmp_path):
    broken = tmp_path / "broken"
    broken.touch()
    done = tmp_path / "done"

    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        if broken.exists() and 7 in batch.column("id").to_pylist():
            raise ValueError("not today")
        with done.open("a") as notes:
            notes.write("x")
        return pa.RecordBatch.from_arrays([pc.multiply(batch.column("n"), 2)], ["twice"])

    schema = pa.schema([("twice", pa.int32())])
    options = FunctionOptions(inputs=("id", "n"), schema=schema, checkpoint=str(tmp_path / "kept"))
    with pytest.raises(Exception, match="not today"):
        table.addColumns(double, options)
    assert lancetable.open_table(path).version == 3
    broken.unlink()
    assert table.addColumns(double, options) == ("twice",)
    assert done.read_text() == "xx"
    assert rows(path, "n", "twice")[-1] == (90, 180)
