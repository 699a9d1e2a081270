"""The change feed is the difference of snapshots, for random histories."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.feed_model import FollowedMachine

SOAK = int(os.environ.get("LANCETABLE_EXAMPLES", "5000")) // 10
_slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.mark.slow
def test_changes_lead_from_nothing_to_every_version() -> None:
    run_state_machine_as_test(
        FollowedMachine,
        settings=settings(max_examples=15, stateful_step_count=15, suppress_health_check=_slow),
    )


@pytest.mark.soak
def test_changes_lead_from_nothing_to_every_version_at_length() -> None:
    run_state_machine_as_test(
        FollowedMachine,
        settings=settings(
            max_examples=SOAK, stateful_step_count=40, derandomize=False,
            suppress_health_check=_slow,
        ),
    )  # fmt: skip
