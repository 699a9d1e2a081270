"""One quiet local session for all tests of Spark."""

import pytest

pytest.importorskip("pyspark")


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/spark" in item.path.as_posix():
            item.add_marker(pytest.mark.spark)
            # PySpark and its companions warn about each other's next versions.
            item.add_marker(pytest.mark.filterwarnings("default"))


QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@pytest.fixture(scope="session")
def spark():
    from lancetable.spark import session

    made = session(master="local[2]", memory="1g", settings=QUICK)
    yield made
    made.stop()
