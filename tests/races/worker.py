"""One writer of a race: runs as a process of its own and tells on its last line what it did.

Every row has a ``key`` that only one writer inserts, and a ``count`` that updates raise by one, so
that lost and doubled changes show up in sums.
"""

import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

import lancetable as lt

PATIENT = lt.CommitOptions(attempts=200, deadline_seconds=120.0)


def rows(keys: list[str], owner: int) -> pa.Table:
    """Return new rows."""
    return pa.table(
        {
            "key": pa.array(keys, pa.string()),
            "owner": pa.array([owner] * len(keys), pa.int32()),
            "count": pa.array([0] * len(keys), pa.int64()),
        }
    )


class Writer:
    """Does random things and remembers which of them landed."""

    def __init__(self, uri: str, owner: int, seed: int) -> None:
        self.uri = uri
        self.owner = owner
        self.chance = random.Random(seed)
        self.table = lt.open_table(uri)
        self.number = 0
        self.present: dict[str, int] = {}
        self.shared = 0
        self.conflicts = 0

    def fresh(self) -> str:
        self.number += 1
        return f"{self.owner}-{self.number}"

    def step(self) -> None:
        """Do one thing; a documented conflict counts as not done."""
        if self.chance.random() < 0.3:
            self.table.refresh()
        act = self.chance.choices(
            [self.append, self.delete, self.update, self.merge, self.update_shared, self.column],
            [6, 3, 3, 4, 3, 1],
        )[0]
        try:
            act()
        except (lt.ConflictError, lt.ContentionError):
            self.conflicts += 1
            self.table.refresh()

    def append(self) -> None:
        keys = [self.fresh() for _ in range(self.chance.randint(1, 3))]
        self.table.append(rows(keys, self.owner), commit=PATIENT)
        self.present.update(dict.fromkeys(keys, 0))

    def delete(self) -> None:
        if not self.present:
            return
        key = self.chance.choice(list(self.present))
        result = self.table.delete(f"key = '{key}'", commit=PATIENT)
        assert result.rows == 1, f"{key} was there {result.rows} times"
        del self.present[key]

    def update(self) -> None:
        result = self.table.update({"count": "count + 1"}, f"owner = {self.owner}", commit=PATIENT)
        assert result.rows == len(self.present), f"{result.rows} of {len(self.present)} rows"
        for key in self.present:
            self.present[key] += 1

    def update_shared(self) -> None:
        """Raise the counter that all writers share."""
        result = self.table.update({"count": "count + 1"}, "key = 'shared'", commit=PATIENT)
        assert result.rows == 1
        self.shared += 1

    def merge(self) -> None:
        known = self.chance.sample(list(self.present), min(len(self.present), 2))
        new = [self.fresh() for _ in range(2)]
        result = (
            self.table.merge(rows([*known, *new], self.owner), on="key", commit=PATIENT)
            .when_matched_update({"count": "target.count + 10"})
            .when_not_matched_insert_all()
            .execute()
        )
        assert (result.updated, result.inserted) == (len(known), len(new))
        for key in known:
            self.present[key] += 10
        self.present.update(dict.fromkeys(new, 0))

    def column(self) -> None:
        """Set a note of its own: no rows, but a version."""
        self.table.config.update({f"writer {self.owner}": str(self.number)}, commit=PATIENT)


class Keeper:
    """Creates, optimizes, replaces and drops indices, and compacts, beside the writers."""

    def __init__(self, uri: str, owner: int, seed: int) -> None:
        self.table = lt.open_table(uri)
        self.owner = owner
        self.chance = random.Random(seed)
        self.outcomes: Counter[str] = Counter()

    def step(self) -> None:
        """Do one thing; that others were first is an outcome like others."""
        if self.chance.random() < 0.5:
            self.table.refresh()
        acts = [self.create, self.replace, self.optimize, self.compact, self.drop]
        act = self.chance.choices(acts, [4, 2, 6, 4, 1])[0]
        try:
            act()
            self.outcomes[act.__name__] += 1
        except (lt.ExistsError, lt.IndexNotFoundError) as error:
            self.outcomes[type(error).__name__] += 1
            self.table.refresh()

    def create(self) -> None:
        column = self.chance.choice(["key", "owner", "count"])
        kind: Any = self.chance.choice(["btree", "bitmap", "zonemap", "bloomfilter"])
        segments = self.chance.randint(1, 2)
        self.table.indices.create(column, kind, segments=segments, commit=PATIENT)

    def replace(self) -> None:
        """Create an index that all keepers want to have under one name."""
        kind: Any = self.chance.choice(["btree", "bitmap", lt.NGram()])
        self.table.indices.create("key", kind, name="shared", replace=True, commit=PATIENT)

    def optimize(self) -> None:
        mode: Any = self.chance.choice(["auto", "append", "merge", "rebuild"])
        self.table.indices.optimize(mode=mode, commit=PATIENT)

    def compact(self) -> None:
        policies: list[Any] = [None, "remap", "uncover"]
        policy = self.chance.choice(policies)
        self.table.compact(indices=policy, deleted_share=0.0, target_rows=40, commit=PATIENT)

    def drop(self) -> None:
        name = self.chance.choice(["key_idx", "owner_idx", "count_idx", "shared"])
        self.table.indices.drop(name, commit=PATIENT)


def wait_for(path: Path) -> None:
    """Wait until all writers may start."""
    while not path.exists():
        time.sleep(0.005)


def main(arguments: list[str]) -> None:
    """Run one writer, or one merge of keys that others merge too."""
    kind, uri, owner, steps = arguments[0], arguments[1], int(arguments[2]), int(arguments[3])
    gate = Path(f"{uri}.start")
    answer: dict[str, Any] = {}
    if kind == "mixed":
        writer = Writer(uri, owner, owner * 1009 + steps)
        wait_for(gate)
        for _ in range(steps):
            writer.step()
        answer = {
            "present": writer.present,
            "shared": writer.shared,
            "conflicts": writer.conflicts,
        }
    elif kind == "indices":
        keeper = Keeper(uri, owner, owner * 1009 + steps)
        wait_for(gate)
        for _ in range(steps):
            keeper.step()
        answer = {"outcomes": keeper.outcomes}
    else:
        table = lt.open_table(uri)
        keys = [f"new-{number}" for number in range(steps)]
        wait_for(gate)
        done = (
            table.merge(rows(keys, owner), on="key", commit=PATIENT)
            .when_matched_update({"count": "target.count + 1"})
            .when_not_matched_insert_all()
            .execute()
        )
        answer = {"inserted": done.inserted, "updated": done.updated, "attempts": done.attempts}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
