"""How fast are small fragments joined, and how much memory does that take?"""

import json

from benchmarks.cases.base import Case, Subject, Unit
from benchmarks.cases.write import copied, removed
from benchmarks.child import run_child
from benchmarks.peak import COMPACTED_WITHIN

ALLOWED = COMPACTED_WITHIN + 64 * 1024 * 1024
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


def peak(subject: Subject) -> int:
    """Return the largest resident size of a process that compacts a table of two gigabytes."""
    found = json.loads(run_child(_PROGRAM, "compact", subject.peer.name, subject.uri))
    used = int(found["peak"])
    if subject.peer.name == "ours" and used > ALLOWED:
        raise RuntimeError(f"compacting took {used} bytes, {ALLOWED} are allowed")
    return used


CASES = (
    Case(
        "compact_small",
        "compact 100 small fragments",
        "small",
        compact,
        1.5,
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
        1.5,
        repeats=6,
        prepare=copied,
        settle=removed,
        is_change=True,
    ),
    Case(
        "compact_peak",
        "compact 2 GB, 1 % deleted, within 256 MiB: peak RSS",
        "wide",
        peak,
        1,
        unit=Unit.BYTES,
        repeats=2,
        prepare=worn,
        settle=removed,
        is_change=True,
    ),
)
