"""Faults that the storm found, each by itself."""

import contextlib
from pathlib import Path

import pytest

import lancetable as lt
from tests.servers.proxy import Harm
from tests.storm.stage import staged

pytestmark = pytest.mark.cloud


def test_a_recorded_version_whose_repetition_is_refused(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """DynamoDB records the version, the answer is lost, and all repetitions are refused."""
    with staged(request, "s3", "dynamodb", tmp_path) as stage:
        table = lt.create_table(stage.uri, {"id": [1]}, **stage.given)
        attempts: list[str] = []

        def choose(method: str, path: str) -> Harm:
            if path != "/PutItem":
                return Harm.NONE
            attempts.append(path)
            return Harm.RESET_AFTER if len(attempts) == 1 else Harm.DENIED

        stage.proxies[1].choose = choose
        with contextlib.suppress(lt.UnknownOutcomeError):
            table.append({"id": [2]})
        assert len(attempts) > 1
        stage.proxies[1].heal()
        found = stage.open()
        assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 2]
        assert found.maintenance.check().is_ok
