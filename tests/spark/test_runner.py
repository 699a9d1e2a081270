"""The steps of operations on the workers of Spark."""

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import InputError, UnsupportedError
from lancetable.operations.delete import delete
from lancetable.operations.results import ChangeOptions
from lancetable.operations.update import update
from lancetable.spark import SparkRunner


def test_results_come_in_the_order_of_the_tasks(spark):
    seen = []
    runner = SparkRunner(spark, wave=4, progress=seen.append)
    assert list(runner.map(lambda number: number * number, range(10))) == [n * n for n in range(10)]
    assert seen == sorted(seen)
    assert {4, 8, 10} <= set(seen) <= set(range(11))
    assert list(runner.map(str, [])) == []


def test_an_error_of_a_step_ends_the_run(spark):
    def step(number):
        if number == 1:
            raise ValueError("one is too many")
        return number

    with pytest.raises(Exception, match="one is too many"):
        list(SparkRunner(spark).map(step, range(3)))
    with pytest.raises(InputError, match="wave"):
        SparkRunner(spark, wave=0)


def test_operations_of_the_core_run_on_spark(spark, tmp_path):
    table = lancetable.create_table(str(tmp_path / "t"), pa.table({"x": range(100)}))
    for first in (100, 200):
        table.append(pa.table({"x": range(first, first + 100)}))
    options = ChangeOptions(runner=SparkRunner(spark))
    assert delete(table._snapshot, "x % 2 = 1", options).result.rows == 150
    table.refresh()
    assert update(table._snapshot, {"x": "x + 1000"}, "x >= 200", options).result.rows == 50
    table.refresh()
    expected = sorted([*range(0, 200, 2), *range(1200, 1300, 2)])
    assert sorted(table.scan().to_arrow()["x"].to_pylist()) == expected


def test_an_error_of_a_step_keeps_its_class_in_an_operation(spark, tmp_path):
    table = lancetable.create_table(str(tmp_path / "t"), pa.table({"x": [1, 0]}))
    options = ChangeOptions(runner=SparkRunner(spark))
    with pytest.raises(lancetable.ExpressionError):
        update(table._snapshot, {"x": "10 / x"}, None, options)
    assert lancetable.open_table(table.uri).version == 1


def test_workers_without_the_library_are_named(spark, tmp_path, monkeypatch):
    hider = "import sys\nsys.modules['lancetable'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hider)
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"workers of Spark have no module 'lancetable.*zip"):
        list(SparkRunner(spark).map(str, range(2)))
