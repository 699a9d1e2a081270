"""Two writers who read the same version: every pair of operations, in both orders.

``tests/golden/commit/conflicts.csv`` says what pylance does with each pair. Ours is never weaker:
where pylance refuses, so do we. What lands is one of the two serial orders; what is refused leaves
nothing behind.
"""

import csv
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancetable as lt
from tests.acts import ACTS, BASE_VERSION, ONCE, make_base, rows_from
from tests.conftest import GOLDEN

pytestmark = pytest.mark.oracle

Change = Callable[[Path], Any]
RANKS = {"ok": 0, "retry": 1, "stop": 2}


THEIRS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "append": ("Append", lambda d: lance.write_dataset(rows_from(100, 3), d, mode="append")),
    "overwrite": (
        "Overwrite",
        lambda d: lance.write_dataset(rows_from(200, 2), d, mode="overwrite"),
    ),
    "delete rows": ("Delete rows f0", lambda d: d.delete("id in (2, 3)", conflict_retries=0)),
    "delete a fragment": ("Delete frag f0", lambda d: d.delete("id < 10", conflict_retries=0)),
    "update": (
        "Update rows f0",
        lambda d: d.update({"x": "x + 1000"}, where="id in (4, 5)", conflict_retries=0),
    ),
    "merge": (
        "Update rows f0",
        lambda d: (
            d.merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .conflict_retries(0)
            .execute(pa.concat_tables([rows_from(8, 1), rows_from(70, 2)]))
        ),
    ),
    "add nulls": ("Merge pres", lambda d: d.add_columns(pa.field("a", pa.int32()))),
    "add computed": ("Merge pres", lambda d: d.add_columns({"b": "x * 2"})),
    "cast": ("Merge pres", lambda d: d.alter_columns({"path": "x", "data_type": pa.int64()})),
    "drop": ("Project pres", lambda d: d.drop_columns(["y"])),
    "rename": ("Project pres", lambda d: d.alter_columns({"path": "y", "name": "z"})),
    "index": ("CreateIndex id f0-2", lambda d: d.create_scalar_index("id", "BTREE")),
    "compact": ("Rewrite f0", lambda d: d.optimize.compact_files()),
    "config k": ("UpdateConfig k", lambda d: d.update_config({"k": "1"})),
}
THEIR_ROWS = {
    "delete rows": {2, 3}, "delete a fragment": set(range(10)), "update": {4, 5}, "merge": {8},
}  # fmt: skip


@cache
def _matrix() -> dict[tuple[str, str], str]:
    with (GOLDEN / "commit" / "conflicts.csv").open(newline="") as file:
        header, *lines = list(csv.reader(file))
    return {
        (line[0], name): cell
        for line in lines
        for name, cell in zip(header[1:], line[1:], strict=True)
    }


