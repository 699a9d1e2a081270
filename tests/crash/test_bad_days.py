"""Sources that fail, full disks, closed folders, odd file systems: an error, nothing changed."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store import TableLocation, new_file
from tests.acts import ACTS, make_base, rows_from
from tests.crash.aftermath import check_whole, files_below, state

USUAL = lt.CommitOptions(attempts=3)
WRITING = [name for name in ACTS if "metadata" not in name and "config" not in name]


@pytest.fixture
def table(tmp_path: Path) -> lt.Table:
    """A table that all acts fit."""
    return make_base(tmp_path / "t", stable=True)


def unchanged(
    table: lt.Table, change: Callable[[], Any], error: type[Exception], text: str
) -> None:
    """Check that a change fails with an error and leaves no trace."""
    folder = Path(table.uri)
    before, rows = files_below(folder), state(table)
    version = table.version
    with pytest.raises(error, match=text):
        change()
    assert files_below(folder) == before
    assert table.version == version
    again = check_whole(TableLocation(table.uri))
    assert again.version == version
    assert state(again) == rows
    again.append(rows_from(700, 1))
    assert again.version == version + 1


class BrokenSourceError(Exception):
    """What a user's own iterator raises."""


def broken(batches: int) -> Iterator[pa.RecordBatch]:
    """Yield some batches, then fail."""
    for number in range(batches):
        yield rows_from(1000 + number * 10, 10).to_batches()[0]
    raise BrokenSourceError("the source broke")


@pytest.mark.parametrize("batches", [0, 1, 5])
@pytest.mark.parametrize("way", ["append", "overwrite", "overwrite where", "merge", "new column"])
def test_an_iterator_raises(table: lt.Table, way: str, batches: int) -> None:
    ways: dict[str, Callable[[], Any]] = {
        "append": lambda: table.append(broken(batches), max_rows_per_file=15),
        "overwrite": lambda: table.overwrite(broken(batches), max_rows_per_file=15),
        "overwrite where": lambda: table.overwrite(
            broken(batches), where="id < 3", max_rows_per_file=15
        ),
        "merge": lambda: (
            table.merge(broken(batches), on="id", max_rows_per_file=15)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        ),
        "new column": lambda: table.append(
            broken(batches), merge_schema=True, max_rows_per_file=15
        ),
    }
    unchanged(table, ways[way], BrokenSourceError, "the source broke")


def test_a_reader_raises(table: lt.Table) -> None:
    reader = pa.RecordBatchReader.from_batches(rows_from(0, 1).schema, broken(2))
    # Arrow carries the error of the generator through as it is.
    unchanged(table, lambda: table.append(reader), BrokenSourceError, "the source broke")


