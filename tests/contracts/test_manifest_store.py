"""What every external manifest store owes; each kind runs the same tests."""

import pickle
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lancetable.errors import ExistsError, StoreError
from lancetable.store.dynamodb import DynamoManifests
from lancetable.store.manifests import KeyValueManifests, ManifestEntry, ManifestStore
from lancetable.store.sqlite import SqliteManifests
from tests.servers.tables import dynamo_table

KINDS = ["sqlite", "pairs", pytest.param("dynamodb", marks=pytest.mark.cloud)]


class Pairs:
    """The least that a store of pairs can do."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.lock = threading.Lock()

    def get(self, key: str) -> str | None:
        return self.known.get(key)

    def put_if_absent(self, key: str, value: str) -> bool:
        with self.lock:
            return self.known.setdefault(key, value) is value


@pytest.fixture(params=KINDS)
def manifests(request: pytest.FixtureRequest, tmp_path: Path) -> ManifestStore:
    """An empty external manifest store."""
    if request.param == "sqlite":
        return SqliteManifests(str(tmp_path / "manifests.db"))
    if request.param == "pairs":
        return KeyValueManifests(Pairs())
    server = request.getfixturevalue("moto_server")
    return DynamoManifests(dynamo_table(server), server.place().options)


class TestManifestStoreContract:
    """The tests."""

    def test_a_version_is_recorded_once(self, manifests: ManifestStore) -> None:
        assert isinstance(manifests, ManifestStore)
        first = ManifestEntry(1, "t/_versions/1.manifest-a", 10)
        assert manifests.get("t", 1) is None
        manifests.put_if_absent("t", first)
        with pytest.raises(ExistsError, match="version 1"):
            manifests.put_if_absent("t", first._replace(path="t/_versions/1.manifest-b"))
        found = manifests.get("t", 1)
        assert found is not None
        assert found.path == first.path
        assert manifests.get("t", 2) is None
        assert manifests.get("other", 1) is None

    def test_the_final_path_takes_the_place_of_the_staged_one(
        self, manifests: ManifestStore
    ) -> None:
        if isinstance(manifests, KeyValueManifests):
            pytest.skip("pairs are never changed")
        manifests.put_if_absent("t", ManifestEntry(1, "staged", 10))
        manifests.put_if_present("t", ManifestEntry(1, "final", 10))
        manifests.put_if_present("t", ManifestEntry(2, "nothing to replace", 10))
        assert manifests.get("t", 1) == ManifestEntry(1, "final", 10)
        assert manifests.get("t", 2) is None

    def test_the_latest_is_the_largest_number(self, manifests: ManifestStore) -> None:
        if isinstance(manifests, KeyValueManifests):
            pytest.skip("pairs cannot be searched")
        assert manifests.latest("t") is None
        for version in (9, 10, 2):
            manifests.put_if_absent("t", ManifestEntry(version, str(version)))
        manifests.put_if_absent("u", ManifestEntry(99, "other"))
        assert manifests.latest("t") == ManifestEntry(10, "10")
        manifests.delete("t")
        assert manifests.latest("t") is None
        assert manifests.latest("u") is not None

    def test_sixteen_threads_race_for_one_version(self, manifests: ManifestStore) -> None:
        start = threading.Barrier(16)

        def attempt(number: int) -> str | None:
            start.wait()
            path = f"staged-{number}"
            try:
                manifests.put_if_absent("t", ManifestEntry(1, path))
            except ExistsError:
                return None
            return path

        with ThreadPoolExecutor(16) as pool:
            won = [path for path in pool.map(attempt, range(16)) if path]
        found = manifests.get("t", 1)
        assert found is not None
        assert won == [found.path]

    def test_it_can_be_sent_elsewhere(self, manifests: ManifestStore) -> None:
        if isinstance(manifests, KeyValueManifests):
            pytest.skip("that is up to what is inside")
        manifests.put_if_absent("t", ManifestEntry(1, "staged", 10))
        assert pickle.loads(pickle.dumps(manifests)).latest("t") == ManifestEntry(1, "staged", 10)


@pytest.mark.parametrize(("name", "is_certain"), [("SQLITE_BUSY", True), ("SQLITE_IOERR", False)])
def test_a_failed_commit_of_sqlite_is_certain_only_when_it_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_certain: bool
) -> None:
    manifests = SqliteManifests(str(tmp_path / "manifests.db"))

    class Connection(sqlite3.Connection):
        def commit(self) -> None:
            error = sqlite3.OperationalError(name)
            error.sqlite_errorname = name
            raise error

    real = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, **k, factory=Connection))
        with pytest.raises(StoreError) as caught:
            manifests.put_if_absent("t", ManifestEntry(1, "staged"))
    assert caught.value.is_certain is is_certain
    with pytest.raises(StoreError) as caught:
        SqliteManifests(str(tmp_path)).put_if_absent("t", ManifestEntry(1, "staged"))
    assert caught.value.is_certain
