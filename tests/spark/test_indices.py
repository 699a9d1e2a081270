"""Indices from Spark: workers build segments, one commit brings them, and scans use them."""

from pathlib import Path

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import CorruptError, ExistsError, IndexNotFoundError, InputError, SchemaError
from lancetable.scan.plan import plan
from lancetable.spark import LanceTable
from lancetable.spark.options import ReadOptions
from lancetable.spark.read.partitions import divide
from lancetable.spark.read.reader import PartitionReader
from lancetable.spark.read.schema import shown_schema


@pytest.fixture
def path(tmp_path):
    data = {"id": range(400), "tag": [f"t{i % 7}" for i in range(400)]}
    made = lancetable.create_table(tmp_path / "t", pa.table(data), max_rows_per_file=100)
    return made.uri


def test_the_life_of_an_index(either, path):
    table = LanceTable.forPath(either, path)
    assert table.indices().count() == 0
    (done,) = table.createIndex("id", lancetable.BTree(), segments=4).collect()
    assert (done["name"], done["numSegments"], done["numRows"], done["version"]) == (
        *("id_idx", 4, 400),
        2,
    )
    table.createIndex("tag", "zonemap", {"rows_per_zone": 50}, name="zones", fragments=[0, 1])
    (ids, zones) = table.indices().collect()
    assert (ids["kind"], ids["columns"], ids["numSegments"]) == ("btree", ["id"], 4)
    assert (zones["kind"], zones["numFragmentsCovered"], zones["numRowsUncovered"]) == (
        *("zonemap", 2),
        200,
    )
    core = lancetable.open_table(path)
    assert "index id_idx" in core.scan(where="id = 250").explain()
    assert table.toDF(where="id = 250").collect()[0]["tag"] == "t5"
    core.append(pa.table({"id": [1000], "tag": ["new"]}))
    (dry,) = table.optimizeIndices(dryRun=True).collect()
    assert (dry["isDryRun"], dry["numSegmentsAdded"], dry["isNewVersion"]) == (True, 2, False)
    assert [one["name"] for one in dry["steps"]] == ["id_idx", "zones"]
    (done,) = table.optimizeIndices(["id_idx"], mode="merge").collect()
    assert (done["numSegmentsRemoved"], done["numRows"], done["numRowsMerged"]) == (4, 1, 400)
    assert table.toDF(where="id >= 399").count() == 2
    version = table.dropIndex("zones")
    assert version == core.refresh().version
    assert list(core.indices) == ["id_idx"]
    assert table.inspect.indices().count() == 1


def test_a_scan_asks_indices_on_the_driver_and_hands_rows_to_tasks(either, path):
    core = lancetable.open_table(path)
    core.indices.create("id", "btree", fragments=[0, 1, 2])
    core.delete("id = 150")
    options = ReadOptions(where="id in (7, 150, 151, 350) and tag <> 't0'")
    schema = core._snapshot.manifest.schema
    reader = PartitionReader(shown_schema(schema, options), options)
    planned = plan(schema, reader.request(schema, core.version))
    partitions = divide(core._snapshot, planned, options)
    named = {id_: rows for one in partitions for id_, rows in one.named.items()}
    assert {id_: rows.rows.offsets().tolist() for id_, rows in named.items()} == {
        0: [7],
        1: [50, 51],
    }
    kept = [one.id for each in partitions for one in each.part.manifest.fragments]
    assert sorted(kept) == [0, 1, 3]
    found = LanceTable.forPath(either, path).toDF(where=options.where).collect()
    assert sorted(row["id"] for row in found) == [151]


def test_the_errors_are_those_of_the_core(either, path):
    table = LanceTable.forPath(either, path)
    with pytest.raises(InputError, match="is not a kind of index"):
        table.createIndex("id", "tree")
    with pytest.raises(SchemaError, match="nothing"):
        table.createIndex("nothing", "btree")
    with pytest.raises(InputError, match="no option 'x'"):
        table.createIndex("id", "btree", {"x": 1})
    with pytest.raises(IndexNotFoundError, match="LANCE_INDEX_NOT_FOUND"):
        table.dropIndex("id_idx")
    table.createIndex("id", "btree")
    with pytest.raises(ExistsError, match="id_idx"):
        table.createIndex("id", "bitmap", name="id_idx")


def test_a_worker_that_fails_leaves_nothing(either, path):
    core = lancetable.open_table(path)
    broken = Path(path) / "data" / core.fragments[2].files[0].path
    content = broken.read_bytes()
    broken.write_bytes(content[:-50])
    with pytest.raises(CorruptError):
        LanceTable.forPath(either, path).createIndex("id", "btree", segments=5)
    broken.write_bytes(content)
    assert not core.refresh().indices
    assert not [one for one in Path(path).glob("_indices/**/*") if one.is_file()]