def test_a_function_for_new_columns_raises(table: lt.Table) -> None:
    def fails(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.column("id")[0].as_py() >= 20:
            raise BrokenSourceError("the function broke")
        return pa.record_batch({"new": batch.column("id")})

    unchanged(table, lambda: table.columns.add(fails), BrokenSourceError, "the function broke")


@pytest.mark.parametrize("batches", [0, 2])
def test_an_iterator_raises_while_a_table_is_created(tmp_path: Path, batches: int) -> None:
    with pytest.raises(BrokenSourceError):
        lt.create_table(tmp_path / "new", broken(batches), max_rows_per_file=7)
    assert files_below(tmp_path) == set()
    assert lt.create_table(tmp_path / "new", rows_from(0, 2)).version == 1


def _full_after(calls: int, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Let the system refuse to write after some calls, for good."""
    left = [calls]

    def refuse(descriptor: int, *_: object) -> int:
        raise OSError(code, os.strerror(code))

    def writev(descriptor: int, parts: Any) -> int:
        left[0] -= 1
        return real_writev(descriptor, parts) if left[0] >= 0 else refuse(descriptor)

    def write(descriptor: int, data: Any) -> int:
        left[0] -= 1
        return real_write(descriptor, data) if left[0] >= 0 else refuse(descriptor)

    real_writev, real_write = os.writev, os.write
    monkeypatch.setattr("lancetable.store.local.os.writev", writev)
    monkeypatch.setattr("lancetable.store.local.os.write", write)


@pytest.mark.parametrize("name", WRITING)
def test_the_disk_is_full(table: lt.Table, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(table.uri)
    before, rows, version = files_below(folder), state(table), table.version
    for calls in range(60):
        with monkeypatch.context() as patch:
            _full_after(calls, patch, errno.ENOSPC)
            handle = lt.open_table(table.uri)
            try:
                ACTS[name].run(handle, USUAL)
            except lt.StoreError as error:
                assert "No space left" in str(error)
                assert files_below(folder) == before
            else:
                break
        again = check_whole(TableLocation(table.uri))
        assert (again.version, state(again)) == (version, rows)
    assert calls > 0
    assert check_whole(TableLocation(table.uri)).version == version + 1


def test_the_disk_is_full_while_a_table_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for calls in range(20):
        with monkeypatch.context() as patch:
            _full_after(calls, patch, errno.ENOSPC)
            try:
                lt.create_table(tmp_path / "t", rows_from(0, 50))
            except lt.StoreError as error:
                assert "No space left" in str(error)
            else:
                break
        assert files_below(tmp_path) == set()
    assert lt.open_table(tmp_path / "t").count() == 50


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere"
)
@pytest.mark.parametrize("closed", ["data", "_versions", "_transactions", "_deletions"])
def test_a_folder_may_not_be_written(table: lt.Table, closed: str) -> None:
    table.delete("id = 29")
    folder = Path(table.uri) / closed
    before, rows, version = files_below(Path(table.uri)), state(table), table.version
    mode = folder.stat().st_mode
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(lt.StoreError, match="ermission"):
            table.update({"x": "1"}, "id = 3")
        assert files_below(Path(table.uri)) == before
    finally:
        folder.chmod(mode)
    again = check_whole(TableLocation(table.uri))
    assert (again.version, state(again)) == (version, rows)


@pytest.mark.parametrize("closed", ["data", "_versions", "_transactions"])
def test_the_system_denies_a_new_file(
    table: lt.Table, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, also for the superuser: opening a file for writing is what is denied."""
    real = os.open

    def denied(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY) and f"/{closed}/" in f"{path}/":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, flags, *more, **options)

    folder = Path(table.uri)
    before, rows, version = files_below(folder), state(table), table.version
    for name in ("append", "update", "merge", "add computed", "restore"):
        with monkeypatch.context() as patch:
            patch.setattr("lancetable.store.local.os.open", denied)
            handle = lt.open_table(table.uri)
            if closed == "data" and name == "restore":
                continue
            with pytest.raises(lt.StoreError, match="Permission denied"):
                ACTS[name].run(handle, USUAL)
        assert files_below(folder) == before
        again = check_whole(TableLocation(table.uri))
        assert (again.version, state(again)) == (version, rows)


@pytest.mark.parametrize("name", ACTS)
def test_nothing_is_written_behind_a_damaged_list_of_fragments(table: lt.Table, name: str) -> None:
    """The version opens, as it is only looked at where needed; no change builds on it."""
    folder = Path(table.uri)
    newest = min((folder / "_versions").glob("*.manifest"))
    content = bytearray(newest.read_bytes())
    # The length of the path of a data file stands right before it.
    content[content.rindex(table.fragments[-1].files[0].path.encode()) - 1] += 100
    newest.write_bytes(content)
    before = files_below(folder)
    handle = lt.open_table(table.uri)
    with pytest.raises(lt.CorruptError, match="list of fragments is damaged"):
        ACTS[name].run(handle, USUAL)
    assert files_below(folder) == before
    problem = next(one for one in lt.check_table(table.uri).problems if one.kind == "manifest")
    assert (problem.path, problem.versions) == (str(newest), (table.version,))
    assert lt.repair_table(table.uri).base.version == table.version - 1


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has no hard links."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("lancetable.store.local.os.link", refuse)


@pytest.mark.usefixtures("without_links")
@pytest.mark.parametrize("name", ACTS)
def test_a_file_system_without_hard_links(table: lt.Table, name: str) -> None:
    version = table.version
    ACTS[name].run(table, USUAL)
    again = check_whole(TableLocation(table.uri))
    assert again.version == table.version == version + 1
    assert not [one for one in files_below(Path(table.uri)) if ".tmp" in one]


@pytest.mark.usefixtures("without_links")
def test_without_hard_links_one_of_two_writers_gets_the_version(table: lt.Table) -> None:
    store = TableLocation(table.uri).open()
    store.put_if_absent("_versions/probe", b"first")
    with pytest.raises(lt.ExistsError):
        store.put_if_absent("_versions/probe", b"second")
    assert store.read("_versions/probe") == b"first"


@pytest.mark.usefixtures("without_links")
@pytest.mark.parametrize("name", WRITING)
def test_a_file_system_that_can_name_nothing_safely_is_refused(
    table: lt.Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither links nor a rename that does not replace: an error, the table as it was."""
    monkeypatch.setattr("lancetable.store.new_file._rename", lambda *_: errno.EINVAL)
    folder = Path(table.uri)
    before, rows, version = files_below(folder), state(table), table.version
    with pytest.raises(lt.StoreError, match="neither hard links nor a rename"):
        ACTS[name].run(table, USUAL)
    assert files_below(folder) == before
    again = check_whole(TableLocation(table.uri))
    assert (again.version, state(again)) == (version, rows)


@pytest.mark.usefixtures("without_links")
def test_a_new_table_is_refused_where_nothing_can_be_named_safely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lancetable.store.new_file._rename", lambda *_: errno.ENOSYS)
    with pytest.raises(lt.StoreError, match="put the table on another file system"):
        lt.create_table(tmp_path / "t", rows_from(0, 5))
    assert files_below(tmp_path) == set()


class Death(BaseException):
    """The process ends here: nothing that follows may touch the disk."""


@pytest.mark.usefixtures("without_links")
def test_without_hard_links_a_writer_dies_while_it_commits(
    table: lt.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead at any step of a commit: the table opens, and the next writer goes on."""
    rows, version = state(table), table.version
    real_writev, real_unlink, real_rename = os.writev, os.unlink, new_file._rename
    deaths = made = 0
    for calls in range(8):
        left = [calls]

        def step(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Death

        def writev(descriptor: int, parts: Any, step: Callable[[], None] = step) -> int:
            step()
            return real_writev(descriptor, parts)

        def renamed(source: bytes, target: bytes, step: Callable[[], None] = step) -> int:
            step()
            code = real_rename(source, target)
            step()
            return code

        def unlink(path: Any, left: list[int] = left) -> None:
            if left[0] < 0:
                raise Death
            real_unlink(path)

        with monkeypatch.context() as patch:
            patch.setattr("lancetable.store.local.os.writev", writev)
            patch.setattr("lancetable.store.local.os.unlink", unlink)
            patch.setattr("lancetable.store.new_file._rename", renamed)
            try:
                lt.open_table(table.uri).config.update({"k": str(calls)})
            except Death:
                deaths += 1
        again = check_whole(TableLocation(table.uri))
        assert state(again)[:2] == rows[:2]
        assert again.version - version in {0, 1}
        made += again.version - version
        again.config.update({"next": str(calls)})
        version = again.version
    # Transaction, manifest without a name and under another, before its own name and after it;
    # then it is alive to the end.
    without_a_name = 1 if new_file._NAMELESS else 0
    assert (deaths, made) == (4 + without_a_name, 8 - 3 - without_a_name)


@pytest.mark.skipif(not new_file._NAMELESS, reason="this system has no files without a name")
def test_a_writer_that_dies_before_the_name_leaves_no_manifest(
    table: lt.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = Path(table.uri) / "_versions"
    before = files_below(versions)

    def die(*_: object, **__: object) -> None:
        raise Death

    with monkeypatch.context() as patch:
        patch.setattr("lancetable.store.new_file.os.link", die)
        with pytest.raises(Death):
            table.append(rows_from(100, 1))
    assert files_below(versions) == before
    table.append(rows_from(100, 1))
    check_whole(TableLocation(table.uri))


@pytest.mark.parametrize("name", WRITING)
def test_the_system_fails_after_the_name_was_given(
    table: lt.Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer gets lost: what stands under the name tells that the version was made, once."""
    real, calls = os.link, []

    def linked_and_failed(*names: Any, **options: Any) -> None:
        calls.append(names)
        real(*names, **options)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    version = table.version
    with monkeypatch.context() as patch:
        patch.setattr("lancetable.store.new_file.os.link", linked_and_failed)
        ACTS[name].run(table, USUAL)
    assert len(calls) == 1
    assert table.version == version + 1
    assert check_whole(TableLocation(table.uri)).version == table.version


@pytest.mark.parametrize("name", ACTS)
def test_a_system_without_nameless_files(
    table: lt.Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lancetable.store.new_file._NAMELESS", 0)
    version = table.version
    ACTS[name].run(table, USUAL)
    again = check_whole(TableLocation(table.uri))
    assert again.version == table.version == version + 1
    assert not [one for one in files_below(Path(table.uri)) if ".tmp" in one]


def test_an_interrupt_after_the_version_was_made_removes_nothing_of_it(
    table: lt.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the manifest and the end of the call: the version is there and whole."""
    real = os.link
    for name in WRITING:
        handle = lt.open_table(table.uri)

        def linked_and_interrupted(*names: Any, **options: Any) -> None:
            real(*names, **options)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("lancetable.store.local.os.link", linked_and_interrupted)
            with pytest.raises(KeyboardInterrupt):
                ACTS[name].run(handle, USUAL)
        made = check_whole(TableLocation(table.uri))
        assert made.version == handle.version + 1
        made.restore(4)


def test_the_folder_cannot_be_synced_after_the_version_was_made(
    table: lt.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With durability fsync: an error of the last step must not cost the files of the version."""
    real = os.fsync
    for name in WRITING:
        handle = lt.open_table(table.uri, durability="fsync")
        linked: list[bool] = []
        real_link = os.link

        def link(*names: Any, _linked: list[bool] = linked, **options: Any) -> None:
            real_link(*names, **options)
            _linked.append(True)

        def fsync(descriptor: int, _linked: list[bool] = linked) -> None:
            if _linked and stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr("lancetable.store.local.os.link", link)
            patch.setattr("lancetable.store.local.os.fsync", fsync)
            try:
                ACTS[name].run(handle, USUAL)
            except lt.LanceTableError:
                pass
        made = check_whole(TableLocation(table.uri))
        made.restore(4)
        assert check_whole(TableLocation(table.uri)).version == made.version


@pytest.mark.parametrize("name", ["append", "merge", "compact", "add computed"])
def test_what_fails_after_the_version_was_made_removes_nothing_of_it(
    table: lt.Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    table.config.update({"lance.auto_cleanup.interval": "1"})
    version = table.version
    monkeypatch.setattr("lancetable.operations.cleanup.run.cleanup", fail)
    monkeypatch.setattr("lancetable.operations.compact.run._remove_unused", fail)
    monkeypatch.setattr("lancetable.commit.publish.spread", fail)
    ACTS[name].run(table, USUAL)
    assert check_whole(TableLocation(table.uri)).version == table.version == version + 1
