"""What every store owes; each kind of store runs the same tests."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lancetable.errors import ExistsError, FileNotFoundInStoreError
from lancetable.store import ByteRange, LocalStore, Store
from lancetable.store.memory import MemoryStore
from tests.servers.fixtures import bucket_of
from tests.servers.places import Place

Make = Callable[[dict[str, bytes]], Store]
BIG = bytes(range(256)) * 1024


KINDS = [
    "local",
    "local, staged",
    "memory",
    "objects",
    pytest.param("s3", marks=pytest.mark.cloud),
    pytest.param("gcs", marks=pytest.mark.cloud),
    pytest.param("azure", marks=pytest.mark.cloud),
    pytest.param("minio", marks=[pytest.mark.cloud, pytest.mark.servers]),
    pytest.param("versitygw", marks=[pytest.mark.cloud, pytest.mark.servers]),
]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a function that fills a store."""

    def local(objects: dict[str, bytes]) -> Store:
        for name, data in objects.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return LocalStore(str(tmp_path))

    if request.param == "local, staged":
        monkeypatch.setattr("lancetable.store.new_file._NAMELESS", 0)
    if request.param.startswith("local"):
        return local
    if request.param == "memory":
        return MemoryStore
    if request.param == "objects":
        place = Place("memory://contract")
    else:
        place = bucket_of(request, request.param)
    store = place.fresh("a table").open()

    def remote(objects: dict[str, bytes]) -> Store:
        for name, data in objects.items():
            store.put(name, data)
        return store

    return remote


