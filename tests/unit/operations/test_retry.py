"""Trying again: what results tell of it, which options mean nothing, and tables that are gone."""

import shutil

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import ConflictError, InputError, StoreError, VersionNotFoundError


@pytest.fixture
def table(tmp_path):
    return lt.create_table(tmp_path / "t", {"id": [1, 2, 3], "v": [10, 20, 30]})


def test_work_that_is_done_again_is_counted(table):
    stale = lt.open_table(table.uri)
    table.update({"v": "v + 1"}, "id = 1")
    result = stale.update({"v": "v * 2"}, "id = 1")
    assert (result.version, result.rows, result.attempts) == (3, 1, 2)
    assert {row["id"]: row["v"] for row in stale.scan().to_arrow().to_pylist()}[1] == 22
    assert stale.update({"v": "0"}).attempts == 1


def test_one_attempt_is_one(table):
    stale = lt.open_table(table.uri)
    table.update({"v": "v + 1"}, "id = 1")
    with pytest.raises(ConflictError, match="do the work again"):
        stale.update({"v": "v * 2"}, "id = 1", commit=lt.CommitOptions(attempts=1))


@pytest.mark.parametrize(
    "options", [{"attempts": 0}, {"deadline_seconds": -1.0}, {"deadline_seconds": float("nan")}]
)
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(InputError, match="give a"):
        lt.CommitOptions(**options)


def test_a_table_that_was_removed_does_not_come_back_in_pieces(table):
    stale = lt.open_table(table.uri)
    shutil.rmtree(table.uri)
    for change in (
        lambda: stale.append({"id": [4]}),
        lambda: stale.config.update({"a": "b"}),
        lambda: stale.columns.drop(["v"]),
    ):
        with pytest.raises(VersionNotFoundError, match="version 1, which the change builds on"):
            change()
    with pytest.raises(lt.TableNotFoundError):
        lt.open_table(table.uri)


def test_a_table_cannot_be_made_inside_a_file(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        lt.create_table(tmp_path / "file", pa.table({"a": [1]}))
    assert (tmp_path / "file").read_bytes() == b"x"
