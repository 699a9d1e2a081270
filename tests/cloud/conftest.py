"""What tests of object stores share: places on the servers, and a proxy before one of them."""

import re
from collections.abc import Iterator
from dataclasses import replace

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


@pytest.fixture(params=KINDS)
def hurt(request: pytest.FixtureRequest) -> Iterator[tuple[Place, Proxy]]:
    """A fresh folder on each server, reached through a proxy, and the proxy."""
    place = bucket_of(request, request.param)
    port = int(re.search(r"127\.0\.0\.1:(\d+)", str(place.options))[1])  # type: ignore[index]
    with proxy(port) as running:
        moved = {
            name: value.replace(f"127.0.0.1:{port}", f"127.0.0.1:{running.port}")
            for name, value in place.options.items()
        }
        yield replace(place, options=moved).fresh(), running
