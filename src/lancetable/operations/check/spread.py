"""How do many workers look at the data files of a table: each file once.

What they found goes into the memory of a check, which then only asks it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import LanceTableError
from lancetable.format.manifest import DataFile, Fragment
from lancetable.operations.check.journal import Finding
from lancetable.operations.check.model import Level
from lancetable.operations.check.version import Memory, data_key, look_at_data
from lancetable.operations.parts import part_of
from lancetable.operations.runner import Runner


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
    return {
        data_key(task.part, fragment, file): look_at_data(task.part, fragment, file, memory)
        for file in task.files
    }


def look_ahead(versions: Iterable[Snapshot], memory: Memory, runner: Runner) -> None:
    """Let workers look at all data files before anybody asks about them."""
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
            continue  # The check itself tells of it.


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
        return False  # It leads out of the table; the check itself tells of it.
    is_new = key not in asked and not memory.knows(key)
    asked.add(key)
    return is_new
