"""Damaged tables from Spark: each kind is found and repaired as the core does it."""

import pytest

import lancetable
from lancetable.spark import LanceTable
from tests.damage import DAMAGES, make_table


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_every_kind_of_damage_is_found_from_spark(spark, tmp_path, name):
    """What the core finds and would lose; both sessions are tried elsewhere."""
    damage = DAMAGES[name]
    path = tmp_path / "t"
    damage.act(path, make_table(path))
    table = LanceTable.forRescue(spark, str(path))
    problems = lancetable.check_table(path, level=damage.level).problems
    found = table.check(damage.level).collect()
    assert [(row["kind"], row["path"], row["message"]) for row in found] == [
        (one.kind, one.path, one.message) for one in problems
    ]
    losses = lancetable.repair_table(path, damage.level).losses
    (plan,) = table.repair(damage.level, dryRun=False).collect()
    assert [tuple(row) for row in plan["losses"]] == [
        (one.kind, one.path, one.what, one.fragment, one.rows) for one in losses
    ]
    assert set(lancetable.open_table(path).scan(["id"]).to_arrow()["id"].to_pylist()) == damage.left
