"""Flows of a declarative pipeline; run with ``spark-pipelines run --spec spark-pipeline.yml``.

The pipeline streams rows that are appended to a Lance table and writes some of them to another one.
A sink writes to the path of a Lance table. The pipeline uses no catalog table: without a persistent
catalog, such as Hive, a second run finds the folder of the table without its entry and fails with
LOCATION_ALREADY_EXISTS.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
source = spark.conf.get("lance.events") or ""
target = spark.conf.get("lance.alarms") or ""

dp.create_sink("alarms", "lance", {"path": target})


@dp.append_flow(target="alarms")  # type: ignore[untyped-decorator]
def alarms() -> DataFrame:
    """Copy events of level 3 and above, each row once."""
    events = spark.readStream.format("lance").option("startingVersion", 1).load(source)
    return events.where("level >= 3")
