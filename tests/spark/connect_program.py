"""What works over Connect: run as a program of its own, since a process has one kind of session."""

import sys

import pyarrow as pa
from pyspark.sql import SparkSession

import lancetable
from lancetable.spark import LanceTable, register


def main(path: str) -> None:
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    assert "connect" in type(spark).__module__
    register(spark)
    write = spark.range(0, 100, 1, 2).selectExpr("id", "id % 7 as n").write.format("lance")
    write.mode("append").save(path)
    assert spark.read.format("lance").load(path).where("n = 3 and id > 50").count() == 7

    table = LanceTable.forPath(spark, path)
    assert table.delete("id >= 90") == 10
    assert table.update("id < 10", {"n": "100"}) == 10
    source = spark.sql("select 5L id, -1L n union all select 500L, -2L")
    merge = table.merge(source, "target.id = source.id")
    counts = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect()
    assert [tuple(row) for row in counts] == [(2, 1, 0, 1)]
    assert table.addColumns({"twice": "n * 2"}) == ("twice",)
    assert table.count() == 91
    assert table.history().count() == 5
    found = lancetable.open_table(path).scan(where="id in (5, 6, 500)").to_arrow()
    expected = pa.table({"id": [5, 6, 500], "n": [-1, 100, -2], "twice": [-2, 200, -4]})
    assert found.sort_by("id").to_pylist() == expected.to_pylist()

    stream = spark.readStream.format("lance").option("startingVersion", 1).option("changes", "skip")
    query = (
        stream.load(path)
        .writeStream.format("lance")
        .option("checkpointLocation", f"{path}-checkpoint")
        .trigger(availableNow=True)
        .start(f"{path}-copy")
    )
    query.awaitTermination()
    assert query.exception() is None, query.exception()
    assert lancetable.open_table(f"{path}-copy").count() == 100
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
