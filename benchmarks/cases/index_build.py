"""How much time of the processor do builds of indices take, and how much memory?

Each build has a process of its own, as the machine's other work would show in anything but the time
of the processor, and what was built before in the memory.
"""

import json
from collections.abc import Callable
from functools import partial

from benchmarks.cases.base import PEAK_TARGET, Case, Subject, Unit
from benchmarks.cases.write import copied, removed
from benchmarks.child import run_child

_PROGRAM = "import sys; from benchmarks.build import main; main(*sys.argv[1:])"
MANY, FEW = 1_000_000, 100_000
_SMOKE = 50_000
MEMORY = 256_000_000
BESIDE = 64_000_000
"""What a build may take beside its limit."""


def _built(kind: str, column: str, subject: Subject, memory: int = 0) -> dict[str, float]:
    printed = run_child(_PROGRAM, kind, column, str(memory), subject.peer.name, subject.uri)
    found: dict[str, float] = json.loads(printed)
    return found


def _seconds(kind: str, column: str, subject: Subject) -> float:
    return _built(kind, column, subject)["seconds"]


def _peak(kind: str, column: str, subject: Subject) -> int:
    return int(_built(kind, column, subject)["peak"])


def limited_peak(kind: str, column: str, subject: Subject) -> int:
    """Return the memory of a build that has far more to sort than it may hold."""
    found = _built(kind, column, subject, MEMORY)
    if subject.peer.name == "ours" and found["above"] > MEMORY + BESIDE:
        raise RuntimeError(f"a build within {MEMORY:,} bytes took {found['above']:,} more")
    return int(found["peak"])


def _case(
    name: str, title: str, run: Callable[[Subject], object], target: float, size: int, unit: Unit
) -> Case:
    return Case(
        name,
        title,
        "values",
        run,
        target,
        unit=unit,
        repeats=3,
        prepare=copied,
        settle=removed,
        is_change=True,
        sizes=(size,),
        quick_sizes=(_SMOKE,),
    )


_KINDS = (
    ("btree", "key", 2.5, MANY),
    ("btree", "price", 2.5, MANY),
    ("btree", "at", 2.5, MANY),
    ("btree", "user", 2, FEW),
    ("bitmap", "tag", 1.5, MANY),
    ("label_list", "labels", 1.5, MANY),
    ("zonemap", "key", 1, MANY),
    ("bloomfilter", "key", 1.2, MANY),
    ("ngram", "words", 3, FEW),
    ("full_text", "words", 2, MANY),
    ("rtree", "place", 1, MANY),
    ("json", "document", 1, FEW),
)

CASES = (
    *(
        _case(
            f"build_{kind}_{column}",
            f"build of {kind.upper()} on {column}: processor time",
            partial(_seconds, kind, column),
            target,
            size,
            Unit.PROCESSOR,
        )
        for kind, column, target, size in _KINDS
    ),
    *(
        _case(
            f"build_{kind}_{column}_peak",
            f"build of {kind.upper()} on {column}: peak RSS",
            partial(_peak, kind, column),
            1,
            size,
            Unit.BYTES,
        )
        for kind, column, _, size in _KINDS
    ),
    *(
        Case(
            name,
            f"build of {kind.upper()} within 256 MB: peak RSS",
            table,
            partial(limited_peak, kind, column),
            PEAK_TARGET,
            unit=Unit.BYTES,
            repeats=1,
            prepare=copied,
            settle=removed,
            is_change=True,
        )
        for name, kind, column, table in (
            ("build_limited_peak", "btree", "key", "keys"),
            ("build_limited_text_peak", "full_text", "words", "values"),
        )
    ),
)
