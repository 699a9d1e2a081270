"""The random changes of tests/properties, on tables in object stores that the environment names."""

import shutil

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

import lancetable as lt
from tests.properties.table_machine import TableMachine
from tests.servers.places import Place

pytestmark = [pytest.mark.cloud, pytest.mark.slow]
_slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
VARIABLES = {"aws_endpoint": "AWS_ENDPOINT_URL", "allow_http": "AWS_ALLOW_HTTP"}


@pytest.fixture(params=["s3", "azure"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place that is reached by what the environment says."""
    remote: Place = request.getfixturevalue(request.param).fresh()
    for name, value in remote.options.items():
        monkeypatch.setenv(VARIABLES.get(name, name.upper()), value)
    return Place(remote.uri)


def run(
    place: Place, examples: int, steps: int, machine: type[TableMachine] = TableMachine
) -> None:
    """Run the machine on tables of a store."""

    class RemoteMachine(machine):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            shutil.rmtree(self.folder, ignore_errors=True)
            self.uri = place.fresh().uri

    run_state_machine_as_test(
        RemoteMachine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, suppress_health_check=_slow
        ),
    )


def test_random_changes_of_a_remote_table(place: Place) -> None:
    run(place, 2, 8)


@pytest.mark.soak
def test_random_changes_of_a_remote_table_at_length(place: Place) -> None:
    run(place, 60, 20)


@pytest.mark.oracle
@pytest.mark.soak
def test_both_libraries_change_a_remote_table(place: Place) -> None:
    from tests.oracle.test_alternating import AlternatingMachine

    run(place, 20, 12, AlternatingMachine)


def test_the_environment_is_read(place: Place) -> None:
    lt.create_table(place.uri, {"id": [1, 2]})
    assert lt.open_table(place.uri).count() == 2
