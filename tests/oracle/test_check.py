"""pylance reads what a repair made; damage to its indices is named and repaired."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancetable as lt
from tests.damage import DAMAGES, flip, make_table, truncate
from tests.oracle.test_alternating import AlternatingMachine

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", DAMAGES)
def test_pylance_reads_and_writes_what_a_repair_made(tmp_path, name) -> None:
    damage, path = DAMAGES[name], tmp_path / "t"
    damage.act(path, make_table(path))
    lt.repair_table(path, damage.level).execute()
    theirs = lance.dataset(str(path))
    theirs.validate()
    assert sorted(theirs.to_table()["id"].to_pylist()) == sorted(damage.left)
    assert theirs.to_table(with_row_id=True).num_rows == len(damage.left)
    theirs.insert(pa.table({"id": [99], "s": ["new"]}))
    theirs.update({"s": "'u'"}, where="id = 4")
    expected = sorted({*damage.left, 99})
    assert sorted(lance.dataset(str(path)).to_table()["id"].to_pylist()) == expected
    ours = lt.open_table(path)
    assert sorted(ours.scan().to_arrow()["id"].to_pylist()) == expected
    assert not [
        one for one in ours.maintenance.check(all_versions=False).problems if one.kind == "data"
    ]


def _indexed(path: Path) -> lt.Table:
    rows = pa.table({"id": range(100), "s": [f"s{number}" for number in range(100)]})
    theirs = lance.write_dataset(rows, str(path), max_rows_per_file=50)
    theirs.create_scalar_index("id", "BTREE")
    theirs.create_scalar_index("s", "BITMAP")
    return lt.open_table(path)


def _index_file(path: Path, table: lt.Table, name: str) -> Path:
    (segment,) = table.indices[name].segments
    return max((path / "_indices" / segment.uuid).iterdir())


@pytest.mark.parametrize(
    "act",
    [
        lambda file: file.unlink(),
        truncate,
        lambda file: flip(file, -2),
        lambda file: [one.unlink() for one in file.parent.iterdir()],
    ],
    ids=["missing", "truncated", "flipped", "emptied"],
)
def test_a_broken_index_goes_and_no_row_with_it(tmp_path, act) -> None:
    path = tmp_path / "t"
    table = _indexed(path)
    assert table.maintenance.check(level="data").is_ok
    assert table.maintenance.check().coverage == {"id_idx": 1.0, "s_idx": 1.0}
    act(_index_file(path, table, "id_idx"))
    problems = table.maintenance.check().problems
    assert {one.kind for one in problems} == {"index"}
    assert all("_indices" in one.path for one in problems)
    plan = table.maintenance.repair()
    assert {one.kind for one in plan.losses} == {"index"}
    assert plan.lost_rows == 0
    plan.execute()
    theirs = lance.dataset(str(path))
    theirs.validate()
    assert [index.name for index in theirs.describe_indices()] == ["s_idx"]
    assert theirs.count_rows("id > 50 and s != 's60'") == 48
    theirs.create_scalar_index("id", "BTREE")
    assert lt.open_table(path).maintenance.check(level="data", all_versions=False).is_ok


def test_a_damaged_list_of_indices_goes(tmp_path) -> None:
    path = tmp_path / "t"
    table = _indexed(path)
    flip(path / table._snapshot.manifest_path, 5)
    (problem,) = table.maintenance.check().problems
    assert problem.kind == "index"
    assert problem.path.endswith(".manifest")
    table.maintenance.repair().execute()
    assert lance.dataset(str(path)).count_rows("id > 50") == 49


class SoundMachine(AlternatingMachine):
    """Whatever we and pylance do to a table, nothing is found to be wrong with it."""

    each = 1000

    def teardown(self) -> None:
        if self.is_settled:
            assert lt.check_table(self.uri, level="data").problems == ()
        super().teardown()


@pytest.mark.slow
def test_nothing_is_wrong_with_what_both_write() -> None:
    from hypothesis import HealthCheck, settings
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        SoundMachine,
        settings=settings(
            max_examples=8, stateful_step_count=12, suppress_health_check=list(HealthCheck)
        ),
    )
