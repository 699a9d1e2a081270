"""A lock of the user keeps writers apart where nothing else does."""

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.location.external import LockedStore
from lancetable.commit.versions import load
from lancetable.store import Store, TableLocation
from lancetable.store.memory import MemoryStore


class PlainStore(MemoryStore):
    """A store that knows no conditions."""

    def put_if_absent(self, path: str, content: bytes) -> None:
        self.put(path, content)

    def require_atomic_creation(self) -> None:
        raise lt.UnsupportedError("this store cannot tell who was first")


class Place(TableLocation):
    def __init__(self, uri: str, *, store: Store) -> None:
        super().__init__(uri)
        self.store = store

    def open(self) -> Store:
        return self.store


def test_eight_writers_with_a_lock_lose_nothing() -> None:
    lock = threading.Lock()
    versions: list[int] = []

    @contextlib.contextmanager
    def guard(version: int) -> Iterator[None]:
        with lock:
            versions.append(version)
            yield

    place = Place("memory:", store=LockedStore(PlainStore(), guard))
    from lancetable.operations.create import create

    create(place, pa.table({"id": [0]}))

    def write(number: int) -> None:
        for step in range(4):
            lt.Table(place, load(place)).append(pa.table({"id": [number * 10 + step + 1]}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    table = lt.Table(place, load(place))
    found = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert found == sorted([0, *(n * 10 + s + 1 for n in range(8) for s in range(4))])
    assert table.version == 33
    assert set(versions) == set(range(1, 34))


def test_a_store_without_conditions_is_refused_without_one() -> None:
    from lancetable.operations.create import create

    store = PlainStore()
    with pytest.raises(lt.UnsupportedError):
        create(Place("memory:", store=store), pa.table({"id": [0]}))
    assert not store.objects


def test_the_lock_is_an_option_of_the_table(tmp_path) -> None:
    seen: list[int] = []

    @contextlib.contextmanager
    def guard(version: int) -> Iterator[None]:
        seen.append(version)
        yield

    uri = str(tmp_path / "table")
    lt.create_table(uri, pa.table({"id": [1]}), commit_lock=guard).append(pa.table({"id": [2]}))
    assert seen == [1, 2]
    assert lt.open_table(uri).count() == 2
