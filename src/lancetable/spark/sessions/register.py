"""Register the data source in a Spark session, and set the options that it needs."""

import logging
from typing import TYPE_CHECKING

from lancetable.spark.kinds import is_connect
from lancetable.spark.source import LanceSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

SETTINGS = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.timeType.enabled": "true",
}
"""With another value of the first Spark measures every row that it sends to Python, and writes take
three times as long; without the second it cannot count or group rows with a time of day."""


def register(spark: "SparkSession", *, settings: bool = True) -> dict[str, str]:
    """Make ``format("lance")`` known to a session, and set what it needs; return what was set.

    The session becomes the active one of this thread and of threads that are started later.

    Args:
        spark: a session, classic or Connect.
        settings: set the session's settings as well; those that are set already stay.
    """
    if not is_connect(spark):
        from lancetable.spark.sessions.active import activate  # noqa: PLC0415 - a client of Connect has no py4j

        activate(spark)
    spark.dataSource.register(LanceSource)
    done = {}
    if settings:
        for name, wanted in SETTINGS.items():
            if spark.conf.get(name, None) != wanted:
                spark.conf.set(name, wanted)
                done[name] = wanted
    for name, wanted in done.items():
        _log.info("set %s=%s", name, wanted)
    return done
