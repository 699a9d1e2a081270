"""How do times grow with rows, fragments, versions and columns?

Every case is measured at several sizes; the report draws a curve for each peer.
"""

from dataclasses import replace

import pyarrow as pa

from benchmarks.cases.base import Case, Subject
from benchmarks.cases.compact import compact
from benchmarks.cases.filter import count_filter
from benchmarks.cases.scan import scan_all
from benchmarks.cases.start import open_latest
from benchmarks.cases.take import take
from benchmarks.cases.versions import versions
from benchmarks.cases.write import (
    append_tiny,
    copied,
    create,
    delete,
    empty,
    removed,
    update,
    upsert,
)

ROWS = (100_000, 1_000_000, 10_000_000)
FRAGMENTS = (1, 10, 100, 1_000, 10_000)
VERSIONS = (1, 10, 100, 1_000, 5_000)
COLUMNS = (1, 10, 100, 1_000)


def scan_one(subject: Subject) -> pa.Table:
    """Read one of many columns."""
    return subject.table.scan(["c0"])


def delete_one(subject: Subject) -> int:
    """Delete the row with one key."""
    subject.table.delete("id = 0")
    return subject.peer.open(subject.uri).count()


def upsert_one(subject: Subject) -> int:
    """Merge one row whose key is there."""
    subject.table.upsert(pa.table({"id": pa.array([0], pa.int64()), "val": [0.5]}), "id")
    return subject.peer.open(subject.uri).count()


def _change(name: str, title: str, run: object, sizes: tuple[int, ...]) -> Case:
    case = _growth(name, title, name.split("_")[1], run, sizes)
    return replace(case, repeats=6, prepare=copied, settle=removed, is_change=True)


def _growth(name: str, title: str, table: str, run: object, sizes: tuple[int, ...]) -> Case:
    draws = {"grow_rows_take": 100, "grow_columns_take": 10}.get(name, 0)
    return Case(name, title, table, run, draws=draws, sizes=sizes, quick_sizes=sizes[:2])  # type: ignore[arg-type]


CASES = (
    _growth("grow_rows_scan", "scan all columns, by rows", "rows", scan_all, ROWS),
    _growth("grow_rows_count", "count with a filter, by rows", "rows", count_filter, ROWS),
    _growth("grow_rows_take", "take 100 rows, by rows", "rows", take, ROWS),
    replace(
        _growth("grow_rows_write", "write all columns, by rows", "rows", create, ROWS[:2]),
        repeats=6,
        prepare=empty,
        settle=removed,
    ),
    _change("grow_rows_delete", "delete 1 %, by rows", delete, ROWS),
    _change("grow_rows_update", "update 1 %, by rows", update, ROWS),
    _change("grow_rows_upsert", "upsert 100k rows, by rows", upsert, ROWS),
    _growth("grow_fragments_open", "open, by fragments", "fragments", open_latest, FRAGMENTS),
    _growth("grow_fragments_scan", "scan, by one-row fragments", "fragments", scan_all, FRAGMENTS),
    _growth("grow_versions_open", "open, by versions", "versions", open_latest, VERSIONS),
    replace(
        _growth("grow_versions_list", "list versions, by versions", "versions", versions, VERSIONS),
        repeats=2,
    ),
    _change("grow_fragments_delete", "delete 1 row, by fragments", delete_one, FRAGMENTS),
    _change("grow_fragments_upsert", "upsert 1 row, by fragments", upsert_one, FRAGMENTS),
    _change("grow_fragments_compact", "compact, by one-row fragments", compact, FRAGMENTS[1:4]),
    _change("grow_versions_append", "append one row, by versions", append_tiny, VERSIONS),
    _growth("grow_columns_scan", "scan all columns, by columns", "columns", scan_all, COLUMNS),
    _growth("grow_columns_one", "scan one column, by columns", "columns", scan_one, COLUMNS),
    _growth("grow_columns_take", "take 10 rows, by columns", "columns", take, COLUMNS),
)
