"""Check reports nulls in columns that must have none, which reading refuses; repair keeps them."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, TypeVar

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import CorruptError
from lancetable.operations.check.model import CheckResult, Level
from lancetable.operations.check.run import check
from lancetable.store import TableLocation
from lancetable.store.wrap import WrappedStore
from tests.manifests import edit_manifest
from tests.stores import WrappedLocation

DATA = pa.table(
    {
        "a": pa.array([1, None, 3, None], pa.int64()),
        "s": pa.array([{"b": 1}, {"b": None}, {"b": 3}, {"b": 4}]),
        "c": [1, 2, 3, 4],
    }
)
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def make_table(path: Path, version: str = "2.1") -> lt.Table:
    """Make a table whose second fragment has nulls in ``a`` and ``s.b``, which must have none."""
    sound = DATA.filter(pa.compute.is_valid(DATA["a"]))
    table = lt.create_table(path, sound, storage_version=version)
    table.append(DATA)
    forbid(path)
    return lt.open_table(path)


def forbid(path: Path) -> None:
    """Let the latest version say that ``a`` and ``s.b`` have no nulls."""

    def change(message: object) -> None:
        for field in message.fields:  # type: ignore[attr-defined]
            field.nullable = field.name not in {"a", "b"}

    edit_manifest(path, change)


def nulls(found: CheckResult) -> list[str]:
    """Return what is said about nulls, and nothing else is wrong."""
    assert {one.kind for one in found.problems} <= {"nulls"}
    assert all(one.is_damage and one.consequence for one in found.problems)
    return [one.message for one in found.problems]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_nulls_where_there_must_be_none_are_reported(tmp_path: Path, version: str) -> None:
    table = make_table(tmp_path / "t", version)
    with pytest.raises(CorruptError, match="column 'a' holds a null"):
        table.scan(columns=["a"]).to_arrow()
    found = table.maintenance.check(level="data")
    first, second = found.problems
    assert first.path.endswith(table.fragments[1].files[0].path)
    assert (first.fragments, first.versions) == ((1,), (2,))
    assert "column 'a' holds 2 nulls, the first in row 1 of fragment 1" in first.message
    assert "column 's.b' holds 1 null, the first in row 1 of fragment 1" in second.message
    assert "set_nullable" in first.message
    assert found.files == 2
    assert nulls(table.maintenance.check(level="files")) == []
    for column in ("a", "s.b"):
        table.columns.set_nullable(column, nullable=True)
    assert table.maintenance.check(level="data", all_versions=False).is_ok


def test_deleted_rows_do_not_count(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    table.delete("c = 2")
    (message,) = nulls(table.maintenance.check(level="data", all_versions=False))
    assert "column 'a' holds 1 null, the first in row 3 of fragment 1" in message
    table.delete("c = 4")
    assert table.maintenance.check(level="data", all_versions=False).is_ok
    assert len(nulls(table.maintenance.check(level="data"))) == 3
    assert table.scan().to_arrow().num_rows == 4


def test_a_column_that_no_file_holds_is_null_in_every_row(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", {"c": [1, 2, 3]})
    table.columns.add(pa.schema([pa.field("a", pa.int64())]))
    forbid(tmp_path / "t")
    (problem,) = lt.open_table(tmp_path / "t").maintenance.check(level="data").problems
    assert problem.kind == "nulls"
    assert "column 'a' holds 3 nulls, the first in row 0 of fragment 0" in problem.message
    assert ".manifest" in problem.path


def test_a_repair_loses_no_rows_because_of_nulls(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    plan = table.maintenance.repair("data")
    assert not plan.is_needed
    assert [one.kind for one in plan.kept] == ["nulls", "nulls"]
    assert "holds 2 nulls" in plan.explain()


class _Counted(WrappedStore):
    """Notes the paths that are asked for."""

    asked: ClassVar[list[str]] = []

    def call(self, verb: str, path: str, action: Callable[[], _Made]) -> _Made:
        self.asked.append(path)
        return action()


class _Remote:
    """Runs tasks as another process would."""

    def map(self, task: Callable[[_Given], _Made], given: Iterable[_Given]) -> Iterator[_Made]:
        for one in given:
            copy = pickle.loads(pickle.dumps(one))
            yield pickle.loads(pickle.dumps(task(copy)))


def test_workers_and_a_journal_report_the_same(tmp_path: Path) -> None:
    make_table(tmp_path / "t")
    location = TableLocation(str(tmp_path / "t"))
    expected = nulls(check(location, level=Level.DATA))
    assert nulls(check(location, level=Level.DATA, runner=_Remote())) == expected
    journal = str(tmp_path / "journal")
    for _ in range(2):
        assert nulls(check(location, level=Level.DATA, journal=journal)) == expected
    counted = WrappedLocation(str(tmp_path / "t"), wrap=_Counted)
    _Counted.asked.clear()
    assert nulls(check(counted, level=Level.DATA, journal=journal)) == expected
    assert _Counted.asked
    assert not [path for path in _Counted.asked if path.startswith("data/")]


def test_files_without_nulls_are_read_once(tmp_path: Path) -> None:
    requests = []
    for nullable in (True, False):
        path = tmp_path / str(nullable)
        schema = pa.schema([pa.field("a", pa.int64(), nullable=nullable)])
        table = lt.create_table(path, pa.table({"a": range(10)}, schema=schema))
        table.delete("a = 3")
        table.delete("a = 4")
        _Counted.asked.clear()
        assert check(WrappedLocation(str(path), wrap=_Counted), level=Level.DATA).is_ok
        requests.append(sum(one.startswith("data/") for one in _Counted.asked))
    assert requests[0] == requests[1] > 0
