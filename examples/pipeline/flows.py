"""What flows where: declared here, run by ``spark-pipelines run --spec spark-pipeline.yml``.

Events are followed as they are appended to a Lance table. Those that matter go to another one, and
a table of the catalog counts them. A sink writes to a path, which is what a Lance table has; tables
of the catalog are kept in Spark's own formats.
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


@dp.materialized_view  # type: ignore[untyped-decorator]
def levels() -> DataFrame:
    """Count events by level."""
    return spark.read.format("lance").load(source).groupBy("level").count()
