"""How long until a table can be asked something: new processes and opening."""

from benchmarks.cases.base import Case, Subject
from benchmarks.child import run_child


def fresh_count(subject: Subject) -> str:
    """Start an interpreter that imports the library, opens the table and counts its rows."""
    return run_child(subject.peer.count_program, subject.uri)


def open_latest(subject: Subject) -> int:
    """Open the newest version; asking for its number keeps a lazy open from counting as one."""
    return subject.peer.open(subject.uri).version()


CASES = (
    Case("fresh_count", "new process: import, open, count", "single", fresh_count, 5, repeats=7),
    Case("fresh_count_versions", "same, many versions", "versions", fresh_count, repeats=7),
    Case("open", "open, 1 version", "single", open_latest, 3),
    Case("open_versions", "open, many versions", "versions", open_latest, 8),
)
