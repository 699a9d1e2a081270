"""Random changes with random faults: each acknowledged one is there once, a refused one is not."""

from functools import partial
from pathlib import Path

import pytest

import lancetable as lt
from tests.servers.fixtures import SERVERS
from tests.servers.proxy import Harm
from tests.storm.model import Model, Rows, among, rows_of, table_of
from tests.storm.stage import RECORDS, Stage, attempt, possible, staged
from tests.storm.weather import FAULTS

pytestmark = [pytest.mark.cloud, pytest.mark.oracle, pytest.mark.slow]
# Those that mislead come more often than those that only take time.
MIXED = [*FAULTS.values()] + [
    fault for fault in FAULTS.values() if not {Harm.SILENCE, Harm.SILENCE_AFTER} & set(fault)
] * 2


def storm(stage: Stage, seed: int, steps: int) -> None:
    """Make changes with faults; compare with the model after each and at the end."""
    table = lt.create_table(stage.uri, table_of({key: key for key in range(20)}), **stage.given)
    model = Model(seed, {})
    model.settle(1, {key: key for key in range(20)})
    weather = stage.weather(seed, MIXED)
    try:
        for step in range(steps):
            change = model.change()
            with weather.during(f"{step} {change.title}"):
                error = attempt(partial(change.run, table))
            weather.log.append(f"  → {error!r}")
            table = stage.open() if error or step % 4 == 0 else table
            found = rows_of(stage.open().scan().to_arrow())
            allowed = possible(error, model.rows, change.after)
            assert found in allowed, _difference(found, allowed)
            model.settle(stage.open().version, found)
        _check_end(stage, model)
    except (AssertionError, lt.LanceTableError) as failure:
        raise AssertionError(f"seed {seed}\n{weather.report()}\n{failure!r}") from failure
    assert weather.hurt > steps // 2


def _difference(found: Rows, allowed: list[Rows]) -> str:
    return "; ".join(
        f"missing {sorted(set(rows.items()) - set(found.items()))}, "
        f"too many {sorted(set(found.items()) - set(rows.items()))}"
        for rows in allowed
    )


def _check_end(stage: Stage, model: Model) -> None:
    assert rows_of(stage.rows_by_pylance()) == model.rows
    for key in (*model.rows, -1):
        found = stage.open().scan(where=among([key])).to_arrow()
        assert rows_of(found) == {one: model.rows[one] for one in (key,) if one in model.rows}
    for version, rows in sorted(model.versions.items())[-3:]:
        assert rows_of(stage.open(version).scan().to_arrow()) == rows, f"version {version}"
    problems = stage.open().maintenance.check(level="data").problems
    assert not problems, problems


@pytest.mark.parametrize(("records", "seed"), [("none", 1), ("dynamodb", 2)])
def test_a_short_storm(
    request: pytest.FixtureRequest, tmp_path: Path, records: str, seed: int
) -> None:
    with staged(request, "s3", records, tmp_path) as stage:
        storm(stage, seed, 9)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("records", RECORDS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_long_storm(
    request: pytest.FixtureRequest, tmp_path: Path, server: str, records: str, seed: int
) -> None:
    with staged(request, server, records, tmp_path) as stage:
        storm(stage, seed * 1000 + len(server) * 10 + len(records), 60)
