"""How many threads share the work of a large take."""

import os
import sys
from pathlib import Path

import pytest

from lancetable.file.read import threads


@pytest.mark.skipif(sys.platform != "linux", reason="the load is read from a file of Linux")
@pytest.mark.parametrize(
    ("processors", "load", "expected"),
    [
        (8, "0.20 0.18 0.12 1/80 11206\n", 4),
        (4, "0.20 0.18 0.12 1/80 11206\n", 4),
        (4, "0.20 0.18 0.12 3/80 11206\n", 2),
        (4, "9.20 9.18 0.12 4/80 11206\n", 1),
        (4, "9.20 9.18 0.12 23/80 11206\n", 1),
        (1, "0.20 0.18 0.12 0/80 11206\n", 1),
        (2, "0.20", 2),
        (2, "0.20 0.18 0.12 none 11206", 2),
        (2, None, 2),
    ],
)
def test_a_take_uses_the_processors_that_are_free(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    processors: int,
    load: str | None,
    expected: int,
) -> None:
    path = tmp_path / "loadavg"
    if load is not None:
        path.write_text(load)
    monkeypatch.setattr(threads, "_LOAD", str(path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    assert threads.free_threads() == expected


def test_there_is_always_a_thread() -> None:
    assert 1 <= threads.free_threads() <= threads.MOST_THREADS
