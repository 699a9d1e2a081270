"""Links and pipes on a local disk, and disks whose files are not mapped."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import CorruptError, FileNotFoundInStoreError, InputError, LanceTableError
from lancetable.store import ByteRange, LocalStore, TableLocation
from lancetable.store.opened import CopiedFile, is_remote, is_remote_kind
from tests.hostile.crafted import SECRET, watched

ROWS = pa.table({"a": list(range(10)), "s": ["x" * 20] * 10})
LARGE = pa.table({"a": pa.array(range(50_000))})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    place = tmp_path / "t.lance"
    lt.create_table(place, ROWS)
    return place


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the user with one file; nothing in it may change or be read."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "notes.txt").write_bytes(SECRET)
    return folder


def untouched(victim: Path) -> bool:
    return [(path.name, path.read_bytes()) for path in victim.iterdir()] == [("notes.txt", SECRET)]


def moved_out(folder: Path, victim: Path) -> Path:
    """Move a folder of a table out of it, and leave a link."""
    outside = victim.parent / f"outside-{folder.name}"
    folder.rename(outside)
    folder.symlink_to(outside)
    return outside


def test_a_hint_that_is_a_link_is_replaced(table: Path, victim: Path) -> None:
    hint = table / "_versions" / "latest_version_hint.json"
    hint.unlink(missing_ok=True)
    hint.symlink_to(victim / "notes.txt")
    opened = lt.open_table(table)
    opened.append(ROWS)
    assert untouched(victim)
    assert not hint.is_symlink()
    assert lt.open_table(table).count() == 20


def test_a_hint_that_is_another_name_of_a_file_is_replaced(table: Path, victim: Path) -> None:
    hint = table / "_versions" / "latest_version_hint.json"
    hint.unlink(missing_ok=True)
    os.link(victim / "notes.txt", hint)
    lt.open_table(table).append(ROWS)
    assert untouched(victim)
    assert lt.open_table(table).count() == 20


def test_deleting_a_branch_removes_nothing_outside(table: Path, victim: Path) -> None:
    opened = lt.open_table(table)
    opened.branches.create("dev")
    outside = moved_out(table / "tree" / "dev", victim)
    (outside / "data").mkdir(exist_ok=True)
    (outside / "data" / "mine.lance").write_bytes(SECRET)
    before = sorted(outside.rglob("*"))
    with pytest.raises(LanceTableError):
        opened.branches.delete("dev")
    assert sorted(outside.rglob("*")) == before


def test_deleting_a_branch_removes_nothing_below_a_link_in_it(table: Path, victim: Path) -> None:
    opened = lt.open_table(table)
    opened.branches.create("dev")
    (table / "tree" / "dev" / "more").symlink_to(victim)
    opened.branches.delete("dev")
    assert untouched(victim)
    assert "dev" not in opened.branches


@pytest.mark.parametrize("folder", ["_versions", "data", "_transactions"])
def test_writes_do_not_follow_a_folder_that_is_a_link(
    table: Path, victim: Path, folder: str
) -> None:
    opened = lt.open_table(table)
    outside = moved_out(table / folder, victim)
    before = sorted(outside.iterdir())
    for handle in (lambda: opened, lambda: lt.open_table(table)):
        with pytest.raises(LanceTableError, match=r"link leads to .* allow=\["):
            handle().append(ROWS)
    assert sorted(outside.iterdir()) == before
    allowed = lt.open_table(table, allow=[str(victim.parent)])
    allowed.append(ROWS)
    assert allowed.scan().to_arrow().num_rows == 20
    assert len(sorted(outside.iterdir())) > len(before)


def test_a_cleanup_removes_nothing_outside(table: Path, victim: Path) -> None:
    opened = lt.open_table(table)
    (table / "data" / "far").symlink_to(victim)
    opened.append(ROWS)
    opened.maintenance.cleanup(older_than=timedelta(0), unverified_after=timedelta(0))
    assert untouched(victim)
    (table / "_deletions").symlink_to(victim)
    with pytest.raises(InputError, match="link leads to"):
        opened.maintenance.cleanup()
    assert untouched(victim)


@pytest.mark.parametrize("read", ["scan", "take", "check"])
def test_a_data_file_that_is_a_link_is_not_read(table: Path, victim: Path, read: str) -> None:
    (data,) = (table / "data").glob("*.lance")
    data.unlink()
    data.symlink_to(victim / "notes.txt")
    opened = lt.open_table(table)
    acts: dict[str, Callable[[], object]] = {
        "scan": lambda: opened.scan().to_arrow(),
        "take": lambda: opened.take([0]),
    }
    with watched() as seen:
        if read == "check":
            assert opened.maintenance.check(level="data").problems
        else:
            with pytest.raises(InputError, match="link leads to"):
                acts[read]()
    assert not [path for path in seen if "notes.txt" in path]


def test_files_that_are_links_are_read_when_allowed(table: Path, tmp_path: Path) -> None:
    """Caches of downloads keep the files elsewhere, and links to them in the table."""
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    for number, path in enumerate(sorted(table.rglob("*"))):
        if path.is_file():
            path.rename(blobs / str(number))
            path.symlink_to(blobs / str(number))
    with pytest.raises(InputError, match="allow"):
        lt.open_table(table)
    opened = lt.open_table(table, allow=[str(blobs)])
    assert opened.scan().to_arrow() == ROWS
    assert opened.maintenance.check(level="data").problems == ()
    assert [one.version for one in opened.versions()] == [1]


def test_the_root_may_be_reached_through_links(table: Path, tmp_path: Path) -> None:
    (tmp_path / "door").symlink_to(table)
    opened = lt.open_table(tmp_path / "door")
    opened.append(ROWS)
    opened.branches.create("dev").append(ROWS)
    opened.tags.create("one", 1)
    assert lt.open_table(tmp_path / "door", branch="dev").count() == 30
    opened.branches.delete("dev")
    opened.maintenance.cleanup()
    assert lt.open_table(table).count() == 20


@pytest.mark.parametrize("name", ["_versions/{manifest}", "data/{data}", "hint"])
def test_a_pipe_is_no_file(table: Path, name: str) -> None:
    """Opening a pipe for reading waits until somebody writes into it."""
    (manifest,) = (table / "_versions").glob("*.manifest")
    (data,) = (table / "data").glob("*.lance")
    path = table / name.format(manifest=manifest.name, data=data.name)
    if name == "hint":
        path = table / "_versions" / "latest_version_hint.json"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    if name == "hint":
        opened = lt.open_table(table)
        opened.append(ROWS)
        assert lt.open_table(table).count() == 20
        return
    with pytest.raises(CorruptError, match="not a regular file"):
        lt.open_table(table).scan().to_arrow()


@pytest.mark.parametrize("target", ["self", "broken"])
def test_loops_and_broken_links_are_told(table: Path, target: str) -> None:
    store = LocalStore(str(table))
    link = table / "data" / "loop"
    link.symlink_to(link if target == "self" else table / "nowhere")
    with pytest.raises(InputError, match="link leads to"):
        store.read("data/loop")
    with pytest.raises(InputError, match="link leads to"):
        store.exists("data/loop")
    assert "data/loop" in {entry.path for entry in store.list("data")}
    store.delete("data/loop")
    assert not link.is_symlink()
    with pytest.raises(FileNotFoundInStoreError):
        store.read("data")


def test_files_are_read_without_mapping_them(tmp_path: Path) -> None:
    made = lt.create_table(tmp_path / "t", LARGE)
    made.delete("a % 7 = 0")
    copied = lt.open_table(tmp_path / "t", storage_options={"local_reads": "copied"})
    assert copied.scan().to_arrow() == made.scan().to_arrow()
    assert copied.take([5, 9_000]) == made.take([5, 9_000])
    store = TableLocation(str(tmp_path / "t"), {"local_reads": "copied"}).open()
    (name,) = (entry.path for entry in store.list("data"))
    file = store.open(name)
    assert isinstance(file, CopiedFile)
    (start, end) = file.read_ranges([ByteRange(0, 4), ByteRange(file.size - 4, file.size)])
    assert bytes(end) == b"LANC"
    assert len(start) == 4
    with pytest.raises(InputError, match="local_reads is 'x'; use"):
        lt.open_table(tmp_path / "t", storage_options={"local_reads": "x"})


def test_network_disks_are_told_apart(tmp_path: Path) -> None:
    assert [is_remote_kind(kind) for kind in ("nfs4", "cifs", "fuse.sshfs", "9p")] == [True] * 4
    assert [is_remote_kind(kind) for kind in ("ext4", "xfs", "tmpfs", "fuseblk")] == [False] * 4
    assert isinstance(is_remote(tmp_path.stat().st_dev), bool)
    assert not is_remote(0xFFFF)
