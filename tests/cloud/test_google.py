"""Generations of the server that speaks the API of Google before SeaweedFS."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import GCSStore

from tests.servers.google import BUCKET
from tests.servers.places import Place

pytestmark = pytest.mark.cloud
WRITERS = 8


@pytest.fixture
def store(gcs: Place) -> GCSStore:
    """The bucket, through a client of its own."""
    options: Any = gcs.options
    return GCSStore(BUCKET, prefix=gcs.fresh().uri.split("/", 3)[3], config=options)


def _rise(generations: list[str | None]) -> bool:
    numbers = [int(one or 0) for one in generations]
    return numbers == sorted(set(numbers))


def _race(write: Callable[[int], object], refused: type[Exception]) -> list[int]:
    """Write from several threads at once, and return the numbers of those that succeeded."""
    start = threading.Barrier(WRITERS)

    def attempt(number: int) -> bool:
        start.wait()
        try:
            write(number)
        except refused:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        done = pool.map(attempt, range(WRITERS))
        return [number for number, is_done in enumerate(done) if is_done]


def test_one_of_many_creates_an_object(store: GCSStore) -> None:
    for turn in range(10):

        def create(number: int, key: str = f"new/{turn}") -> None:
            store.put(key, b"%d" % number, mode="create", use_multipart=False)

        (winner,) = _race(create, AlreadyExistsError)
        assert store.get(f"new/{turn}").bytes() == b"%d" % winner


def test_one_of_many_replaces_a_generation(store: GCSStore) -> None:
    """The content is the same each time, so that entity tags tell nothing."""
    seen = [store.put("one", b"same", use_multipart=False)["version"]]
    for _ in range(10):

        def replace(_: int, known: str | None = seen[-1]) -> None:
            store.put("one", b"same", mode={"version": known}, use_multipart=False)

        assert len(_race(replace, PreconditionError)) == 1
        seen.append(store.head("one")["version"])
    assert _rise(seen)


def test_generations_rise_with_every_kind_of_change(store: GCSStore) -> None:
    upload = store.put("other", b"0" * 6_000_000, chunk_size=5_242_880)
    seen = [store.put("x", b"1", use_multipart=False)["version"]]
    store.copy("other", "x")
    seen.append(store.head("x")["version"])
    seen.append(store.put("x", b"2" * 6_000_000, chunk_size=5_242_880)["version"])
    store.delete("x")
    seen.append(store.put("x", b"3", mode="create", use_multipart=False)["version"])
    assert _rise(seen)
    assert upload["version"] == store.head("other")["version"]
    assert upload["e_tag"] == store.head("other")["e_tag"]
    assert store.get("x", options={"version": seen[-1]}).bytes() == b"3"
    with pytest.raises(FileNotFoundError):
        store.get("x", options={"version": seen[0]})


def test_metadata_goes_along(store: GCSStore) -> None:
    store.put("x", b"1" * 6_000_000, attributes={"Content-Type": "text/x", "who": "me"})
    store.copy("x", "y")
    for name in ("x", "y"):
        found = store.get(name).attributes
        assert (found["Content-Type"], found["who"]) == ("text/x", "me")
        assert len(found) == 2
    obstore.delete(store, ["x", "y"])
    with pytest.raises(FileNotFoundError):
        store.delete("x")
