"""What does a change feed do to rows: the same changes, made to a plain collection of rows."""

from collections import Counter
from typing import Any

import lancetable as lt
from tests.properties.table_machine import TableMachine, _frozen

ADDED = ("_change_type", "_commit_version", "_commit_timestamp")


def check_feed(table: lt.Table, *, stable: bool) -> None:
    """Apply all changes of a table to nothing; what comes out must be its rows."""
    try:
        changes = table.changes(0, with_row_id=stable).to_arrow().to_pylist()
    except lt.UnsupportedError as error:
        assert _has_other_types(table), error
        return
    versions = [change["_commit_version"] for change in changes]
    assert versions == sorted(versions)
    expected = table.scan(with_row_id=stable).to_arrow().to_pylist()
    held: Any = _by_id(changes) if stable else _by_value(changes)
    if stable:
        assert held == {row["_rowid"]: _frozen(row) for row in expected}
    else:
        assert held == Counter(map(_frozen, expected))
    start = table.version // 2
    rest = [change for change in changes if change["_commit_version"] > start]
    assert table.changes(start, with_row_id=stable).to_arrow().to_pylist() == rest


def _has_other_types(table: lt.Table) -> bool:
    """Say whether a column once had a type that has nothing to do with that of today."""
    now = {field.name: field.type for field in table.schema}
    kinds = {
        (str(now[field.name]).rpartition("_")[2], str(field.type).rpartition("_")[2])
        for version in range(1, table.version)
        for field in lt.open_table(table.uri, version=version).schema
        if field.name in now
    }
    return any(one.rstrip("0123456789") != other.rstrip("0123456789") for one, other in kinds)


def _by_value(changes: list[dict[str, Any]]) -> Counter[Any]:
    held: Counter[Any] = Counter()
    for change in changes:
        kind, row = _parts(change)
        if kind in {"insert", "update_postimage"}:
            held[row] += 1
        else:
            assert held[row] > 0, f"{kind} of a row that is not there: {row}"
            held[row] -= 1
    return +held


def _by_id(changes: list[dict[str, Any]]) -> dict[int, Any]:
    held: dict[int, Any] = {}
    before: dict[int, Any] = {}
    version = 0
    for change in changes:
        kind, row = _parts(change)
        id_ = change["_rowid"]
        if change["_commit_version"] != version:
            assert not before, f"version {version} has a pre-image without a post-image"
            version = change["_commit_version"]
        if kind == "insert":
            assert id_ not in held
            held[id_] = row
        elif kind == "update_postimage":
            del before[id_]
            held[id_] = row
        else:
            assert held.pop(id_) == row, f"another {kind} than the row that was there"
            if kind == "update_preimage":
                before[id_] = row
    assert not before
    return held


def _parts(change: dict[str, Any]) -> tuple[str, Any]:
    return change["_change_type"], _frozen({k: v for k, v in change.items() if k not in ADDED})


class FollowedMachine(TableMachine):
    """Random changes; at the end the feed of several versions is applied."""

    def teardown(self) -> None:
        if self.is_settled:
            for version in sorted({*list(self.history)[::5], self.version}):
                check_feed(lt.open_table(self.uri, version=version), stable=self.stable)
        super().teardown()
