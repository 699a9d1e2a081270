"""How fast is it to look back over many versions, to name them, and to change rows with ids?"""

from benchmarks.cases.base import Case, Subject
from benchmarks.cases.write import copied, removed


def versions(subject: Subject) -> int:
    """List all versions with their times."""
    return subject.table.versions()


def version_names(subject: Subject) -> int:
    """List the numbers of all versions."""
    return subject.table.version_names()


def history(subject: Subject) -> int:
    """Tell what every version did."""
    return subject.table.history()


def tag(subject: Subject) -> int:
    """Give a version a name."""
    subject.table.tag("v1")
    return 1


def branch(subject: Subject) -> int:
    """Begin a branch with a version of many fragments."""
    subject.table.branch("dev")
    return 1


def update(subject: Subject) -> int:
    """Update one row in a hundred of a table with stable row ids."""
    subject.table.update({"val": "val * 2"}, "id % 100 = 7")
    return subject.peer.open(subject.uri).count()


def cleanup(subject: Subject) -> int:
    """Remove all versions but the latest; each has a manifest and a transaction file."""
    return subject.table.maintenance.cleanup()


def _changing(name: str, title: str, table: str, run: object, target: float) -> Case:
    return Case(
        name, title, table, run, target, repeats=6, prepare=copied, settle=removed, is_change=True
    )  # type: ignore[arg-type]


CASES = (
    Case("versions", "list many versions with times", "versions", versions, 5, repeats=3),
    Case("version_names", "list many versions", "versions", version_names, 100, repeats=3),
    Case("history", "history of many versions", "versions", history, 3, repeats=3),
    Case(
        "cleanup",
        "remove 5,000 versions, 10,000 files",
        "versions",
        cleanup,
        1,
        repeats=3,
        prepare=copied,
        settle=removed,
        is_change=True,
    ),
    Case(
        "cleanup_overwritten",
        "remove 3,333 overwritten versions, 10,000 files",
        "overwrites",
        cleanup,
        1,
        repeats=3,
        prepare=copied,
        settle=removed,
        is_change=True,
    ),
    _changing("tag", "create a tag", "single", tag, 1),
    _changing("branch", "create a branch of 1,000 fragments", "fragments", branch, 1),
    _changing("update_stable", "update 1 % with stable row ids", "stable", update, 1),
)
