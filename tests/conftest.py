"""What every test may rely on: the golden tables, and how hard hypothesis tries."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.servers.fixtures import azure, gcs, minio, moto_server, s3_server, versitygw

__all__ = ["azure", "gcs", "minio", "moto_server", "s3_server", "versitygw"]

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"

_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", _patient, max_examples=50, derandomize=True)
settings.register_profile("ci", _patient, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of frozen tables and files."""
    return GOLDEN


@pytest.fixture(scope="session")
def history() -> str:
    """A small table of six versions with deletions, an added column and a tag."""
    return str(GOLDEN / "history.lance")


@pytest.fixture(scope="session", autouse=True)
def _nobody_else_writes() -> Iterator[None]:
    """Let cleanups go on at once; they wait only for commits of others that are under way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lancetable.operations.cleanup.run.SETTLE_SECONDS", 0.0)
        yield
