"""Merges that Spark joins give what the core's own merge gives, on the same rows."""

import random
from decimal import Decimal

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import InputError
from lancetable.operations.results import ChangeOptions
from lancetable.spark import LanceTable

SCHEMA = pa.schema(
    [
        ("id", pa.uint64()),
        ("part", pa.string()),
        ("n", pa.int64()),
        ("v", pa.list_(pa.float32(), 2)),
    ]
)
SPARK = "id decimal(20,0), part string, n bigint, v array<float>"


def some_rows(seed, count, most):
    """Rows with few keys, some of them null, each key once."""
    chance = random.Random(seed)
    keys = {(chance.randrange(most), chance.choice(["a", "ä", None])) for _ in range(count)}
    return [
        {"id": id_, "part": part, "n": chance.randrange(10), "v": [float(id_), 0.5]}
        for id_, part in sorted(keys, key=str)
    ]


@pytest.fixture
def pair(tmp_path):
    """The same table twice, in several fragments with deleted rows."""
    rows = some_rows(1, 60, 40)
    uris = [str(tmp_path / name) for name in ("spark", "core")]
    for uri in uris:
        table = lancetable.create_table(uri, schema=SCHEMA)
        for start in range(0, len(rows), 15):
            table.append(pa.Table.from_pylist(rows[start : start + 15], SCHEMA))
        table.delete("n = 3")
    return uris


def frame_of(spark, rows):
    given = [(Decimal(row["id"]), row["part"], row["n"], row["v"]) for row in rows]
    return spark.createDataFrame(given, SPARK)


def everything(uri):
    found = lancetable.open_table(uri).scan().to_arrow().to_pylist()
    return sorted(map(str, found))


def merge_in_core(uri, rows, evolves=False):
    merge = lancetable.open_table(uri).merge(rows, on=["id", "part"])
    merge = merge.with_schema_evolution() if evolves else merge
    return (
        merge.when_matched_delete("source.n = 9")
        .when_matched_update({"n": "target.n * 100 + source.n", "v": "source.v"}, "source.n < 7")
        .when_matched_update_all()
        .when_not_matched_insert_all("source.n <> 5")
        .when_not_matched_by_source_update({"n": "-n"}, "target.n = 4")
        .when_not_matched_by_source_delete("target.n = 6")
        .execute()
    )


def merge_in_spark(table, frame, join, evolves=False):
    merge = table.alias("t").merge(frame, ["id", "part"], join=join)
    merge = merge.withSchemaEvolution() if evolves else merge
    return (
        merge.whenMatchedDelete("source.n = 9")
        .whenMatchedUpdate("source.n < 7", {"n": "t.n * 100 + source.n", "v": "source.v"})
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll("source.n <> 5")
        .whenNotMatchedBySourceUpdate("t.n = 4", {"n": "-n"})
        .whenNotMatchedBySourceDelete("t.n = 6")
        .execute()
        .collect()[0]
    )


@pytest.mark.parametrize("join", ["driver", "cluster"])
def test_all_clauses_give_what_the_core_gives(either, pair, join):
    ours, core = pair
    rows = some_rows(2, 50, 50)
    expected = merge_in_core(core, pa.Table.from_pylist(rows, SCHEMA))
    table = LanceTable.forPath(either, ours)
    counts = merge_in_spark(table, frame_of(either, rows).repartition(3), join)
    assert (expected.updated, expected.deleted, expected.inserted) == tuple(counts)[1:4]
    assert min(tuple(counts)[1:4]) > 0
    assert everything(ours) == everything(core)
    files = {file.path for part in lancetable.open_table(ours).fragments for file in part.files}
    assert len(files) == len(set(files))


