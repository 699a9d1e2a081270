"""Every change with every fault: it is there once, or not at all, as its caller is told.

The expected contents come from a twin in memory, on which the same change runs undisturbed.
"""

import base64
import random
import uuid
import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import lancetable as lt
from tests.acts import ACTS, BASE_VERSION, make_base, rows_from
from tests.servers.fixtures import SERVERS
from tests.storm.pairwise import Case, pairs_of, pairwise
from tests.storm.stage import PART, RECORDS, Stage, attempt, possible, staged
from tests.storm.weather import FAULTS, Weather, is_of_parts

pytestmark = [pytest.mark.cloud, pytest.mark.oracle]
Run = Callable[[lt.Table, lt.CommitOptions], Any]
COMMIT = lt.CommitOptions(attempts=5, deadline_seconds=20)
IN_PARTS = "append in parts"
UPLOAD_REQUESTS = 5
EVERYDAY_IN_PARTS = {"LOST_ANSWER"}
LONG = 1000


def _held(table: lt.Table) -> None:
    with table.hold():
        table.count()


def _large_rows() -> pa.Table:
    """Return rows that fill a file of several parts, and that hardly can be compressed."""
    draw = random.Random(PART)
    texts = [base64.b64encode(draw.randbytes(PART)).decode() for _ in range(2)]
    return rows_from(400, 2).set_column(2, "y", pa.array(texts))


RUNS: dict[str, Run] = {
    **{name: act.run for name, act in ACTS.items()},
    "tag": lambda t, c: t.tags.create("first", 1),
    "branch": lambda t, c: t.branches.create("other", 2),
    "cleanup": lambda t, c: t.maintenance.cleanup(older_than=timedelta(0)),
    "hold": lambda t, c: _held(t),
    IN_PARTS: lambda t, c: t.append(_large_rows(), commit=c),
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
        _texts(found),
        found.schema.to_string(),
        repr([sorted(one.items()) for one in settings]),
        repr([tags, branches]),
    )


def _texts(rows: pa.Table) -> list[str]:
    """Return rows in an order of their own, long ones by a checksum."""
    texts = (repr(sorted(row.items())) for row in rows.to_pylist())
    return sorted(text if len(text) < LONG else f"{zlib.crc32(text.encode())}" for text in texts)


@pytest.mark.parametrize("case", _parameters())
def test_a_change_with_faults(request: pytest.FixtureRequest, tmp_path: Path, case: Case) -> None:
    seed = zlib.crc32(repr(sorted(case.items())).encode())
    with staged(request, case["server"], case["records"], tmp_path) as stage:
        weather = stage.weather(seed, [FAULTS[case["fault"]]])
        stable = bool(seed % 2)
        twin = make_base(f"memory://storm/{uuid.uuid4().hex}", stable=stable)
        table = make_base(stage.uri, stable=stable, **stage.given)
        before = contents(twin)
        try:
            RUNS[case["act"]](twin, COMMIT)
            after = contents(twin)
            with weather.during(case["act"]):
                error = attempt(lambda: RUNS[case["act"]](table, COMMIT))
            weather.log.append(f"  → {error!r}")
            check(stage, possible(error, before, after))
            if error is None:
                assert stage.open().version == twin.version
                assert (case["act"] == IN_PARTS) == _has_parts(stage)
            append_after(stage, weather)
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}\n{weather.report()}\n{failure}") from failure


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(name, marks=[] if name in EVERYDAY_IN_PARTS else [pytest.mark.soak])
        for name in FAULTS
    ],
)
def test_an_upload_in_parts_with_faults(
    request: pytest.FixtureRequest, tmp_path: Path, fault: str
) -> None:
    """Each request of an upload is hurt in turn: its begin, its parts and its end."""
    with staged(request, "s3", "none", tmp_path) as stage:
        table = make_base(stage.uri, **stage.given)
        twin = make_base(f"memory://storm/{uuid.uuid4().hex}")
        before = contents(twin)
        RUNS[IN_PARTS](twin, COMMIT)
        after = contents(twin)
        for number in range(UPLOAD_REQUESTS):
            weather = stage.weather(number, [FAULTS[fault]])
            with weather.during(f"{IN_PARTS} {number}", upload=number):
                error = attempt(lambda: RUNS[IN_PARTS](table, COMMIT))
            weather.log.append(f"  → {error!r}")
            try:
                table = check(stage, possible(error, before, after))
                assert weather.hurt, f"the upload has no request {number}"
            except AssertionError as failure:
                raise AssertionError(f"{weather.report()}\n{failure}") from failure
            table.restore(BASE_VERSION)


def _has_parts(stage: Stage) -> bool:
    return any(is_of_parts(one.path) for one in stage.proxies[0].seen)


def check(stage: Stage, outcomes: list[Contents]) -> lt.Table:
    """Compare what both libraries read with what may be there."""
    table = stage.open()
    found = contents(table)
    assert found in outcomes, f"found {found}, expected one of {outcomes}"
    theirs = stage.rows_by_pylance()
    assert _texts(theirs) == found.rows
    problems = table.maintenance.check().problems
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
    assert len(added) in possible(error, 0, 4), (error, added)
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
