"""Every change with every fault: it is there once, or not at all unless it was acknowledged.

The expected contents come from a twin in memory, on which the same change runs undisturbed.
"""

import uuid
import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import lancetable as lt
from tests.acts import ACTS, make_base, rows_from
from tests.servers.fixtures import SERVERS
from tests.storm.pairwise import Case, pairs_of, pairwise
from tests.storm.stage import RECORDS, Stage, staged
from tests.storm.weather import FAULTS, Weather

pytestmark = [pytest.mark.cloud, pytest.mark.oracle]
Run = Callable[[lt.Table, lt.CommitOptions], Any]
COMMIT = lt.CommitOptions(attempts=5, deadline_seconds=20)


def _held(table: lt.Table) -> None:
    with table.hold():
        table.count()


RUNS: dict[str, Run] = {
    **{name: act.run for name, act in ACTS.items()},
    "tag": lambda t, c: t.tags.create("first", 1),
    "branch": lambda t, c: t.branches.create("other", 2),
    "cleanup": lambda t, c: t.cleanup(timedelta(0)),
    "hold": lambda t, c: _held(t),
}
FACTORS = {
    "act": tuple(RUNS),
    "fault": tuple(FAULTS),
    "server": SERVERS,
    "records": RECORDS,
}
CASES = pairwise(FACTORS)


def _everyday(case: Case) -> bool:
    """Return whether a case is part of `make test`: a few of those that SeaweedFS serves."""
    number = zlib.crc32(repr(sorted(case.items())).encode())
    return case["server"] == "s3" and case["records"] in {"none", "dynamodb"} and number % 8 == 0


def _parameters() -> list[Any]:
    return [
        pytest.param(
            case,
            id="-".join(case[name] for name in FACTORS).replace(" ", "_"),
            marks=[] if _everyday(case) else [pytest.mark.soak],
        )
        for case in CASES
    ]


class Contents(NamedTuple):
    """What a table holds, as far as a user can tell."""

    rows: list[str]
    schema: str
    settings: str
    references: str


def contents(table: lt.Table) -> Contents:
    """Read everything of the latest version."""
    found = table.scan().to_arrow()
    settings = [table.config, table.metadata, table.schema.metadata or {}]
    tags = [(tag.name, tag.version) for tag in table.tags.list()]
    branches = [(one.name, one.parent_version) for one in table.branches.list()]
    return Contents(
        sorted(repr(sorted(row.items())) for row in found.to_pylist()),
        found.schema.to_string(),
        repr([sorted(one.items()) for one in settings]),
        repr([tags, branches]),
    )


@pytest.mark.parametrize("case", _parameters())
def test_a_change_with_faults(request: pytest.FixtureRequest, tmp_path: Path, case: Case) -> None:
    seed = zlib.crc32(repr(sorted(case.items())).encode())
    with staged(request, case["server"], case["records"], tmp_path) as stage:
        weather = stage.weather(seed, [FAULTS[case["fault"]]])
        stable = bool(seed % 2)
        twin = make_base(f"memory://storm/{uuid.uuid4().hex}", stable=stable)
        table = make_base(stage.uri, stable=stable, **stage.given)
        outcomes = [contents(twin)]
        try:
            RUNS[case["act"]](twin, COMMIT)
            outcomes.append(contents(twin))
            with weather.during(case["act"]):
                error = attempt(lambda: RUNS[case["act"]](table, COMMIT))
            weather.log.append(f"  → {error!r}")
            check(stage, outcomes if error else outcomes[-1:])
            if error is None:
                assert stage.open().version == twin.version
            append_after(stage, weather)
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}\n{weather.report()}\n{failure}") from failure


def attempt(action: Callable[[], object]) -> lt.LanceTableError | None:
    """Do something, and return the error by which it was refused."""
    try:
        action()
    except lt.LanceTableError as error:
        return error
    return None


def check(stage: Stage, outcomes: list[Contents]) -> lt.Table:
    """Compare what both libraries read with what may be there."""
    table = stage.open()
    found = contents(table)
    assert found in outcomes, f"found {found}, expected one of {outcomes}"
    theirs = stage.rows_by_pylance()
    assert sorted(repr(sorted(row.items())) for row in theirs.to_pylist()) == found.rows
    problems = table.check().problems
    assert not problems, problems
    return table


def append_after(stage: Stage, weather: Weather) -> None:
    """Go on writing with faults, as a user does who was told that something failed."""
    table = stage.open()
    names = set(table.schema.names)
    if not {"id", "x"} <= names or table.schema.field("x").type != "int32":
        return
    rows = rows_from(5000, 4).select([name for name in ("id", "x") if name in names])
    before = contents(table).rows
    with weather.during("append after it"):
        error = attempt(lambda: table.append(rows, commit=COMMIT))
    weather.log.append(f"  → {error!r}")
    after = contents(stage.open()).rows
    added = [row for row in after if "('id', 500" in row]
    assert len(after) - len(before) == len(added)
    assert len(added) in ((0, 4) if error else (4,)), (error, added)
    theirs = stage.rows_by_pylance().num_rows
    assert theirs == len(after)


def test_cases_cover_all_pairs() -> None:
    covered = set().union(*(pairs_of(case) for case in CASES))
    wanted = {
        frozenset({(one, a), (other, b)})
        for one in FACTORS
        for other in FACTORS
        if one < other
        for a in FACTORS[one]
        for b in FACTORS[other]
    }
    assert covered >= wanted
    assert len(CASES) <= len(FACTORS["act"]) * len(FACTORS["fault"]) + 40
