"""Tables on a server behind a proxy, with one of the ways to decide who made a version."""

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store.cloud.settings import MiB
from lancetable.store.dynamodb import DynamoManifests
from lancetable.store.manifests import KeyValueManifests
from lancetable.store.sqlite import SqliteManifests
from tests.contracts.test_manifest_store import Pairs
from tests.servers.fixtures import bucket_of
from tests.servers.places import Place
from tests.servers.proxy import Proxy, proxy
from tests.servers.tables import dynamo_table
from tests.storm.weather import Fault, Weather

# Short limits: a storm must not sleep long, and a request that is given up is part of it.
LIMITS = {"max_retries": "4", "retry_timeout": "6", "request_timeout": "1"}
PART = 5 * MiB
"""The smallest part that S3 takes; files that are larger go up in parts."""
RECORDS = ("none", "dynamodb", "sqlite", "pairs", "lock")

_State = TypeVar("_State")


@dataclass(frozen=True)
class Stage:
    """A fresh folder of a server."""

    place: Place
    given: dict[str, Any]
    """Arguments of ``create_table`` and ``open_table``."""
    proxies: list[Proxy]

    @property
    def uri(self) -> str:
        """The address of the table."""
        return self.place.uri

    def open(self, version: int | None = None) -> lt.Table:
        """Open the table by the same way as its writer."""
        return lt.open_table(self.uri, version=version, **self.given)

    def rows_by_pylance(self) -> pa.Table:
        """Read the latest version with pylance, straight from the server."""
        import lance

        return lance.dataset(self.uri, storage_options=self.place.pylance).to_table()

    def weather(self, seed: int, faults: list[Fault]) -> Weather:
        """Return faults for this table, which begin when they are asked for."""
        return Weather(self.proxies, seed, faults)


@contextmanager
def staged(
    request: pytest.FixtureRequest, server: str, records: str, folder: Path
) -> Iterator[Stage]:
    """Put proxies before a server and before its manifest store."""
    with ExitStack() as stack:
        bucket = bucket_of(request, server)
        proxies = [stack.enter_context(proxy(bucket.port))]
        place = bucket.fresh().through(proxies[0].port).having(**LIMITS, part_bytes=str(PART))
        given: dict[str, Any] = {"storage_options": place.options}
        if records == "dynamodb":
            moto = request.getfixturevalue("moto_server")
            proxies.append(stack.enter_context(proxy(moto.port)))
            options = {**moto.place().options, **LIMITS}
            options["dynamodb_endpoint"] = proxies[-1].endpoint
            given["manifest_store"] = DynamoManifests(dynamo_table(moto), options)
        elif records == "sqlite":
            given["manifest_store"] = SqliteManifests(str(folder / f"{uuid.uuid4().hex}.db"))
        elif records == "pairs":
            given["manifest_store"] = KeyValueManifests(Pairs())
        elif records == "lock":
            given["commit_lock"] = _locks()
        yield Stage(place, given, proxies)


def _locks() -> Callable[[int], contextlib.AbstractContextManager[None]]:
    lock = threading.Lock()

    @contextmanager
    def guard(version: int) -> Iterator[None]:
        with lock:
            yield

    return guard


def attempt(action: Callable[[], object]) -> lt.LanceTableError | None:
    """Do something, and return the error by which it was refused."""
    try:
        action()
    except lt.LanceTableError as error:
        return error
    return None


def possible(error: lt.LanceTableError | None, before: _State, after: _State) -> list[_State]:
    """Return what may be there when a change ended like this.

    Only an unknown outcome leaves open whether the change was made. Every other error says that it
    was not: a conflict, a wrong argument, a store that failed before the version was claimed.
    """
    if error is None:
        return [after]
    return [before, after] if isinstance(error, lt.UnknownOutcomeError) else [before]
