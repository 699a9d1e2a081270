"""Random changes of a table are equal to the same changes of a list of rows."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.table_machine import TableMachine

EXAMPLES = 25
STEPS = 20
SOAK = int(os.environ.get("LANCETABLE_EXAMPLES", "5000")) // 10
_slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.mark.slow
def test_random_changes_equal_a_list_of_rows() -> None:
    run_state_machine_as_test(
        TableMachine,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, suppress_health_check=_slow
        ),
    )


@pytest.mark.soak
def test_random_changes_equal_a_list_of_rows_at_length() -> None:
    run_state_machine_as_test(
        TableMachine,
        settings=settings(
            max_examples=SOAK, stateful_step_count=50, derandomize=False,
            suppress_health_check=_slow,
        ),
    )  # fmt: skip
