"""How much time of the processor do builds of indices take, and how much memory?

Each build has a process of its own, as the machine's other work would show in anything but the time
of the processor, and what was built before in the memory.
"""

import json
from functools import partial
from typing import NamedTuple

from benchmarks.cases.base import PEAK_TARGET, RECALL_TARGET, Case, Subject, Unit
from benchmarks.cases.search import SAMPLE, near_recall
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


def built_recall(kind: str, subject: Subject) -> float:
    """Build an index on vectors, and return which part of the nearest rows it finds."""
    subject.table.index("vector", kind)
    built = subject._replace(table=subject.peer.open(subject.uri))
    return near_recall("vector", None, None, built)


class _Build(NamedTuple):
    """An index to build, and the ratios that its time and its memory should reach."""

    kind: str
    column: str
    target: float
    size: int | None = None
    table: str = "values"
    peak_target: float = 1


def _case(build: _Build, *, is_peak: bool) -> Case:
    run = _peak if is_peak else _seconds
    return Case(
        f"build_{build.kind}_{build.column}{'_peak' * is_peak}",
        f"build of {build.kind.upper()} on {build.column}:"
        f" {'peak RSS' if is_peak else 'processor time'}",
        build.table,
        partial(run, build.kind, build.column),
        build.peak_target if is_peak else build.target,
        unit=Unit.BYTES if is_peak else Unit.PROCESSOR,
        repeats=3,
        prepare=copied,
        settle=removed,
        is_change=True,
        sizes=(build.size,) if build.size else (),
        quick_sizes=(_SMOKE,) if build.size else (),
    )


_VECTORS = (("ivf_pq", 5), ("ivf_flat", 3), ("ivf_sq", 3), ("ivf_rq", 3), ("ivf_hnsw_sq", 2.5))
_BUILDS = (
    _Build("btree", "key", 2.5, MANY),
    _Build("btree", "price", 2.5, MANY),
    _Build("btree", "at", 2.5, MANY),
    _Build("btree", "user", 2, FEW),
    _Build("bitmap", "tag", 1.5, MANY),
    _Build("label_list", "labels", 1.5, MANY),
    _Build("zonemap", "key", 1, MANY),
    _Build("bloomfilter", "key", 1.2, MANY),
    _Build("ngram", "words", 3, FEW),
    _Build("full_text", "words", 2, MANY),
    _Build("rtree", "place", 1, MANY),
    _Build("json", "document", 1, FEW),
    *(
        _Build(kind, "vector", target, table="clustered", peak_target=PEAK_TARGET)
        for kind, target in _VECTORS
    ),
)

CASES = (
    *(_case(build, is_peak=False) for build in _BUILDS),
    *(_case(build, is_peak=True) for build in _BUILDS),
    *(
        Case(
            f"build_{kind}_recall",
            f"recall of an {kind.upper()} of each peer",
            "clustered",
            partial(built_recall, kind),
            RECALL_TARGET,
            draws=SAMPLE,
            unit=Unit.RECALL,
            repeats=1,
            prepare=copied,
            settle=removed,
            is_change=True,
        )
        for kind, _ in _VECTORS
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
