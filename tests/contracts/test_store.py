"""What every store owes; each kind of store runs the same tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lancetable.errors import FileNotFoundInStoreError
from lancetable.store import ByteRange, LocalStore, MemoryStore, Store

Make = Callable[[dict[str, bytes]], Store]
BIG = bytes(range(256)) * 1024


@pytest.fixture(params=["local", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a function that fills a store."""

    def local(objects: dict[str, bytes]) -> Store:
        for name, data in objects.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return LocalStore(str(tmp_path))

    return local if request.param == "local" else MemoryStore


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
