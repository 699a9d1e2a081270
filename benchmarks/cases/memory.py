"""How much memory does a streaming scan need, in a process that does nothing else?"""

import json

from benchmarks.cases.base import Case, Subject, Unit
from benchmarks.child import run_child

_PROGRAM = "import sys; from benchmarks.stream import main; main(*sys.argv[1:])"


def _stream(subject: Subject) -> dict[str, int]:
    measured: dict[str, int] = json.loads(run_child(_PROGRAM, subject.peer.name, subject.uri))
    if measured["rows"] != subject.table.count():
        raise RuntimeError(f"{subject.peer.name} streamed {measured['rows']} rows, not all")
    return measured


def stream_peak(subject: Subject) -> int:
    """Return the largest resident size, mapped file pages included."""
    return _stream(subject)["peak"]


def stream_anonymous(subject: Subject) -> int:
    """Return the largest anonymous size, which leaves out what the system can drop at will."""
    return _stream(subject)["anonymous"]


CASES = (
    Case("stream_peak", "streaming scan: peak RSS", "rows", stream_peak, 1, 0, Unit.BYTES, 3),
    Case(
        "stream_anonymous",
        "streaming scan: anonymous RSS",
        "rows",
        stream_anonymous,
        unit=Unit.BYTES,
        repeats=3,
    ),
)
