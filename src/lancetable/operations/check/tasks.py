"""Check the data files of a table with many workers, each file once.

Their findings go into the memory of a check, which then looks them up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import LanceTableError
from lancetable.format.manifest import DataFile, Fragment
from lancetable.fragment.files import DataFiles
from lancetable.operations.check.journal import Finding, Memory
from lancetable.operations.check.model import Level
from lancetable.operations.check.nulls import data_key, null_faults
from lancetable.operations.check.version import look_at_data
from lancetable.operations.rows.parts import part_of
from lancetable.operations.run.runner import Runner


@dataclass(frozen=True, slots=True)
class LookTask:
    """A version with one fragment, and those of its data files that are to be looked at."""

    part: Snapshot
    files: tuple[DataFile, ...]
    level: Level


def look_at(task: LookTask) -> dict[tuple[object, ...], Finding]:
    """Return what is wrong with each of the files."""
    memory = Memory(task.level)
    (fragment,) = task.part.manifest.fragments
    found = [look_at_data(task.part, fragment, file, memory) for file in task.files]
    if task.level >= Level.DATA and found == [None] * len(fragment.files):
        list(null_faults(task.part, fragment, DataFiles(task.part), memory))
    return memory.found


def look_ahead(versions: Iterable[Snapshot], memory: Memory, runner: Runner) -> None:
    """Let workers check all data files before their findings are looked up."""
    if memory.level < Level.FILES:
        return
    for found in runner.map(look_at, _tasks(versions, memory)):
        for key, finding in found.items():
            memory.learn(key, finding)


def _tasks(versions: Iterable[Snapshot], memory: Memory) -> Iterator[LookTask]:
    asked: set[tuple[object, ...]] = set()
    for snapshot in versions:
        for fragment in _readable(snapshot):
            files = tuple(
                file for file in fragment.files if _is_new(snapshot, fragment, file, memory, asked)
            )
            if files:
                yield LookTask(part_of(snapshot, [fragment]), files, memory.level)


def _readable(snapshot: Snapshot) -> Iterator[Fragment]:
    fragments = snapshot.manifest.fragments
    for position in range(len(fragments)):
        try:
            yield fragments[position]
        except LanceTableError:
            continue  # The check itself reports it.


def _is_new(
    snapshot: Snapshot,
    fragment: Fragment,
    file: DataFile,
    memory: Memory,
    asked: set[tuple[object, ...]],
) -> bool:
    try:
        key = data_key(snapshot, fragment, file)
    except LanceTableError:
        return False  # It leads out of the table; the check itself reports it.
    is_new = key not in asked and not memory.knows(key)
    asked.add(key)
    return is_new
