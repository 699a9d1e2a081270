"""A store carries out the claim of a version and answers that it did not.

The version carries the uuid of the transaction, so the change is recognised: it is reported as
done, it is there exactly once, and no file that it names was removed.
"""

from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import lancetable as lt
from lancetable.commit.options import CreateMode
from lancetable.commit.versions import load
from lancetable.operations.create import CreateOptions, create
from lancetable.store.memory import MemoryStore
from tests.acts import ACTS, make_base, rows_from
from tests.crash.aftermath import check_whole, paths, state
from tests.crash.misled import ANSWERS, KINDS, Fault, Place, Scene

USUAL = lt.CommitOptions()
MODES = list(CreateMode)


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def base(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The objects of a table that all acts fit."""
    folder: Path = tmp_path_factory.mktemp("misled") / "base"
    make_base(folder, stable=request.param)
    return {
        one.relative_to(folder).as_posix(): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file()
    }


def _raced(place: Place) -> None:
    """Let another writer delete rows of the fragment that most acts change."""
    lt.Table(place, load(place)).delete("id = 9")


def run(base: dict[str, bytes], scene: Scene, name: str, *, is_raced: bool) -> None:
    """Run an act with a wrong answer, and compare with the same act without one."""
    good = Place(MemoryStore(base))
    expected = lt.Table(good, load(good))
    handle = lt.Table(scene.place, load(scene.place))
    if is_raced:
        _raced(good)
        _raced(scene.honest)  # type: ignore[arg-type]
    ACTS[name].run(expected, USUAL)
    ACTS[name].run(handle, USUAL)
    assert scene.fault.has_struck
    after = check_whole(scene.honest)
    assert after.version == handle.version == expected.version
    assert state(after) == state(expected)
    # No file too many, either: what the misled act wrote besides is gone.
    folders = ("data/", "_deletions/", "_transactions/")
    kept = [sum(path.startswith(folders) for path in paths(one)) for one in (
        after._snapshot.store, expected._snapshot.store)]  # fmt: skip
    assert kept[0] == kept[1]
    rows = after.count()
    after.append(rows_from(5000, 1).select(["id", "x"]))
    assert check_whole(scene.honest).count() == rows + 1


def pairwise() -> list[Any]:
    """Give each act two of the kinds and answers, so that every pair of those comes up."""
    faults = cycle([(kind, answer) for kind in KINDS for answer in ANSWERS])
    return [(act, *next(faults), raced) for act in ACTS for raced in (False, True)]


@pytest.mark.parametrize(("act", "kind", "answer", "is_raced"), pairwise())
def test_a_claim_is_recognised(
    base: dict[str, bytes], tmp_path: Path, act: str, kind: str, answer: str, is_raced: bool
) -> None:
    scene = KINDS[kind](base, Fault(0, ANSWERS[answer]), tmp_path)
    run(base, scene, act, is_raced=is_raced)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("act", ACTS)
def test_every_claim_is_recognised(
    base: dict[str, bytes], tmp_path: Path, act: str, kind: str
) -> None:
    for number, answer in enumerate(ANSWERS.values()):
        for is_raced in (False, True):
            folder = tmp_path / f"{number}{is_raced}"
            folder.mkdir()
            run(base, KINDS[kind](base, Fault(0, answer), folder), act, is_raced=is_raced)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_a_table_is_created_once(tmp_path: Path, kind: str, mode: CreateMode) -> None:
    for number, answer in enumerate(ANSWERS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        scene = KINDS[kind]({}, Fault(0, answer), folder)
        made = create(scene.place, rows_from(0, 5), options=CreateOptions(mode=mode))
        assert scene.fault.has_struck
        assert made.result.rows == 5
        after = check_whole(scene.honest)
        assert (after.version, after.count()) == (1, 5)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_strict_and_a_detached_commit_are_recognised(
    base: dict[str, bytes], tmp_path: Path, answer: str
) -> None:
    for options in (lt.CommitOptions(strict=True), lt.CommitOptions(detached=True)):
        scene = KINDS["plain"](base, Fault(0, ANSWERS[answer]), tmp_path)
        table = lt.Table(scene.place, load(scene.place))
        table.append(rows_from(100, 3), commit=options)
        assert scene.fault.has_struck
        found = lt.Table(scene.honest, load(scene.honest, version=table.version))
        assert found.count() == 33
        assert check_whole(scene.honest).count() == (30 if options.detached else 33)
