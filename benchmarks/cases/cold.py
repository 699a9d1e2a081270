"""How fast are rows found when nothing of the table is in the page cache?

Before every sample the files of the table are dropped from the cache. Opening counts, as pylance
reads part of its metadata only then.
"""

import os
from pathlib import Path

import pyarrow as pa

from benchmarks.cases.base import Case, Subject


def evicted(subject: Subject) -> Subject:
    """Drop the files of the table from the page cache."""
    for path in Path(subject.uri).rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
    return subject


def take_cold(subject: Subject) -> pa.Table:
    """Open the table and fetch all columns of the drawn rows."""
    return subject.peer.open(subject.uri).take(subject.rows)


def scan_cold(subject: Subject) -> pa.Table:
    """Open the table and read one column."""
    return subject.peer.open(subject.uri).scan(["val"])


def _case(name: str, title: str, run: object, target: float, draws: int = 0) -> Case:
    return Case(name, title, "rows", run, target, draws=draws, repeats=6, prepare=evicted)  # type: ignore[arg-type]


CASES = (
    _case("cold_take_1", "cold: open and take 1 row", take_cold, 1, 1),
    _case("cold_take_100", "cold: open and take 100 rows", take_cold, 1, 100),
    _case("cold_take_10000", "cold: open and take 10 000 rows", take_cold, 1, 10_000),
    _case("cold_scan_val", "cold: open and read a float64 column", scan_cold, 1),
)