def required(second: str, first: str, own: set[int], other: set[int]) -> str:
    """Return what pylance answers at least to ``second`` when ``first`` was committed.

    The matrix was measured without telling which rows are deleted; when that is told, different
    rows of one fragment are merged.
    """
    answer = _matrix()[second, first]
    mergeable = ("Delete rows", "Update rows")
    if second.startswith(mergeable) and first.startswith(mergeable) and not own & other:
        return "ok"
    if second.startswith("DataReplacement") and first.startswith("Project"):
        # Measured with a Project that drops the column; others do no harm.
        return "ok"
    return answer.removesuffix("*")


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three fragments, one column of them in files of its own."""
    path = tmp_path_factory.mktemp("pairs") / "base"
    make_base(path, stable=request.param)
    return path


def portrait(path: Path) -> tuple[Any, ...]:
    """Return all that a version holds, without the order of rows."""
    table = lt.open_table(path)
    rows = table.scan().to_arrow().to_pylist()
    fields = [(one.name, str(one.type), one.nullable, one.metadata) for one in table.schema]
    return (
        fields,
        sorted(map(repr, rows)),
        dict(table.config),
        dict(table.metadata),
        table.schema.metadata,
    )


def files(path: Path) -> set[str]:
    """Return all files but the hint, which may be late."""
    return {
        str(one.relative_to(path))
        for one in path.rglob("*")
        if one.is_file() and "hint" not in one.name
    }


def complaints(path: Path) -> list[str]:
    """Return what pylance says against the latest version, or finds different in it."""
    dataset = lance.dataset(str(path))
    try:
        dataset.validate()
    except Exception as error:
        return [f"is not valid: {str(error)[:300]}"]
    ours = lt.open_table(path).scan().to_arrow().to_pylist()
    return [] if ours == dataset.to_table().to_pylist() else ["has other rows for pylance"]


class Place:
    """Copies of tables, and what serial orders make of them."""

    def __init__(self, base: Path, folder: Path) -> None:
        self.base = base
        self.folder = folder
        self.count = 0

    def copy(self, source: Path) -> Path:
        self.count += 1
        return Path(shutil.copytree(source, self.folder / str(self.count)))

    def serial(self, *changes: Change) -> tuple[Any, ...] | None:
        """Return the result of one change after the other; None when one cannot follow."""
        path = self.copy(self.base)
        try:
            for change in changes:
                change(path)
        except (lt.InputError, OSError, ValueError):
            return None
        result = portrait(path)
        shutil.rmtree(path)
        return result


def ours(name: str) -> Change:
    """Return an act as a change of the latest version."""
    return lambda path: ACTS[name].run(lt.open_table(path), ONCE)


def theirs(name: str) -> Change:
    """Return what pylance does as a change of the latest version."""
    return lambda path: THEIRS[name][1](lance.dataset(str(path)))


def outcome(run: Callable[[], Any]) -> str:
    """Return how an act ended."""
    try:
        run()
    except lt.ConflictError as error:
        return "retry" if error.retryable else "stop"
    return "ok"


@pytest.mark.parametrize("first", ACTS)
def test_every_act_after_another(base: Path, tmp_path: Path, first: str) -> None:
    place = Place(base, tmp_path)
    after = place.copy(base)
    ACTS[first].run(lt.open_table(after), ONCE)
    kept, only_first = files(after), portrait(after)
    weaker, wrong = [], []
    for second, act in ACTS.items():
        path = place.copy(after)
        handle = lt.open_table(path, version=BASE_VERSION)
        found = outcome(lambda act=act, handle=handle: act.run(handle, ONCE))  # type: ignore[misc]
        wanted = required(act.kind, ACTS[first].kind, set(act.rows), set(ACTS[first].rows))
        if RANKS[found] < RANKS[wanted]:
            weaker.append(f"{second} after {first}: {found}, pylance {wanted}")
        if found == "ok":
            orders = (ours(first), ours(second)), (ours(second), ours(first))
            result = portrait(path)
            if not any(result == place.serial(*order) for order in orders):
                wrong.append(f"{second} after {first}: no serial order")
        elif portrait(path) != only_first:
            wrong.append(f"{second} after {first}: refused, but the table changed")
        elif files(path) != kept:
            wrong.append(f"{second} after {first}: left {sorted(files(path) ^ kept)}")
        wrong += [f"{second} after {first}: {text}" for text in complaints(path)]
        shutil.rmtree(path)
    assert not weaker
    assert not wrong


@pytest.mark.parametrize("first", ACTS)
def test_what_is_to_be_repeated_is_repeated(base: Path, tmp_path: Path, first: str) -> None:
    """With the usual options a retryable conflict ends as the serial order, or as an error."""
    place = Place(base, tmp_path)
    after = place.copy(base)
    ACTS[first].run(lt.open_table(after), ONCE)
    wrong = []
    for second, act in ACTS.items():
        path = place.copy(after)
        handle = lt.open_table(path, version=BASE_VERSION)
        once = outcome(lambda act=act, handle=handle: act.run(handle, ONCE))  # type: ignore[misc]
        if once != "retry":
            continue
        handle = lt.open_table(path, version=BASE_VERSION)
        expected = place.serial(ours(first), ours(second))
        before = files(path)
        try:
            act.run(handle, lt.CommitOptions(attempts=3))
        except (lt.ConflictError, lt.InputError) as error:
            # What was read from the column is of another type now, which only the user can judge.
            is_honest = first == "cast" and isinstance(error, lt.ConflictError)
            if expected is not None and not is_honest:
                wrong.append(f"{second} after {first}: {error}")
            if files(path) != before:
                wrong.append(f"{second} after {first}: left {sorted(files(path) ^ before)}")
            continue
        if portrait(path) != expected:
            wrong.append(f"{second} after {first}: not the serial order")
        if handle.version != lt.open_table(path).version:
            wrong.append(f"{second} after {first}: the handle stayed behind")
    assert not wrong


@pytest.mark.parametrize("first", THEIRS)
def test_we_after_pylance(base: Path, tmp_path: Path, first: str) -> None:
    place = Place(base, tmp_path)
    after = place.copy(base)
    kind, run = THEIRS[first]
    run(lance.dataset(str(after)))
    kept, only_first = files(after), portrait(after)
    problems = []
    for second, act in ACTS.items():
        path = place.copy(after)
        handle = lt.open_table(path, version=BASE_VERSION)
        found = outcome(lambda act=act, handle=handle: act.run(handle, ONCE))  # type: ignore[misc]
        wanted = required(act.kind, kind, set(act.rows), THEIR_ROWS.get(first, set()))
        if RANKS[found] < RANKS[wanted]:
            problems.append(f"{second} after their {first}: {found}, pylance {wanted}")
        if found != "ok" and (portrait(path) != only_first or files(path) != kept):
            problems.append(f"{second} after their {first}: refused, but something changed")
        if found == "ok":
            orders = (theirs(first), ours(second)), (ours(second), theirs(first))
            result = portrait(path)
            if not any(result == place.serial(*order) for order in orders):
                problems.append(f"{second} after their {first}: no serial order")
        problems += [f"{second} after their {first}: {text}" for text in complaints(path)]
        shutil.rmtree(path)
    assert not problems


@pytest.mark.parametrize("first", ACTS)
def test_pylance_after_us(base: Path, tmp_path: Path, first: str) -> None:
    """pylance understands our transactions: it lands, or names the conflict."""
    place = Place(base, tmp_path)
    after = place.copy(base)
    ACTS[first].run(lt.open_table(after), ONCE)
    problems = []
    for second, (kind, run) in THEIRS.items():
        path = place.copy(after)
        dataset = lance.dataset(str(path), version=BASE_VERSION)
        wanted = required(
            kind, ACTS[first].kind, THEIR_ROWS.get(second, set()), set(ACTS[first].rows)
        )
        try:
            run(dataset)
            found = "ok"
        except Exception as error:
            text = str(error)
            is_conflict = "conflict" in text.lower() or "retry" in text.lower()
            found = "retry" if is_conflict else text[:200]
        if found not in RANKS:
            problems.append(f"their {second} after {first}: {found}")
        elif found == "ok" and wanted != "ok":
            problems.append(f"their {second} after {first}: landed, expected {wanted}")
        problems += [f"their {second} after {first}: {text}" for text in complaints(path)]
        shutil.rmtree(path)
    assert not problems
