"""Damaged tables end in rows, in a clear error of the library, and in nothing else."""

import os
from pathlib import Path

import pytest

from tests.fixtures_catalog import GOLDEN, SHARED
from tests.fuzz.judge import IN_TABLE, judge
from tests.fuzz.tables import TableSubject

PER_TABLE = 20
SOAK = int(os.environ.get("LANCETABLE_FUZZ", "120000")) // 4

# Their files lie outside the table, or they are damaged to begin with.
_LEFT_OUT = {"shallow_clone", "multi_base", "legacy_0_25_2_rowids", "blob_v2"}


def _subjects(root: Path) -> list[TableSubject]:
    folders = [
        *sorted((root / "table").glob("*.lance")),
        *sorted((root / "file" / "0.1").glob("*")),
        *sorted((root / "releases").glob("pylance-*/*.lance")),
        *sorted((root / "memwal").glob("[bj]*")),
    ]
    wanted = [each for each in folders if each.is_dir() and each.stem not in _LEFT_OUT]
    return [TableSubject.load(each) for each in wanted]


SUBJECTS = _subjects(GOLDEN)


def fuzz(subject: TableSubject, numbers: range) -> list[str]:
    """Read damaged tables; return what went wrong, with the number that makes it happen again."""
    failures = []
    for number in numbers:
        mutant = subject.mutant(number)
        wrong = judge(
            lambda mutant=mutant: subject.read(mutant.objects),  # type: ignore[misc]
            IN_TABLE,
            subject.size,
        )
        if wrong:
            failures.append(f"{subject.name} mutant {number} ({mutant.text}): {wrong}")
    return failures


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.name for subject in SUBJECTS])
def test_damaged_tables_are_read_or_refused(subject: TableSubject) -> None:
    failures = fuzz(subject, range(PER_TABLE))
    assert not failures, "\n".join(failures)


def test_enough_tables_are_damaged_to_mean_something() -> None:
    assert len(SUBJECTS) * PER_TABLE >= 1500


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_damaged_tables_at_length(part: int) -> None:
    subjects = _subjects(SHARED) if SHARED.exists() else SUBJECTS
    each = SOAK // len(subjects) // 4 + 1
    failures = [
        failure
        for subject in subjects
        for failure in fuzz(subject, range(1000 + part * each, 1000 + (part + 1) * each))
    ]
    assert not failures, f"{len(failures)} of them:\n" + "\n".join(failures[:40])
