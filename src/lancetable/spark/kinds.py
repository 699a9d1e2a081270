"""Distinguish classic sessions from those of Spark Connect."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_connect(spark: "SparkSession") -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
