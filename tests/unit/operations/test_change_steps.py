"""The steps of changes can run anywhere: tasks and results are plain values."""

import pickle

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import InputError
from lancetable.operations.columns.add import add_computed_columns, add_joined_columns
from lancetable.operations.columns.alter import cast_column
from lancetable.operations.columns.replace import replace_columns
from lancetable.operations.delete import delete
from lancetable.operations.merge.clauses import Act, Clause, When
from lancetable.operations.merge.run import MergeOptions, merge
from lancetable.operations.results import ChangeOptions
from lancetable.operations.run.runner import Threads, run_steps
from lancetable.operations.update import update, update_columns


class Elsewhere:
    """Runs each step as if in another process: nothing but bytes goes there and comes back."""

    def map(self, step, tasks):
        for task in tasks:
            there, work = pickle.loads(pickle.dumps((step, task)))
            yield pickle.loads(pickle.dumps(there(work)))


def test_every_change_runs_elsewhere(tmp_path):
    data = {"id": list(range(9)), "v": [1] * 9, "s": ["x"] * 9}
    table = lancetable.create_table(str(tmp_path / "t"), data, stable_row_ids=True)
    table.append(data)
    options = ChangeOptions(runner=Elsewhere())
    snapshot = delete(table._snapshot, "id = 3", options).snapshot
    snapshot = update(snapshot, {"v": "v + 1"}, "id < 2", options).snapshot
    snapshot = update_columns(snapshot, {"s": "'y'"}, "id > 6", options).snapshot
    clauses = [Clause(When.MATCHED, Act.UPDATE), Clause(When.NOT_MATCHED, Act.INSERT)]
    source = pa.table({"id": [4, 40], "v": [-4, -40]})
    snapshot = merge(snapshot, source, ["id"], clauses, MergeOptions(options)).snapshot
    snapshot = add_computed_columns(snapshot, {"w": "v * 2"}, options).snapshot
    snapshot = add_joined_columns(
        snapshot, pa.table({"id": [5], "j": ["five"]}), ["id"], options
    ).snapshot
    snapshot = cast_column(snapshot, "v", pa.int32(), options).snapshot
    replace_columns(snapshot, {"j": "coalesce(j, 'none')"}, options)
    found = table.refresh().scan(["id", "v", "s", "w", "j"]).to_arrow().to_pylist()
    assert len(found) == 17
    for row in found:
        value = {0: 2, 1: 2, 4: -4, 40: -40}.get(row["id"], 1)
        text = None if row["id"] == 40 else "y" if row["id"] > 6 else "x"
        joined = "five" if row["id"] == 5 else "none"
        assert row == {"id": row["id"], "v": value, "s": text, "w": 2 * value, "j": joined}


def _even(task):
    if task == 5:
        raise InputError("five is odd")
    return task


@pytest.mark.parametrize("workers", [1, 3])
def test_after_an_error_everything_is_undone(workers):
    begun: list[int] = []
    undone: list[int] = []

    def tasks():
        for task in range(100):
            begun.append(task)
            yield task

    with pytest.raises(InputError, match="five"):
        run_steps(Threads(workers), _even, tasks(), undone.append)
    assert sorted([*undone, 5]) == list(range(len(undone) + 1))
    assert len(begun) < 100
