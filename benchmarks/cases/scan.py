"""How fast are whole tables and whole columns read?"""

import numpy as np
import pyarrow as pa

from benchmarks.cases.base import Case, Subject


def scan_all(subject: Subject) -> pa.Table:
    """Read every column into one Arrow table."""
    return subject.table.scan()


def scan_id(subject: Subject) -> pa.Table:
    """Read an int64 column, which is stored bit-packed."""
    return subject.table.scan(["id"])


def scan_val(subject: Subject) -> pa.Table:
    """Read a float64 column, which is stored flat."""
    return subject.table.scan(["val"])


def scan_string(subject: Subject) -> pa.Table:
    """Read a column of short strings, which is stored with FSST."""
    return subject.table.scan(["s"])


def scan_flag(subject: Subject) -> pa.Table:
    """Read a bool column."""
    return subject.table.scan(["flag"])


def scan_ts(subject: Subject) -> pa.Table:
    """Read a timestamp column, which is stored bit-packed with a large width."""
    return subject.table.scan(["ts"])


def sum_vectors(subject: Subject) -> float:
    """Stream the vectors and add up all values, so that every byte is really fetched."""
    total = 0.0
    for batch in subject.table.stream(["vector"]):
        total += float(batch.column(0).flatten().to_numpy().sum(dtype=np.float64))
    return round(total, 3)


def scan_numbers(subject: Subject) -> pa.Table:
    """Read a column of integer lists."""
    return subject.table.scan(["numbers"])


def scan_words(subject: Subject) -> pa.Table:
    """Read a column of string lists."""
    return subject.table.scan(["words"])


def scan_struct(subject: Subject) -> pa.Table:
    """Read a column of nullable structs with nullable children."""
    return subject.table.scan(["point"])


CASES = (
    Case("scan", "full scan, 5 columns", "rows", scan_all, 4),
    Case("scan_id", "column int64", "rows", scan_id, 4),
    Case("scan_val", "column float64 (flat)", "rows", scan_val, 4),
    Case("scan_string", "column string", "rows", scan_string, 4),
    Case("scan_flag", "column bool", "rows", scan_flag, 20),
    Case("scan_ts", "column timestamp", "rows", scan_ts),
    Case("scan_vectors", "vector column, 768 x float32", "vectors", scan_all, 10),
    Case("sum_vectors", "stream vectors and sum them", "vectors", sum_vectors),
    Case("scan_fragments", "scan of one-row fragments", "fragments", scan_all, 10),
    Case("scan_nullable", "scan, 5 columns with 10 % nulls", "nullable", scan_all, 2),
    Case("scan_list_int", "column list<int32>", "nested", scan_numbers, 2),
    Case("scan_list_string", "column list<string>", "nested", scan_words, 2),
    Case("scan_struct", "column struct with nulls", "nested", scan_struct, 2),
)
