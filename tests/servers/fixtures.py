"""One server of each kind per test process, started when the first test asks for it."""

import importlib.util
from collections.abc import Iterator

import pytest

from tests.servers.places import Place
from tests.servers.s3 import S3Server
from tests.servers.seaweed import Seaweed

# The servers that need no tool but Python's packages come first.
SERVERS = ("s3", "gcs", "azure", "minio", "versitygw")
KINDS = [
    pytest.param(name, marks=[pytest.mark.servers] if name in {"minio", "versitygw"} else [])
    for name in SERVERS
]


def bucket_of(request: pytest.FixtureRequest, kind: str) -> Place:
    """Return the bucket of the server of a kind."""
    server = request.getfixturevalue("s3_server" if kind == "s3" else kind)
    place: Place = server.place() if isinstance(server, S3Server) else server
    return place


def _require(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"the server needs {module}; `make test` installs it")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Seaweed]:
    """The S3 server: SeaweedFS."""
    _require("boto3")
    from tests.servers.seaweed import seaweed

    with seaweed() as server:
        yield server


@pytest.fixture(scope="session")
def moto_server() -> Iterator[object]:
    """The DynamoDB server, which speaks S3 too: moto."""
    _require("moto", "boto3", "flask")
    from tests.servers import moto

    with moto.running() as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[Place]:
    """A container of an Azure server: Azurite."""
    from tests.servers.emulators import azurite

    with azurite() as place:
        yield place


@pytest.fixture(scope="session")
def minio() -> Iterator[S3Server]:
    """A MinIO server."""
    _require("boto3")
    from tests.servers.emulators import minio

    with minio() as server:
        yield server


@pytest.fixture(scope="session")
def versitygw() -> Iterator[S3Server]:
    """A versitygw server."""
    _require("boto3")
    from tests.servers.emulators import versitygw

    with versitygw() as server:
        yield server


@pytest.fixture(scope="session")
def gcs(s3_server: S3Server) -> Iterator[Place]:
    """A bucket of a Google server: a front of our own before the S3 server."""
    from tests.servers.google import google

    with google(s3_server) as place:
        yield place