class TestStoreContract:
    """The tests."""

    @pytest.mark.parametrize("content", [b"", b"x", BIG], ids=["empty", "small", "mapped"])
    def test_objects_are_read_whole_and_in_ranges(self, make: Make, content: bytes) -> None:
        store = make({"a/b.bin": content})
        assert store.read("a/b.bin") == content
        file = store.open("a/b.bin")
        assert file.size == len(content)
        half = len(content) // 2
        ranges = [ByteRange(0, len(content)), ByteRange(half, len(content)), ByteRange(half, half)]
        found = [bytes(view) for view in file.read_ranges(ranges)]
        assert found == [content, content[half:], b""]

    def test_ranges_come_back_in_the_order_they_were_asked_for(self, make: Make) -> None:
        file = make({"big": BIG}).open("big")
        places = [70_000, 3, 200_000, 3]
        found = file.read_ranges([ByteRange(place, place + 5) for place in places])
        assert [bytes(view) for view in found] == [BIG[place : place + 5] for place in places]

    def test_no_ranges_are_no_work(self, make: Make) -> None:
        assert make({"x": b"abc"}).open("x").read_ranges([]) == []

    def test_a_known_size_changes_nothing(self, make: Make) -> None:
        store = make({"x": b"abc"})
        assert store.open("x", size=3).size == 3

    @pytest.mark.parametrize("known", [1, 2, 4, 60_000, 100_000])
    def test_a_local_file_is_read_whole_whatever_its_size_was(
        self, known: int, tmp_path: Path
    ) -> None:
        for length in (0, 3, 70_000):
            content = BIG[:length]
            (tmp_path / "x").write_bytes(content)
            file = LocalStore(str(tmp_path)).open("x", size=known)
            (found,) = file.read_ranges([ByteRange(0, file.size)])
            assert bytes(found) == content

    def test_missing_objects_have_an_error_of_their_own(self, make: Make) -> None:
        store = make({"a/b": b"x"})
        for path in ("nothing", "a/nothing", "a/b/c", "a"):
            with pytest.raises(FileNotFoundInStoreError, match=path):
                store.read(path)
            with pytest.raises(FileNotFoundInStoreError, match=path):
                store.open(path)

    def test_existence_is_told(self, make: Make) -> None:
        store = make({"a/b": b""})
        assert store.exists("a/b")
        assert not store.exists("a/c")
        assert not store.exists("b")
        assert not store.exists("a/b/c")

    def test_listing_goes_to_any_depth_and_stays_below_the_folder(self, make: Make) -> None:
        objects = {"data/a": b"1", "data/b/c": b"22", "database/d": b"3", "e": b""}
        store = make(objects)
        assert {(e.path, e.size) for e in store.list("data")} == {("data/a", 1), ("data/b/c", 2)}
        assert {e.path for e in store.list("data/")} == {"data/a", "data/b/c"}
        assert {e.path for e in store.list("")} == set(objects)
        assert list(store.list("nothing")) == []

    def test_listed_paths_can_be_read(self, make: Make) -> None:
        store = make({"x/y z/é.bin": b"1", "x/%2F": b"2"})
        assert {store.read(entry.path) for entry in store.list("x")} == {b"1", b"2"}

    def test_views_outlive_the_file(self, make: Make) -> None:
        store = make({"big": BIG})
        (view,) = store.open("big").read_ranges([ByteRange(1000, 1010)])
        assert bytes(view) == BIG[1000:1010]
        assert view.readonly

    def test_new_objects_appear_when_they_are_closed(self, make: Make) -> None:
        store = make({})
        file = store.create("data/new.bin")
        file.write([b"abc", memoryview(b"def"), bytearray(b"g")])
        file.write([b"h"])
        file.close()
        assert store.read("data/new.bin") == b"abcdefgh"

    def test_an_aborted_object_is_not_there(self, make: Make) -> None:
        store = make({})
        file = store.create("data/new.bin")
        file.write([b"abc"])
        file.abort()
        assert not store.exists("data/new.bin")
        file = store.create("data/other.bin")
        file.write([b"abc"])
        file.close()
        file.abort()
        assert not store.exists("data/other.bin")

    def test_objects_are_replaced_copied_and_removed(self, make: Make) -> None:
        store = make({"a": b"1"})
        store.put("a", b"22")
        store.put_loosely("a", b"333")
        store.copy("a", "b/c")
        assert (store.read("a"), store.read("b/c")) == (b"333", b"333")
        store.delete("a")
        store.delete("a")
        assert not store.exists("a")
        with pytest.raises(FileNotFoundInStoreError):
            store.copy("a", "d")

    def test_an_object_is_created_once(self, make: Make) -> None:
        store = make({})
        store.require_atomic_creation()
        store.put_if_absent("v/1", b"first")
        with pytest.raises(ExistsError, match="v/1"):
            store.put_if_absent("v/1", b"second")
        assert store.read("v/1") == b"first"
        assert {entry.path for entry in store.list("")} == {"v/1"}

    def test_sixteen_threads_race_for_one_name(self, make: Make) -> None:
        store = make({})
        for round_ in range(3):
            outcome = race(store, f"v/{round_}", 16)
            assert len(outcome) == 1
            assert store.read(f"v/{round_}") == outcome[0]

    def test_four_processes_race_for_one_name(self, make: Make) -> None:
        store = make({})
        if isinstance(store, MemoryStore) or store.root.startswith("memory:"):
            pytest.skip("the memory of a process is its own")
        program = "from tests.contracts.test_store import race_from; race_from()"
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            for _ in range(4)
        ]
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(pickle.dumps(store))
            worker.stdin.flush()
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n"
        won = [worker.communicate(b"go\n")[0].split() for worker in workers]
        names = [name for names in won for name in names]
        assert sorted(names) == sorted(f"v/{number}".encode() for number in range(RACES))

    def test_the_first_names_are_told_in_order(self, make: Make) -> None:
        store = make({f"v/{number:03d}": b"" for number in (5, 1, 3)} | {"w/0": b""})
        found = store.first("v")
        assert (found is not None) == store.lists_in_order
        if found is not None:
            assert [entry.path for entry in found] == ["v/001", "v/003", "v/005"]


RACES = 5


def race(store: Store, path: str, count: int) -> list[bytes]:
    """Let many threads create one object; return what the winners wrote."""
    start = threading.Barrier(count)

    def attempt(number: int) -> bytes | None:
        content = b"%d" % number
        start.wait()
        try:
            store.put_if_absent(path, content)
        except ExistsError:
            return None
        return content

    with ThreadPoolExecutor(count) as pool:
        return [won for won in pool.map(attempt, range(count)) if won is not None]


def race_from() -> None:
    """Try to create a few objects in a store that comes as a pickle; print those that were ours."""
    store: Store = pickle.load(sys.stdin.buffer)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.buffer.readline()
    for number in range(RACES):
        try:
            store.put_if_absent(f"v/{number}", os.urandom(8))
        except ExistsError:
            continue
        sys.stdout.write(f"v/{number}\n")
