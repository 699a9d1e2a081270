"""How fast are a few rows found by a predicate, or only counted?

`val` is uniform over [-1, 1) in random order and `id` ascends with the position, so a bound on the
first picks scattered rows and a range of the second picks neighbours.
"""

import pyarrow as pa

from benchmarks.cases.base import Case, Subject


def filter_percent(subject: Subject) -> pa.Table:
    """Read all columns of 1 % of the rows, scattered."""
    return subject.table.scan(where="val < -0.98")


def filter_rare(subject: Subject) -> pa.Table:
    """Read all columns of 0.01 % of the rows, scattered."""
    return subject.table.scan(where="val < -0.9998")


def filter_clustered(subject: Subject) -> pa.Table:
    """Read all columns of 0.01 % of ten million rows that lie side by side."""
    return subject.table.scan(where="id >= 500000 AND id < 501000")


def count_filter(subject: Subject) -> int:
    """Count the rows that match."""
    return subject.table.count("val < -0.98")


def head_10(subject: Subject) -> pa.Table:
    """Read the first ten rows."""
    return subject.table.head(10)


CASES = (
    Case("filter_percent", "filter 1 %, scattered", "rows", filter_percent, 5),
    Case("filter_rare", "filter 0.01 %, scattered", "rows", filter_rare, 5),
    Case("filter_clustered", "filter 0.01 %, clustered", "rows", filter_clustered, 5),
    Case("count_filter", "count with a filter", "rows", count_filter, 5),
    Case("head_10", "first 10 rows", "rows", head_10),
)
