"""How do times grow with rows, fragments, versions and columns?

Every case is measured at several sizes; the report draws a curve for each peer.
"""

import pyarrow as pa

from benchmarks.cases.base import Case, Subject
from benchmarks.cases.filter import count_filter
from benchmarks.cases.scan import scan_all
from benchmarks.cases.start import open_latest
from benchmarks.cases.take import take
from benchmarks.cases.write import append_tiny, copied, removed

ROWS = (100_000, 1_000_000, 10_000_000)
FRAGMENTS = (1, 10, 100, 1_000, 10_000)
VERSIONS = (1, 10, 100, 1_000, 5_000)
COLUMNS = (1, 10, 100, 1_000)


def scan_one(subject: Subject) -> pa.Table:
    """Read one of many columns."""
    return subject.table.scan(["c0"])


def _growth(name: str, title: str, table: str, run: object, sizes: tuple[int, ...]) -> Case:
    draws = {"grow_rows_take": 100, "grow_columns_take": 10}.get(name, 0)
    return Case(name, title, table, run, draws=draws, sizes=sizes, quick_sizes=sizes[:2])  # type: ignore[arg-type]


CASES = (
    _growth("grow_rows_scan", "scan all columns, by rows", "rows", scan_all, ROWS),
    _growth("grow_rows_count", "count with a filter, by rows", "rows", count_filter, ROWS),
    _growth("grow_rows_take", "take 100 rows, by rows", "rows", take, ROWS),
    _growth("grow_fragments_open", "open, by fragments", "fragments", open_latest, FRAGMENTS),
    _growth("grow_fragments_scan", "scan, by one-row fragments", "fragments", scan_all, FRAGMENTS),
    _growth("grow_versions_open", "open, by versions", "versions", open_latest, VERSIONS),
    Case(
        "grow_versions_append",
        "append one row, by versions",
        "versions",
        append_tiny,
        repeats=6,
        prepare=copied,
        settle=removed,
        is_change=True,
        sizes=VERSIONS,
        quick_sizes=VERSIONS[:2],
    ),
    _growth("grow_columns_scan", "scan all columns, by columns", "columns", scan_all, COLUMNS),
    _growth("grow_columns_one", "scan one column, by columns", "columns", scan_one, COLUMNS),
    _growth("grow_columns_take", "take 10 rows, by columns", "columns", take, COLUMNS),
)
