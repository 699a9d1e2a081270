"""What tests of object stores share: places on the servers, and a proxy before one of them."""

from collections.abc import Iterator

import pytest

from tests.servers.moto import Moto
from tests.servers.places import Place
from tests.servers.proxy import Proxy, proxy


@pytest.fixture
def s3(moto_server: Moto) -> Place:
    """A fresh folder on the S3 server."""
    return moto_server.place().fresh()


@pytest.fixture
def between(moto_server: Moto) -> Iterator[Proxy]:
    """A proxy before the S3 server."""
    with proxy(moto_server.port) as running:
        yield running


@pytest.fixture
def via(moto_server: Moto, between: Proxy) -> Place:
    """A fresh folder on the S3 server, reached through the proxy."""
    return moto_server.place(endpoint=between.endpoint).fresh()


@pytest.fixture(params=["s3", "azure"])
def remote(request: pytest.FixtureRequest) -> Place:
    """A fresh folder on each server."""
    place: Place = request.getfixturevalue(request.param)
    return place.fresh()
