"""What flows where: declared here, run by ``spark-pipelines run --spec spark-pipeline.yml``.

Events are followed as they are appended to a Lance table, and those that matter go to another one.
A sink writes to a path, which is what a Lance table has. There is no table of the catalog: unless
the catalog outlives the run, as that of Hive does, a second run finds the folder of the table
without its entry and fails with LOCATION_ALREADY_EXISTS.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
source = spark.conf.get("lance.events") or ""
target = spark.conf.get("lance.alarms") or ""

dp.create_sink("alarms", "lance", {"path": target})


@dp.append_flow(target="alarms")  # type: ignore[untyped-decorator]
def alarms() -> DataFrame:
    """Copy what is loud, each row once."""
    events = spark.readStream.format("lance").option("startingVersion", 1).load(source)
    return events.where("level >= 3")
