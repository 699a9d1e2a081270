"""A table is created with faults: it is there whole, or it can be created again."""

from pathlib import Path

import pytest

import lancetable as lt
from tests.servers.fixtures import SERVERS
from tests.storm.model import rows_of, table_of
from tests.storm.stage import RECORDS, attempt, possible, staged
from tests.storm.weather import FAULTS

pytestmark = [pytest.mark.cloud, pytest.mark.oracle]
ROWS = {key: key for key in range(5)}
EVERYDAY = {"LOST_ANSWER", "TWICE", "RESET_AFTER_then_DENIED"}


CASES = [
    pytest.param(
        name,
        server,
        RECORDS[(number + place) % len(RECORDS)],
        marks=[] if name in EVERYDAY and server == "s3" else [pytest.mark.soak],
    )
    for number, name in enumerate(FAULTS)
    for place, server in enumerate(SERVERS)
]


@pytest.mark.parametrize(("name", "server", "records"), CASES)
def test_a_table_is_created_with_faults(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, server: str, records: str
) -> None:
    with staged(request, server, records, tmp_path) as stage:
        weather = stage.weather(len(name), [FAULTS[name]])
        with weather.during("create"):
            error = attempt(lambda: lt.create_table(stage.uri, table_of(ROWS), **stage.given))
        missing = attempt(stage.open)
        is_there = missing is None
        assert is_there or isinstance(missing, lt.TableNotFoundError), missing
        assert is_there in possible(error, before=False, after=True), (error, weather.report())
        if not is_there:
            lt.create_table(stage.uri, table_of(ROWS), **stage.given)
        table = stage.open()
        assert table.version == 1, weather.report()
        assert rows_of(table.scan().to_arrow()) == ROWS
        assert rows_of(stage.rows_by_pylance()) == ROWS
        assert table.maintenance.check().is_ok
