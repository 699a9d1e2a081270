"""Which kind of session is this: a classic one, with its JVM at hand, or one over Connect."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_connect(spark: "SparkSession") -> bool:
    """Say whether a session talks to a server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
