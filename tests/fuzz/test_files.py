"""Damaged data files end in rows, in CorruptError or in UnsupportedError, and in nothing else."""

import os

import pytest

from tests.fixtures_catalog import GOLDEN, SHARED
from tests.fuzz.files import FileSubject
from tests.fuzz.judge import IN_FILE, judge

PER_FILE = 32
SOAK = int(os.environ.get("LANCETABLE_FUZZ", "120000"))

SUBJECTS = [FileSubject.load(path) for path in sorted((GOLDEN / "file").glob("2*/*.lance"))]
NAMES = [subject.name for subject in SUBJECTS]


def fuzz(subject: FileSubject, numbers: range) -> list[str]:
    """Read damaged files; return what went wrong, with the number that makes it happen again."""
    failures = []
    for number in numbers:
        mutant = subject.mutant(number)
        wrong = judge(
            lambda mutant=mutant: subject.read(mutant.data),  # type: ignore[misc]
            IN_FILE,
            len(mutant.data),
            lambda tables, mutant=mutant: subject.wrong(mutant, tables),  # type: ignore[misc]
        )
        if wrong:
            failures.append(f"{subject.name} mutant {number} ({mutant.text}): {wrong}")
    return failures


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_damaged_files_are_read_or_refused(subject: FileSubject) -> None:
    failures = fuzz(subject, range(PER_FILE))
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_files_cut_off_anywhere_are_refused(subject: FileSubject) -> None:
    size = len(subject.data)
    for length in {0, 1, 4, 39, 40, 41, size // 2, size - 41, size - 40, size - 4, size - 1}:
        if 0 <= length < size:
            with pytest.raises(IN_FILE):
                subject.read(subject.data[:length])


def test_enough_files_are_damaged_to_mean_something() -> None:
    assert len(SUBJECTS) * PER_FILE >= 3500
    # Each region of a file with few columns is hit by so many mutants.
    tiny = next(subject for subject in SUBJECTS if subject.name == "2.1/tiny")
    assert len(tiny.regions) <= PER_FILE * 2 // 3


def _soak_subjects() -> list[FileSubject]:
    paths = sorted((SHARED / "file").glob("2*/*.lance"))
    return [FileSubject.load(path) for path in paths] or SUBJECTS


@pytest.mark.soak
@pytest.mark.parametrize("part", range(8))
def test_damaged_files_at_length(part: int) -> None:
    subjects = _soak_subjects()
    each = SOAK // len(subjects) // 8 + 1
    failures = [
        failure
        for subject in subjects
        for failure in fuzz(subject, range(1000 + part * each, 1000 + (part + 1) * each))
    ]
    assert not failures, f"{len(failures)} of them:\n" + "\n".join(failures[:40])
