"""Lance tables in Spark, through PySpark alone: no JAR, nothing to install in the JVM.

Every process that plans or runs a query imports this package, and most of them need the source
alone. The other names are loaded when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

import lancetable.spark.release  # noqa: F401 - before anything that an old PySpark lacks
from lancetable.spark.sessions.local import session
from lancetable.spark.sessions.register import register
from lancetable.spark.source import LanceSource

if TYPE_CHECKING:
    from lancetable.spark.runner import SparkRunner
    from lancetable.spark.sessions.progress import show_progress
    from lancetable.spark.table.table import LanceTable
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

_HOMES = {
    "LanceTable": "table.table",
    "SparkRunner": "runner",
    "show_progress": "sessions.progress",
    "upsert": "upserts",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
