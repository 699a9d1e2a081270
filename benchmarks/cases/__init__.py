"""The cases, in the order in which they are run and shown."""

from benchmarks.cases import (
    cold,
    compact,
    growth,
    index,
    index_build,
    memory,
    scan,
    search,
    start,
    take,
    versions,
    write,
)
from benchmarks.cases import filter as filters
from benchmarks.cases.base import Case, Subject, Unit

CASES = (
    *start.CASES,
    *scan.CASES,
    *filters.CASES,
    *take.CASES,
    *index.CASES,
    *search.CASES,
    *index_build.CASES,
    *memory.CASES,
    *write.CASES,
    *compact.CASES,
    *versions.CASES,
    *cold.CASES,
    *growth.CASES,
)

__all__ = ["CASES", "Case", "Subject", "Unit"]
