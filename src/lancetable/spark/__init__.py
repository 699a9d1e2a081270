"""Lance tables in Spark, through PySpark alone: no JAR, nothing to install in the JVM."""

from lancetable.spark.register import register
from lancetable.spark.runner import SparkRunner
from lancetable.spark.source import LanceSource
from lancetable.spark.table import LanceTable

__all__ = ["LanceSource", "LanceTable", "SparkRunner", "register"]
