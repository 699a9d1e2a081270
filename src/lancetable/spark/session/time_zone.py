"""Times without an offset in the time zone of a Spark session."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lancetable.commit.versions.as_of import parse_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def session_time(spark: "SparkSession", text: str | datetime) -> datetime:
    """Return a time with an offset; Spark converts one without, as its own functions do.

    Raises:
        InputError: it is neither a datetime nor its ISO text.
    """
    time = parse_time(text)
    if time.tzinfo is not None:
        return time
    rows = spark.sql(
        "SELECT unix_micros(CAST(:time AS TIMESTAMP))", args={"time": time.isoformat(" ")}
    ).collect()
    return _EPOCH + timedelta(microseconds=rows[0][0])
