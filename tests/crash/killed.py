"""Writers that die: children of one process that has loaded everything, killed at any moment.

A child is forked from a process that has done everything once, so it costs milliseconds. Run as
``python -m tests.crash.killed <kind> <uri> <turns> <seed> <step>``; the exit code is 0 when every
look at the table after a death was good.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

import lancetable as lt
from lancetable.commit.versions import load
from lancetable.store import TableLocation
from lancetable.store.wrap import WrappedStore
from tests.crash.aftermath import check_whole
from tests.stores import WrappedLocation

_T = TypeVar("_T")
GROUP = 10


def group(number: int) -> pa.Table:
    """Return rows that come and go together."""
    ids = range(number * GROUP, (number + 1) * GROUP)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array([number] * GROUP, pa.int64()),
            "turn": pa.array([0] * GROUP, pa.int64()),
        }
    )


def changes(chance: random.Random) -> list[Callable[[lt.Table], Any]]:
    """Return changes that treat all rows of a group alike."""
    some = chance.randrange(8)

    def merge(table: lt.Table) -> Any:
        return (
            table.merge(group(some), on="id")
            .when_matched_update({"turn": "target.turn + 1"})
            .when_not_matched_insert_all()
            .execute()
        )

    return [
        lambda table: table.append(group(chance.randrange(100, 10_000))),
        lambda table: table.delete(f"part = {some}"),
        lambda table: table.update({"turn": "turn + 1"}, f"part % 3 = {some % 3}"),
        lambda table: table.update({"turn": "turn + 1"}, f"part % 3 = {some % 3}", mode="columns"),
        merge,
        lambda table: table.overwrite(group(some), where=f"part = {some}"),
        lambda table: table.config.update({"turn": str(some)}),
        lambda table: table.columns.add({f"c{chance.randrange(10**9)}": "turn + 1"}),
        lambda table: table.compact(target_rows=chance.choice([30, 1000]), deleted_share=0.0),
        lambda table: table.indices.create("id", "btree", replace=True, segments=2),
        lambda table: table.indices.optimize(mode=chance.choice(["auto", "merge"])),
    ]


def look(uri: str, *, writes: bool = True) -> None:
    """Check the table after a death: readable, whole groups only, and open to the next writer."""
    table = check_whole(TableLocation(uri), newest=4)
    counts: dict[int, set[int]] = {}
    rows: dict[int, int] = {}
    for row in table.scan(["part", "turn"]).to_arrow().to_pylist():
        rows[row["part"]] = rows.get(row["part"], 0) + 1
        counts.setdefault(row["part"], set()).add(row["turn"])
    assert all(count % GROUP == 0 for count in rows.values()), rows
    assert all(len(turns) == 1 or rows[part] > GROUP for part, turns in counts.items()), counts
    if writes:
        before = table.version
        table.config.update({"looked": str(time.time())})
        assert table.version == before + 1


def in_child(action: Callable[[], None]) -> int:
    """Start a child that does something and ends; return its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        action()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def expect_good(action: Callable[[], None]) -> None:
    """Run something in a child that has to end well."""
    _, status = os.waitpid(in_child(action), 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(1)


def at_random_moments(uri: str, turns: int, seed: int, _: int) -> None:
    """Kill writers that go on and on, after a random time each."""
    chance = random.Random(seed)
    deaths = 0
    for turn in range(turns):

        def write(turn: int = turn) -> None:
            inner = random.Random(seed * 7919 + turn)
            table = lt.open_table(uri)
            while True:
                inner.choice(changes(inner))(table)

        child = in_child(write)
        time.sleep(chance.uniform(0.0, 0.15))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != -signal.SIGKILL:
            sys.exit(2)
        deaths += 1
        expect_good(lambda: look(uri))
    assert deaths == turns


class DeadlyStore(WrappedStore):
    """Kills its own process at a call, before or after it."""

    countdown = 1 << 30
    after = False

    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        DeadlyStore.countdown -= 1
        if DeadlyStore.countdown < 0:
            if self.after:
                action()
            os.kill(os.getpid(), signal.SIGKILL)
        return action()


def at_every_call(uri: str, turns: int, seed: int, step: int) -> None:
    """Kill the writer of a copy at store calls of each change, ``step`` apart."""
    kinds = len(changes(random.Random(seed)))
    for turn in range(turns):
        DeadlyStore.after = (turn + turn // kinds) % 2 == 1
        for number in range(turn % step, 400, step):
            copy = shutil.copytree(uri, f"{uri}-{turn}-{number}")
            location = WrappedLocation(copy, wrap=DeadlyStore)

            def write(
                location: TableLocation = location, turn: int = turn, number: int = number
            ) -> None:
                table = lt.Table(location, load(location))
                DeadlyStore.countdown = number
                changes(random.Random(seed * 104_729 + turn))[turn % kinds](table)

            _, status = os.waitpid(in_child(write), 0)
            code = os.waitstatus_to_exitcode(status)
            expect_good(lambda copy=copy: look(copy))  # type: ignore[misc]
            shutil.rmtree(copy)
            if code == 0:
                break
            if code != -signal.SIGKILL:
                sys.exit(2)


def warm_up() -> None:
    """Do everything once, so that what is loaded at first use is there before the forks."""
    with tempfile.TemporaryDirectory() as folder:
        table = make(f"{folder}/t", stable=True)
        for change in changes(random.Random(0)):
            change(table)
        look(f"{folder}/t")


def make(uri: str, *, stable: bool) -> lt.Table:
    """Create a table of six fragments."""
    table = lt.create_table(uri, group(0), stable_row_ids=stable)
    for number in range(1, 6):
        table.append(group(number))
    return table


def main(arguments: list[str]) -> None:
    """Make a table and let its writers die."""
    kind, uri, *rest = arguments
    turns, seed, step = map(int, rest)
    pa.set_cpu_count(1)
    warm_up()
    make(uri, stable=seed % 2 == 1)
    {"moments": at_random_moments, "calls": at_every_call}[kind](uri, turns, seed, step)
    left = [str(one) for one in Path(uri).rglob("*.tmp*")]
    sys.stdout.write(f"{len(left)} files of dead writers\n")


if __name__ == "__main__":
    main(sys.argv[1:])
