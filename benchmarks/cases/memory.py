"""How much memory do reading and changing take, in a process that does nothing else?"""

import json
from collections.abc import Callable

from benchmarks.cases.base import PEAK_TARGET, Case, Subject, Unit
from benchmarks.cases.write import copied, removed, vacant
from benchmarks.child import run_child

_PROGRAM = "import sys; from benchmarks.peak import main; main(*sys.argv[1:])"


def _measured(task: str, subject: Subject) -> dict[str, int]:
    found: dict[str, int] = json.loads(run_child(_PROGRAM, task, subject.peer.name, subject.uri))
    return found


def _stream(subject: Subject) -> dict[str, int]:
    measured = _measured("stream", subject)
    if measured["rows"] != subject.table.count():
        raise RuntimeError(f"{subject.peer.name} streamed {measured['rows']} rows, not all")
    return measured


def stream_peak(subject: Subject) -> int:
    """Return the largest resident size, mapped file pages included."""
    return _stream(subject)["peak"]


def stream_anonymous(subject: Subject) -> int:
    """Return the largest anonymous size, which leaves out what the system can drop at will."""
    return _stream(subject)["anonymous"]


def _peak_of(task: str) -> Callable[[Subject], int]:
    """Return a case's function for the largest resident size of a task."""
    return lambda subject: _measured(task, subject)["peak"]


def _anonymous_of(task: str) -> Callable[[Subject], int]:
    """Return the same without the mapped pages of files, which the system drops at will."""
    return lambda subject: _measured(task, subject)["anonymous"]


def _reading(name: str, title: str, run: Callable[[Subject], int]) -> Case:
    return Case(name, title, "rows", run, PEAK_TARGET, unit=Unit.BYTES, repeats=3)


def _case(name: str, title: str, task: str, *, is_new: bool = False) -> Case:
    return Case(
        name,
        title,
        "rows",
        _peak_of(task),
        PEAK_TARGET,
        unit=Unit.BYTES,
        repeats=3,
        prepare=vacant if is_new else copied,
        settle=removed,
        is_change=not is_new,
    )


CASES = (
    _reading("stream_peak", "streaming scan: peak RSS", stream_peak),
    _reading("stream_anonymous", "streaming scan: anonymous RSS", stream_anonymous),
    _reading("filter_peak", "filter 1 %: peak RSS", _peak_of("filter")),
    _reading("filter_anonymous", "filter 1 %: anonymous RSS", _anonymous_of("filter")),
    _reading("take_peak", "take 10 000 rows: peak RSS", _peak_of("take")),
    _reading("take_anonymous", "take 10 000 rows: anonymous RSS", _anonymous_of("take")),
    _case("write_peak", "write a stream of 10M rows: peak RSS", "write", is_new=True),
    _case("delete_peak", "delete 1 %: peak RSS", "delete"),
    _case("update_peak", "update 1 %: peak RSS", "update"),
    _case("update_half_peak", "update every second row: peak RSS", "update_half"),
    _case("merge_peak", "upsert a stream of 2M rows: peak RSS", "merge"),
    _case("add_column_peak", "add a computed column: peak RSS", "add_column"),
)
