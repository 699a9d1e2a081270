"""Lance tables in Spark, through PySpark alone: no JAR, nothing to install in the JVM."""

from lancetable.spark.register import register
from lancetable.spark.runner import SparkRunner
from lancetable.spark.source import LanceSource

__all__ = ["LanceSource", "SparkRunner", "register"]
