"""How fast are small fragments joined, and how much memory does that take?"""

import json
from functools import partial

from benchmarks.cases.base import PEAK_TARGET, Case, Subject, Unit
from benchmarks.cases.write import copied, removed
from benchmarks.child import run_child
from benchmarks.peak import COMPACTED_WITHIN

BESIDE = 64 * 1024 * 1024
"""What a process may take beside the limit of a compaction."""
_PROGRAM = "import sys; from benchmarks.peak import main; main(*sys.argv[1:])"


def worn(subject: Subject) -> Subject:
    """Return the subject on a copy of its table in which one row in a hundred is deleted."""
    made = copied(subject)
    made.table.delete("id % 100 = 7")
    return made._replace(table=made.peer.open(made.uri))


def compact(subject: Subject) -> int:
    """Join all fragments."""
    subject.table.compact()
    return subject.peer.open(subject.uri).count()


def _peak(task: str, subject: Subject) -> int:
    """Return the largest resident size of a process that compacts a table of two gigabytes."""
    found = json.loads(run_child(_PROGRAM, task, subject.peer.name, subject.uri))
    used, allowed = int(found["peak"]), COMPACTED_WITHIN[task] + BESIDE
    if allowed <= 2 * BESIDE:
        # The libraries alone need about that much; what counts is what comes on top of them.
        allowed += int(found["before"])
    if subject.peer.name == "ours" and used > allowed:
        raise RuntimeError(f"compacting took {used} bytes, {allowed} are allowed")
    return used


def _peak_case(name: str, title: str, task: str) -> Case:
    return Case(
        name,
        title,
        "wide",
        partial(_peak, task),
        PEAK_TARGET,
        unit=Unit.BYTES,
        repeats=2,
        prepare=worn,
        settle=removed,
        is_change=True,
    )


CASES = (
    Case(
        "compact_small",
        "compact 100 small fragments",
        "small",
        compact,
        2,
        repeats=6,
        prepare=copied,
        settle=removed,
        is_change=True,
    ),
    Case(
        "compact_worn",
        "compact 100 small fragments, 1 % deleted",
        "small",
        compact,
        2,
        repeats=6,
        prepare=worn,
        settle=removed,
        is_change=True,
    ),
    Case(
        "compact_tiny",
        "compact fragments of 1,000 rows",
        "tiny",
        compact,
        2,
        repeats=6,
        prepare=copied,
        settle=removed,
        is_change=True,
    ),
    _peak_case("compact_peak", "compact 2 GB, 1 % deleted, within 256 MiB: peak RSS", "compact"),
    _peak_case(
        "compact_little_peak",
        "compact 2 GB, 1 % deleted, within 64 MiB: peak RSS",
        "compact_little",
    ),
)