@pytest.mark.parametrize("join", ["driver", "cluster"])
def test_nothing_is_left_behind_by_a_merge_that_fails(spark, pair, tmp_path, join):
    table = LanceTable.forPath(spark, pair[0])
    before = sorted(path.name for path in (tmp_path / "spark" / "data").iterdir())
    known = lancetable.open_table(pair[0]).scan().to_arrow().to_pylist()
    row = next(one for one in known if one["part"] is not None)
    with pytest.raises(InputError, match=r"LANCE_INPUT.*match one row of the table"):
        merge_in_spark(table, frame_of(spark, [row, row, *some_rows(3, 20, 99)]), join)
    twice = [{**row, "id": 1000}] * 2
    with pytest.raises(InputError, match=r"inserted with one key.*1000"):
        merge_in_spark(table, frame_of(spark, twice), join)
    assert sorted(path.name for path in (tmp_path / "spark" / "data").iterdir()) == before
    assert lancetable.open_table(pair[0]).version == table.snapshot().version == 5


@pytest.mark.parametrize("join", ["driver", "cluster"])
def test_the_progress_of_tasks_is_not_reported(spark, pair, join):
    def refuse(progress):
        raise AssertionError(f"called with {progress}")

    change = ChangeOptions(write=lancetable.WriteOptions(progress=refuse))
    table = LanceTable.forPath(spark, pair[0])
    rows = frame_of(spark, [{"id": 500, "part": "a", "n": 1, "v": [0.0, 0.5]}])
    table.merge(rows, ["id", "part"], change, join=join).whenNotMatchedInsertAll().execute()
    assert lancetable.open_table(pair[0]).count("id = 500") == 1


def test_columns_are_added_by_a_joined_merge(spark, pair):
    rows = some_rows(4, 30, 60)
    wide = [{**row, "more": str(row["n"])} for row in rows]
    expected = merge_in_core(pair[1], wide, evolves=True)
    frame = frame_of(spark, rows).selectExpr("*", "cast(n as string) more")
    table = LanceTable.forPath(spark, pair[0])
    counts = merge_in_spark(table, frame, "cluster", evolves=True)
    assert tuple(counts)[1:4] == (expected.updated, expected.deleted, expected.inserted)
    assert everything(pair[0]) == everything(pair[1])


def test_an_empty_table_and_an_empty_source(spark, tmp_path):
    path = str(tmp_path / "t")
    lancetable.create_table(path, schema=SCHEMA)
    table = LanceTable.forPath(spark, path)
    counts = merge_in_spark(table, frame_of(spark, some_rows(5, 9, 9)), "cluster")
    assert table.count() == counts["num_inserted_rows"] > 0
    before = table.snapshot().version
    merge = table.merge(frame_of(spark, []), ["id"], join="cluster")
    done = merge.whenMatchedUpdateAll().execute().collect()[0]
    assert (done["num_affected_rows"], done["is_new_version"]) == (0, False)
    assert table.snapshot().version == before


def test_a_merge_that_meets_another_starts_again(spark, pair):
    """The source appends to the table while it is read for the first time."""
    path = pair[0]
    new = {"id": 777, "part": "x", "n": 1, "v": [0.0, 0.0]}

    def meddle(batches):
        if lancetable.open_table(path).count("id = 777") == 0:
            merge = lancetable.open_table(path).merge(
                pa.Table.from_pylist([new], SCHEMA), on=["id", "part"]
            )
            merge.when_not_matched_insert_all().execute()
        yield from batches

    frame = frame_of(spark, [{**new, "n": 2}]).repartition(1)
    merge = LanceTable.forPath(spark, path).merge(
        frame.mapInArrow(meddle, frame.schema), ["id", "part"], join="cluster"
    )
    counts = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect()[0]
    assert (counts["num_updated_rows"], counts["num_inserted_rows"]) == (1, 0)
    found = lancetable.open_table(path).scan(where="id = 777").to_arrow().to_pylist()
    assert [row["n"] for row in found] == [2]


def test_unknown_ways_to_join_are_named(spark, pair):
    table = LanceTable.forPath(spark, pair[0])
    merge = table.merge(frame_of(spark, []), ["id"], join="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="use one of auto, driver, cluster"):
        merge.whenMatchedDelete().execute()
