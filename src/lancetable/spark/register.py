"""How does a Spark session get to know the data source, and which settings does it need."""

import logging
from typing import TYPE_CHECKING

from lancetable.spark.kinds import is_connect
from lancetable.spark.source import LanceSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

SETTINGS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""With any other value Spark measures every row that it sends to Python, and writes take three
times as long."""


def register(spark: "SparkSession", *, settings: bool = True) -> dict[str, str]:
    """Make ``format("lance")`` known to a session, and set what it needs; return what was set.

    Spark looks for sources written in Python in the session that is active in a thread, and a new
    thread has none: call this in each thread of your own that reads or writes.

    Args:
        spark: a session, classic or Connect.
        settings: set the session's settings as well; those that are set already stay.
    """
    _activate(spark)
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


def _activate(spark: "SparkSession") -> None:
    """Make a session the active one of this thread; sessions over Connect need none."""
    if not is_connect(spark):
        sessions = getattr(spark._jvm, "org.apache.spark.sql.classic.SparkSession")  # noqa: SLF001
        sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001 - no other way from Python
