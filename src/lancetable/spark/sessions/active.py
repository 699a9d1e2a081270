"""Keep a classic session active in every thread of the JVM that serves this process.

Spark looks for sources written in Python in the active session of a JVM thread. Each thread of
Python talks to a JVM thread of its own over a connection, and a new connection is a new thread that
has no active session: after Ctrl-C, which closes the connection, and in each new thread of Python.
So every new connection begins with making the session active.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from py4j.protocol import CALL_COMMAND_NAME, END_COMMAND_PART, get_command_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSIONS = "org.apache.spark.sql.classic.SparkSession"
_CONNECT = "_create_new_connection"
_COMMAND = "_lancetable_activate"


def activate(spark: "SparkSession") -> None:
    """Make a classic session the active one, here and in threads that connect later."""
    session = spark._jsparkSession  # noqa: SLF001 - no other way from Python
    getattr(spark._jvm, _SESSIONS).setActiveSession(session)  # noqa: SLF001
    client: Any = spark.sparkContext._gateway._gateway_client  # noqa: SLF001
    # Without a connection for each thread (PYSPARK_PIN_THREAD=false) there is nothing to hook into.
    if not hasattr(client, _CONNECT):
        return
    is_hooked = hasattr(client, _COMMAND)
    part = get_command_part(session)
    command = f"{CALL_COMMAND_NAME}z:{_SESSIONS}\nsetActiveSession\n{part}{END_COMMAND_PART}"
    setattr(client, _COMMAND, command)
    if not is_hooked:
        setattr(client, _CONNECT, _activating(client, getattr(client, _CONNECT)))


def _activating(client: Any, connect: Callable[[], Any]) -> Callable[[], Any]:  # noqa: ANN401
    """Return a function that connects and makes the session active on the new connection."""

    @wraps(connect)
    def connected() -> Any:  # noqa: ANN401 - a class of py4j, which has no types
        connection = connect()
        # The answer is not looked at: a session that is gone is simply not made active.
        connection.send_command(getattr(client, _COMMAND))
        return connection

    return connected
