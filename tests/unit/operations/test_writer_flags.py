"""A table whose writers need something unknown can be read; whatever writes or removes refuses."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import UnsupportedError
from tests.manifests import edit_manifest

ROWS = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": ["x", "y", "z"]})
LATER = 1 << 40


def set_flag(message: object) -> None:
    """Set a writer flag of a later release."""
    message.writer_feature_flags |= LATER  # type: ignore[attr-defined]


class Given(NamedTuple):
    """What was made before the flag was set, and a folder for something new."""

    fragments: lt.NewFragments
    prepared: lt.PreparedTransaction[lt.DeleteResult]
    path: str


def _merge(table: lt.Table) -> object:
    return table.merge(ROWS, on="a").when_not_matched_insert_all().execute()


Change = Callable[[lt.Table, Given], object]
CHANGES: dict[str, Change] = {
    "append": lambda t, _: t.append(ROWS),
    "overwrite": lambda t, _: t.overwrite(ROWS),
    "overwrite where": lambda t, _: t.overwrite(ROWS, where="a < 9"),
    "truncate": lambda t, _: t.truncate(),
    "create over it": lambda t, _: lt.create_table(t.uri, ROWS, mode="overwrite"),
    "delete": lambda t, _: t.delete("a = 1"),
    "delete of no row": lambda t, _: t.delete("a = 100"),
    "update": lambda t, _: t.update({"a": "a + 1"}, "a = 2"),
    "update of a column": lambda t, _: t.update({"a": "a + 1"}, mode="columns"),
    "merge": lambda t, _: _merge(t),
    "prepared delete": lambda t, _: t.delete_uncommitted("a = 1"),
    "prepared update": lambda t, _: t.update_uncommitted({"a": "a + 1"}, "a = 2"),
    "commit of a prepared delete": lambda t, given: t.commit_prepared(given.prepared),
    "fragments": lambda t, _: t.write_fragments(ROWS),
    "commit of fragments": lambda t, given: t.commit_fragments([given.fragments]),
    "add columns": lambda t, _: t.columns.add({"c": "a + 1"}),
    "add empty columns": lambda t, _: t.columns.add(pa.schema([pa.field("c", pa.int64())])),
    "drop columns": lambda t, _: t.columns.drop(["b"]),
    "rename a column": lambda t, _: t.columns.rename("b", "c"),
    "reorder columns": lambda t, _: t.columns.reorder(["b", "a"]),
    "allow nulls": lambda t, _: t.columns.set_nullable("a", nullable=False),
    "cast a column": lambda t, _: t.columns.cast("a", pa.int32()),
    "compact": lambda t, _: t.compact(),
    "restore": lambda t, _: t.restore(1),
    "config": lambda t, _: t.config.update({"k": "v"}),
    "metadata": lambda t, _: t.metadata.update({"k": "v"}),
    "schema metadata": lambda t, _: t.schema_metadata.update({"k": "v"}),
    "field metadata": lambda t, _: t.columns.update_metadata({"a": {"k": "v"}}),
    "bases": lambda t, given: t.bases.add({"other": given.path}),
    "stable row ids": lambda t, _: t.maintenance.enable_stable_row_ids(),
    "cleanup": lambda t, _: t.maintenance.cleanup(older_than=timedelta(0)),
    "plan of a cleanup": lambda t, _: t.maintenance.cleanup(older_than=timedelta(0), dry_run=True),
    "repair": lambda t, _: t.maintenance.repair(),
    "repair of a closed table": lambda t, _: lt.repair_table(t.uri),
    "clone": lambda t, given: t.clone(given.path),
    "deep clone": lambda t, given: t.clone(given.path, deep=True),
    "create a tag": lambda t, _: t.tags.create("new"),
    "create a tag of an older version": lambda t, _: t.tags.create("new", 1),
    "move a tag": lambda t, _: t.tags.move("tag"),
    "move a tag to an older version": lambda t, _: t.tags.move("tag", 2),
    "describe a tag": lambda t, _: t.tags.describe("tag", {"k": "v"}),
    "delete a tag": lambda t, _: t.tags.delete("tag"),
    "create a branch": lambda t, _: t.branches.create("new"),
    "create a branch of an older version": lambda t, _: t.branches.create("new", 1),
    "describe a branch": lambda t, _: t.branches.describe("branch", {"k": "v"}),
    "delete a branch": lambda t, _: t.branches.delete("branch"),
    "fast-forward": lambda t, _: t.branches.fast_forward("ahead"),
    "cherry-pick": lambda t, _: t.branches.cherry_pick("branch"),
}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    table = lt.create_table(path, ROWS)
    table.append(ROWS)
    table.tags.create("tag", 1)
    table.branches.create("branch", 1).append(ROWS)
    table.delete("a = 3")
    table.branches.create("ahead").append(ROWS)
    return path


def files(path: Path) -> dict[str, bytes]:
    """Return all files below a folder but leases, with their contents."""
    found = (one for one in path.rglob("*") if one.is_file() and "lease" not in str(one))
    return {str(one): one.read_bytes() for one in found}


@pytest.mark.parametrize("name", CHANGES)
def test_an_unknown_writer_flag_stops_everything_that_writes_or_removes(
    uri: str, tmp_path: Path, name: str
) -> None:
    table = lt.open_table(uri)
    fragments, prepared = table.write_fragments(ROWS), table.delete_uncommitted("a = 2")
    given = Given(fragments, prepared, str(tmp_path / "c"))
    edit_manifest(uri, set_flag)
    before = files(tmp_path)
    table = lt.open_table(uri)
    assert table.scan().to_arrow().num_rows == 4
    with pytest.raises(UnsupportedError, match="writer feature flag"):
        CHANGES[name](table, given)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.branches.delete("branch"),
        lambda table: table.branches.describe("branch", {"k": "v"}),
        lambda table: table.tags.create("new", 1, branch="branch"),
        lambda table: table.tags.move("tag", 2, branch="branch"),
        lambda table: table.checkout(branch="branch").append(ROWS),
    ],
    ids=["delete", "describe", "tag", "move", "append"],
)
def test_an_unknown_writer_flag_of_a_branch_protects_it(
    uri: str, tmp_path: Path, change: Callable[[lt.Table], object]
) -> None:
    edit_manifest(tmp_path / "t/tree/branch", set_flag)
    before = files(tmp_path)
    with pytest.raises(UnsupportedError, match="writer feature flag"):
        change(lt.open_table(uri))
    assert files(tmp_path) == before


def test_a_reader_of_such_a_table_may_hold_its_version(uri: str) -> None:
    edit_manifest(uri, set_flag)
    table = lt.open_table(uri)
    with table.hold():
        assert table.count() == 4
    assert table.maintenance.check(level="data").is_ok


def test_names_of_a_table_whose_latest_version_is_damaged_can_go(uri: str, tmp_path: Path) -> None:
    table = lt.open_table(uri, version=2)
    newest = lt.open_table(uri)._snapshot.manifest_path
    (tmp_path / "t" / newest).write_bytes(b"damaged")
    assert table.tags.delete("tag").version == 1
    assert table.branches.delete("branch") is not None
