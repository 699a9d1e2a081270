"""Every change that a user can make to a table, once, in a form that tests can combine.

They all fit :func:`make_base`: three fragments of ten rows, one column of them in files of its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancetable as lt

BASE_VERSION = 4
ONCE = lt.CommitOptions(attempts=1)


def make_base(path: Path | str, *, stable: bool = False, **given: Any) -> lt.Table:
    """Create the table that all acts fit."""
    table = lt.create_table(path, rows_from(0, 10), stable_row_ids=stable, **given)
    table.append(rows_from(10, 10))
    table.append(rows_from(20, 10))
    table.columns.add({"w": "id + 1"})
    assert table.version == BASE_VERSION
    return table


@dataclass(frozen=True)
class Act:
    """A change, the row of the matrix that it belongs to, and the rows of fragment 0 it takes."""

    kind: str
    run: Callable[[lt.Table, lt.CommitOptions], Any]
    rows: frozenset[int] = frozenset()


def rows_from(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "x": pa.array(numbers, pa.int32()),
            "y": pa.array([f"y{number}" for number in numbers]),
        }
    )


def _merge(table: lt.Table, ids: list[int], commit: lt.CommitOptions) -> Any:
    source = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array(ids, pa.int32())})
    builder = table.merge(source, on="id", commit=commit)
    return builder.when_matched_update({"x": "source.x + 500"}).when_not_matched_insert_all()


def _new_column(name: str) -> pa.Table:
    return rows_from(900, 1).append_column(name, pa.array([1], pa.int64()))


ACTS: dict[str, Act] = {
    "append": Act("Append", lambda t, c: t.append(rows_from(100, 3), commit=c)),
    "append with a column": Act(
        "Merge pres", lambda t, c: t.append(_new_column("n"), merge_schema=True, commit=c)
    ),
    "overwrite": Act("Overwrite", lambda t, c: t.overwrite(rows_from(200, 2), commit=c)),
    "overwrite where": Act(
        "Update rows f0",
        lambda t, c: t.overwrite(rows_from(300, 2), where="id < 2", check=False, commit=c),
        frozenset({0, 1}),
    ),
    "delete rows": Act(
        "Delete rows f0", lambda t, c: t.delete("id in (2, 3)", commit=c), frozenset({2, 3})
    ),
    "delete rows elsewhere": Act("Delete rows f1", lambda t, c: t.delete("id = 12", commit=c)),
    "delete a fragment": Act(
        "Delete frag f0", lambda t, c: t.delete("id < 10", commit=c), frozenset(range(10))
    ),
    "truncate": Act("Delete frag f0", lambda t, c: t.truncate(commit=c), frozenset(range(10))),
    "update": Act(
        "Update rows f0",
        lambda t, c: t.update({"x": "x + 1000"}, "id in (4, 5)", commit=c),
        frozenset({4, 5}),
    ),
    "update elsewhere": Act(
        "Update rows f1", lambda t, c: t.update({"x": "-1"}, "id = 14", commit=c)
    ),
    "update columns": Act(
        "Update cols f0",
        lambda t, c: t.update({"x": "7"}, "id in (6, 7)", mode="columns", commit=c),
        frozenset(range(10)),
    ),
    "merge": Act(
        "Update rows f0",
        lambda t, c: _merge(t, [8, 70, 71], c).execute(),
        frozenset({8}),
    ),
    "merge the same keys": Act("Update rows f1", lambda t, c: _merge(t, [18, 71, 72], c).execute()),
    "add nulls": Act("Merge pres", lambda t, c: t.columns.add(pa.field("a", pa.int32()), commit=c)),
    "add computed": Act("Merge pres", lambda t, c: t.columns.add({"b": "x * 2"}, commit=c)),
    "cast": Act("Merge", lambda t, c: t.columns.cast("x", pa.int64(), commit=c)),
    "drop": Act("Project pres", lambda t, c: t.columns.drop(["y"], commit=c)),
    "rename": Act("Project pres", lambda t, c: t.columns.rename("y", "z", commit=c)),
    "reorder": Act("Project pres", lambda t, c: t.columns.reorder(["y", "w", "x", "id"], commit=c)),
    "forbid nulls": Act(
        "Project", lambda t, c: t.columns.set_nullable("x", nullable=False, commit=c)
    ),
    "restore": Act("Restore", lambda t, c: t.restore(1, commit=c)),
    "config k": Act("UpdateConfig k", lambda t, c: t.config.update({"k": "1"}, commit=c)),
    "config j": Act("UpdateConfig j", lambda t, c: t.config.update({"j": "1"}, commit=c)),
    "field metadata": Act(
        "UpdateConfig field", lambda t, c: t.columns.update_metadata({"x": {"f": "1"}}, commit=c)
    ),
    "schema metadata": Act(
        "UpdateConfig schema", lambda t, c: t.schema_metadata.update({"s": "1"}, commit=c)
    ),
    "table metadata": Act(
        "UpdateConfig tmeta", lambda t, c: t.metadata.update({"m": "1"}, commit=c)
    ),
    "replace in shared files": Act(
        "Update cols f0", lambda t, c: t.columns.replace({"y": "concat(y, '!')"}, commit=c)
    ),
    "compact": Act("Rewrite f0", lambda t, c: t.compact(commit=c)),
    "compact sorted": Act(
        "Rewrite f0", lambda t, c: t.compact(where="id < 20", sort_by=["y"], commit=c)
    ),
    "replace": Act("DataReplacement f0 y", lambda t, c: t.columns.replace({"w": "id"}, commit=c)),
    "index": Act(
        "CreateIndex id f0-2", lambda t, c: t.indices.create("x", "btree", replace=True, commit=c)
    ),
}


def by_turns(names: Iterable[str]) -> list[Any]:
    """Pair each name with both kinds of tables; one of the two waits for the long runs."""
    return [
        pytest.param(
            name, stable, marks=[pytest.mark.soak] if stable != bool(number % 2) else [],
            id=f"{name}, {'stable ids' if stable else 'addresses'}",
        )
        for number, name in enumerate(names)
        for stable in (False, True)
    ]  # fmt: skip
