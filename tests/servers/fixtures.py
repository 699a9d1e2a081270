"""One server of each kind per test process, started when the first test asks for it."""

import importlib.util
from collections.abc import Iterator

import pytest

from tests.servers.places import Place


@pytest.fixture(scope="session")
def moto_server() -> Iterator[object]:
    """An S3 and DynamoDB server."""
    for module in ("moto", "boto3", "flask"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"the S3 server needs {module}; `make test` installs it")
    from tests.servers import moto

    with moto.running() as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[Place]:
    """A container of an Azure server."""
    from tests.servers.emulators import azurite

    with azurite() as place:
        yield place
