"""A store carries out a change of tags, branches or clones and answers that it did not.

What stands under the name tells that the change was made: it is reported as done, once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

import lancetable as lt
from lancetable.commit.versions import load
from lancetable.errors import StoreError
from lancetable.store import Store, TableLocation
from lancetable.store.wrap import WrappedStore
from tests.crash.aftermath import state
from tests.crash.misled import ANSWERS, Fault
from tests.crash.test_reference_faults import ACTS, check_whole, prepared

_T = TypeVar("_T")
VERBS = {"exists": {"put_if_absent"}, "missing": {"put_if_absent"}, "odd": {"put_if_absent"}}
"""Which calls may be answered so; a lost answer may be that of any call that changes something."""
CHANGING = {"put_if_absent", "put", "delete"}


@dataclass
class Liar:
    """The fault of all stores of a place, and what it struck."""

    fault: Fault
    verbs: set[str]
    struck: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, verb: str, path: str) -> None:
        if verb in self.verbs:
            try:
                self.fault.strike(path)
            except Exception:
                self.struck.append((verb, path))
                raise


class MisleadingStore(WrappedStore):
    def __init__(self, inner: Store, liar: Liar) -> None:
        super().__init__(inner)
        self._liar = liar

    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        done = action()
        self._liar.answer(verb, path)
        return done


class MisleadingPlace(TableLocation):
    """A location all of whose stores mislead at one call."""

    def __init__(self, uri: str, *, liar: Liar) -> None:
        super().__init__(uri)
        self.liar = liar

    def open(self) -> Store:
        return MisleadingStore(super().open(), self.liar)


def named(table: lt.Table) -> tuple[object, ...]:
    """Return what has a name, and the rows under it."""
    tags = {name: tag.version for name, tag in table.tags.items()}
    branches = {name: state(lt.open_table(table.uri, branch=name)) for name in table.branches}
    return tags, branches, state(table)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("name", ACTS)
def test_a_change_is_recognised(tmp_path: Path, name: str, answer: str) -> None:
    twin = tmp_path / "twin"
    prepared(twin)
    before = named(lt.open_table(twin))
    ACTS[name](lt.open_table(twin))
    expected = named(lt.open_table(twin))
    for number in range(20):
        path = tmp_path / str(number)
        prepared(path)
        liar = Liar(Fault(1 << 30, ANSWERS[answer]), VERBS.get(answer, CHANGING))
        location = MisleadingPlace(str(path), liar=liar)
        table = lt.Table(location, load(location))
        liar.fault.number, liar.fault.calls = number, 0
        problem: Exception | None = None
        try:
            ACTS[name](table)
        except StoreError as error:
            problem = error
        what = f"{liar.struck}: {problem!r}"
        after = check_whole(path)
        if not liar.struck:
            assert problem is None, what
            assert named(after) == expected
            break
        ((verb, where),) = liar.struck
        if verb == "put_if_absent" or (where.startswith("_refs/") and verb in {"put", "delete"}):
            assert problem is None, what
        assert named(after) in ([expected] if problem is None else [before, expected]), what
    else:
        raise AssertionError("the change never went through")
