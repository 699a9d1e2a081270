"""Stores that carry out a request and answer that they did not, one of each kind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lancetable.commit.location.external import ExternalStore, LockedStore
from lancetable.commit.versions import load
from lancetable.errors import ExistsError, FileNotFoundInStoreError, StoreError
from lancetable.store import Store, TableLocation
from lancetable.store.manifests import KeyValueManifests, ManifestEntry, ManifestStore
from lancetable.store.memory import MemoryStore
from lancetable.store.sqlite import SqliteManifests
from tests.contracts.test_manifest_store import Pairs
from tests.stores import MisleadingStore

_T = TypeVar("_T")

ANSWERS: dict[str, Callable[[str], Exception]] = {
    "exists": ExistsError,
    "lost": StoreError,
    "missing": FileNotFoundInStoreError,
    "odd": RuntimeError,
}
"""What a store says after it has done its work; a certain failure it may not say."""


class Place(TableLocation):
    """A location that always opens the same store."""

    def __init__(self, store: Store) -> None:
        super().__init__("memory:")
        self.store = store

    def open(self) -> Store:
        return self.store


@dataclass
class Fault:
    """Which call is answered wrongly, and how."""

    number: int
    answer: Callable[[str], Exception]
    calls: int = 0

    @property
    def has_struck(self) -> bool:
        return self.calls > self.number

    def strike(self, what: str) -> None:
        """Answer the call that was just carried out."""
        self.calls += 1
        if self.calls - 1 == self.number:
            raise self.answer(f"{what} was done, and is answered wrongly on purpose")


class MisleadingManifests:
    """An external manifest store that records a version and answers wrongly.

    With ``reader`` the version is finished before the answer: somebody opens the table.
    """

    def __init__(self, inner: ManifestStore, fault: Fault, reader: Callable[[], object]) -> None:
        self._inner = inner
        self._fault = fault
        self._reader = reader

    def get(self, base: str, version: int) -> ManifestEntry | None:
        return self._inner.get(base, version)

    def latest(self, base: str) -> ManifestEntry | None:
        return self._inner.latest(base)

    def put_if_absent(self, base: str, entry: ManifestEntry) -> None:
        self._inner.put_if_absent(base, entry)
        self._reader()
        self._fault.strike("put_if_absent")

    def put_if_present(self, base: str, entry: ManifestEntry) -> None:
        self._inner.put_if_present(base, entry)

    def delete(self, base: str) -> None:
        self._inner.delete(base)


@dataclass(frozen=True)
class Scene:
    """A place that misleads, the same place for an honest reader, and the fault."""

    place: TableLocation
    honest: TableLocation
    fault: Any


def plain(objects: dict[str, bytes], fault: Fault, _: Path) -> Scene:
    inner = MemoryStore(objects)
    store = MisleadingStore(inner, frozenset({"put_if_absent"}), fault.number, fault.answer)
    return Scene(Place(store), Place(inner), _Struck(lambda: store.has_misled))


@dataclass(frozen=True)
class _Struck:
    ask: Callable[[], bool]

    @property
    def has_struck(self) -> bool:
        return self.ask()


def _external(
    objects: dict[str, bytes], fault: Fault, manifests: ManifestStore, *, is_finished: bool
) -> Scene:
    inner = MemoryStore(objects)
    honest = Place(ExternalStore(inner, manifests, "t"))

    def read() -> None:
        if is_finished:
            load(honest)

    misleading = MisleadingManifests(manifests, fault, read)
    return Scene(Place(ExternalStore(inner, misleading, "t")), honest, fault)


def sqlite(objects: dict[str, bytes], fault: Fault, folder: Path) -> Scene:
    manifests = SqliteManifests(str(folder / "manifests.db"))
    return _external(objects, fault, manifests, is_finished=False)


def sqlite_read(objects: dict[str, bytes], fault: Fault, folder: Path) -> Scene:
    manifests = SqliteManifests(str(folder / "manifests.db"))
    return _external(objects, fault, manifests, is_finished=True)


def pairs(objects: dict[str, bytes], fault: Fault, _: Path) -> Scene:
    return _external(objects, fault, KeyValueManifests(Pairs()), is_finished=False)


def pairs_read(objects: dict[str, bytes], fault: Fault, _: Path) -> Scene:
    return _external(objects, fault, KeyValueManifests(Pairs()), is_finished=True)


def locked_put(objects: dict[str, bytes], fault: Fault, _: Path) -> Scene:
    """The answer to the write under the lock is wrong."""
    inner = MemoryStore(objects)

    class Manifests(MisleadingStore):
        def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
            return super().call(verb, path, action) if "_versions/" in path else action()

    store = Manifests(inner, frozenset({"put"}), fault.number, fault.answer)
    locked = LockedStore(store, lambda _: no_lock())
    return Scene(Place(locked), Place(inner), _Struck(lambda: store.has_misled))


def locked_release(objects: dict[str, bytes], fault: Fault, _: Path) -> Scene:
    """The lock cannot be released after the write."""
    inner = MemoryStore(objects)

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        yield
        fault.strike(f"version {version}")

    return Scene(Place(LockedStore(inner, lock)), Place(inner), fault)


@contextmanager
def no_lock() -> Iterator[None]:
    yield


KINDS: dict[str, Callable[[dict[str, bytes], Fault, Path], Scene]] = {
    "plain": plain,
    "sqlite": sqlite,
    "sqlite, finished by a reader": sqlite_read,
    "pairs": pairs,
    "pairs, finished by a reader": pairs_read,
    "lock, write": locked_put,
    "lock, release": locked_release,
}
