"""Lance tables in Spark, through PySpark alone: no JAR, nothing to install in the JVM."""

from lancetable.spark.progress import show_progress
from lancetable.spark.register import register
from lancetable.spark.runner import SparkRunner
from lancetable.spark.session import session
from lancetable.spark.source import LanceSource
from lancetable.spark.table import LanceTable
from lancetable.spark.upserts import upsert

__all__ = [
    "LanceSource",
    "LanceTable",
    "SparkRunner",
    "register",
    "session",
    "show_progress",
    "upsert",
]
