"""What tests of object stores share: places on the servers, and a proxy before one of them."""

from collections.abc import Iterator

import pytest

from tests.servers.fixtures import KINDS, bucket_of
from tests.servers.places import Place
from tests.servers.proxy import Proxy, proxy
from tests.servers.s3 import S3Server


@pytest.fixture
def s3(s3_server: S3Server) -> Place:
    """A fresh folder on the S3 server."""
    return s3_server.place().fresh()


@pytest.fixture
def between(s3_server: S3Server) -> Iterator[Proxy]:
    """A proxy before the S3 server."""
    with proxy(s3_server.port) as running:
        yield running


@pytest.fixture
def via(s3_server: S3Server, between: Proxy) -> Place:
    """A fresh folder on the S3 server, reached through the proxy."""
    return s3_server.place(endpoint=between.endpoint).fresh()


@pytest.fixture(params=KINDS)
def remote(request: pytest.FixtureRequest) -> Place:
    """A fresh folder on each server."""
    return bucket_of(request, request.param).fresh()
