"""After random histories a cleanup leaves every kept version as it was, and nothing else."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.upkeep_machine import UpkeepMachine

SOAK = int(os.environ.get("LANCETABLE_EXAMPLES", "5000")) // 10


@pytest.mark.slow
def test_a_cleanup_keeps_what_is_needed_and_nothing_else() -> None:
    run_state_machine_as_test(
        UpkeepMachine,
        settings=settings(
            max_examples=12, stateful_step_count=20, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.soak
def test_a_cleanup_keeps_what_is_needed_and_nothing_else_at_length() -> None:
    run_state_machine_as_test(
        UpkeepMachine,
        settings=settings(
            max_examples=SOAK, stateful_step_count=50, derandomize=False,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
