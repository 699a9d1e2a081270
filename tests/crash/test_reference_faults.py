"""The store fails at each call of each change of tags, branches and clones.

Afterwards every branch and tag that is listed can be opened and read whole, the main history holds
what it held before or after, and the same change can be made again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

import lancetable as lt
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, InputError, RefNotFoundError, StoreError
from lancetable.store import Store, TableLocation
from lancetable.store.wrap import WrappedStore
from tests.acts import rows_from
from tests.crash.aftermath import files_below, state

_T = TypeVar("_T")


@dataclass
class Gate:
    """Lets so many calls through, of all stores together, and then fails once."""

    left: int
    is_late: bool
    """True: the call is made, and only its answer gets lost."""
    has_failed: bool = False

    def pass_through(self, action: Callable[[], _T]) -> _T:
        self.left -= 1
        if self.left != -1:
            return action()
        self.has_failed = True
        if self.is_late:
            action()
        raise StoreError("the store failed on purpose", is_certain=not self.is_late)


class GatedStore(WrappedStore):
    """A store behind a gate."""

    def __init__(self, inner: Store, gate: Gate) -> None:
        super().__init__(inner)
        self._gate = gate

    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        return self._gate.pass_through(action)


class GatedLocation(TableLocation):
    """A location all of whose stores are behind one gate."""

    def __init__(self, uri: str, *, gate: Gate) -> None:
        super().__init__(uri)
        self.gate = gate

    def open(self) -> Store:
        return GatedStore(super().open(), self.gate)


def prepared(path: Path) -> None:
    table = lt.create_table(path, rows_from(0, 10), stable_row_ids=True)
    table.append(rows_from(10, 10))
    table.tags.create("there", 1)
    work = table.branches.create("work")
    work.append(rows_from(20, 5))
    work.delete("id in (3, 21)")
    work.update({"x": "7"}, where="id = 22")
    table.branches.create("old").append(rows_from(90, 1))


ACTS: dict[str, Callable[[lt.Table], object]] = {
    "create a tag": lambda t: t.tags.create("new"),
    "move a tag": lambda t: t.tags.move("there"),
    "delete a tag": lambda t: t.tags.delete("there"),
    "create a branch": lambda t: t.branches.create("new/branch"),
    "delete a branch": lambda t: t.branches.delete("old"),
    "fast-forward": lambda t: t.branches.fast_forward("work"),
    "pick": lambda t: t.branches.cherry_pick("work", 3),
    "clone": lambda t: t.clone(f"{t.uri}-clone", deep=True),
}
DONE_ALREADY = (lt.ExistsError, RefNotFoundError, ConflictError, InputError)


def check_whole(path: Path) -> lt.Table:
    """Open and read everything that has a name."""
    table = lt.open_table(path)
    for name in table.branches:
        branch = lt.open_table(path, branch=name)
        assert branch.scan().to_arrow().num_rows == branch.count()
    for name in table.tags:
        tagged = lt.open_table(path, tag=name)
        assert tagged.scan().to_arrow().num_rows == tagged.count()
    return table


@pytest.mark.slow
@pytest.mark.parametrize("is_late", [False, True], ids=["refused", "unanswered"])
@pytest.mark.parametrize("name", ACTS)
def test_a_failing_store(tmp_path: Path, name: str, *, is_late: bool) -> None:
    twin = tmp_path / "twin"
    prepared(twin)
    ACTS[name](lt.open_table(twin))
    after = state(lt.open_table(twin))
    for calls in range(500):
        path = tmp_path / str(calls)
        prepared(path)
        before, files = state(lt.open_table(path)), files_below(path)
        gate = Gate(1 << 30, is_late)
        location = GatedLocation(str(path), gate=gate)
        table = lt.Table(location, load(location))
        gate.left = calls
        try:
            ACTS[name](table)
        except StoreError:
            assert gate.has_failed
        except lt.UnknownOutcomeError:
            # A name is made before it is looked whether its version is still there.
            assert is_late or name in {"create a tag", "move a tag", "create a branch"}
        found = check_whole(path)
        assert state(found) in (before, after)
        if not gate.has_failed:
            assert state(found) == after
            break
        if not is_late and "delete" not in name and "branch" not in name:
            assert files_below(path) >= files
        try:
            ACTS[name](lt.open_table(path))
        except DONE_ALREADY:
            assert state(check_whole(path)) in (before, after)
        assert state(check_whole(path)) == after
    else:
        raise AssertionError("the change never went through")
    assert calls > 1
