"""How fast are random rows fetched by position from an open table?"""

import pyarrow as pa

from benchmarks.cases.base import Case, Subject


def take(subject: Subject) -> pa.Table:
    """Fetch all columns of the drawn rows."""
    return subject.table.take(subject.rows)


CASES = (
    Case("take_1", "take 1 row", "rows", take, 15, draws=1),
    Case("take_100", "take 100 rows", "rows", take, 10, draws=100),
    Case("take_10000", "take 10 000 rows", "rows", take, 30, draws=10_000),
    Case("take_vectors_1", "take 1 vector", "vectors", take, 15, draws=1),
    Case("take_vectors_100", "take 100 vectors", "vectors", take, 10, draws=100),
    Case("take_vectors_10000", "take 10 000 vectors", "vectors", take, 30, draws=10_000),
    Case("take_nullable_100", "take 100 rows with nulls", "nullable", take, 2, draws=100),
    Case("take_nested_100", "take 100 nested rows", "nested", take, 2, draws=100),
)
