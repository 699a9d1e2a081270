"""Whatever a public name is given, what comes out is an answer or an error of the library."""

import inspect
import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.table.argument_errors import described, explains, fits, hints_of

ROWS = {"id": [1, 2, 3], "s": ["a", "b", None], "v": [[1.0, 2.0]] * 3}
WRONG = [
    None, 5, -1, 1.5, "zz", b"x", [], ["zz"], [5], {}, {"zz": "1"}, {5: 5}, object(), True,
    float("nan"), 10**30, timedelta(0),
]  # fmt: skip
RIGHT: dict[str, object] = {
    "text": "some words",
    "data": ROWS,
    "source": ROWS,
    "where": "id = 1",
    "set": {"id": "id + 1"},
    "values": {"s": "'x'"},
    "on": "id",
    "columns": ["id"],
    "entries": {"a": "b"},
    "from_version": 1,
    "metadata": {"a": "b"},
    "name": "s",
    "names": ["id", "s", "v"],
    "new": "t",
    "nullable": True,
    "old": "s",
    "other": 1,
    "rows": 1,
    "type": pa.large_string(),
    "uri": "memory://wrong/clone",
    "version": 1,
    "fragments": [],
    "folders": {"more": "memory://wrong/more"},
    "column": "s",
    "spec": "btree",
    "query": "a",
}
PLACES = itertools.count()


def _table() -> lt.Table:
    return lt.create_table(f"memory://wrong/{next(PLACES)}", ROWS)


def _owners(table: lt.Table) -> dict[str, object]:
    parts = ("tags", "branches", "columns", "config", "bases", "indices", "maintenance")
    return {"table": table, **{name: getattr(table, name) for name in parts}}


def _calls() -> Iterator[tuple[str, str, str]]:
    for owner, value in _owners(_table()).items():
        for name in dir(type(value)):
            method = getattr(type(value), name)
            if name.startswith("_") or name == "get" or not callable(method):
                continue
            for parameter in list(inspect.signature(method).parameters.values())[1:]:
                if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                    yield owner, name, parameter.name


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what a strange name makes be made where it does no harm."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("owner", "name", "argument"), [*_calls()])
def test_a_wrong_argument_gives_one_clear_error(owner: str, name: str, argument: str) -> None:
    table, answers = _table(), 0
    for wrong in WRONG:
        method = getattr(_owners(table)[owner], name)
        parameters = inspect.signature(method).parameters.values()
        needed = [one.name for one in parameters if one.default is one.empty]
        right = dict(RIGHT)
        if "prepared" in needed:
            right["prepared"] = table.delete_uncommitted("id = 1")
        given = {one: right[one] for one in needed if one in right and one != argument}
        try:
            _drain(method(**given, **{argument: wrong}))
            answers += 1
        except lt.LanceTableError as error:
            assert str(error)
        if answers:
            table, answers = _table(), 0


def _drain(result: object) -> None:
    """Have an answer that comes later come now."""
    later = getattr(result, "to_batches", None)
    if later is not None:
        list(later())
    elif isinstance(result, Iterator):
        list(result)


def test_the_error_names_the_argument_and_what_fits() -> None:
    table = _table()
    with pytest.raises(lt.InputError) as caught:
        table.clone("memory://wrong/c", storage_options=5)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "storage_options of clone() is 5; it takes a mapping of str to str or None"
    )
    assert isinstance(caught.value.__cause__, TypeError)
    assert table.refresh().version == 1


def test_a_fault_of_the_library_stays_as_it_is() -> None:
    @explains
    def broken(rows: int) -> None:
        raise TypeError(rows)

    with pytest.raises(TypeError):
        broken(5)
    with pytest.raises(lt.InputError, match=r"rows of broken\(\) is 'x'; it takes int"):
        broken("x")  # type: ignore[arg-type]


def test_an_error_of_a_callback_reaches_the_caller() -> None:
    def fail(_: object) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        _table().append(ROWS, merge_schema=5, progress=fail)  # type: ignore[arg-type]


def test_every_annotation_is_resolved() -> None:
    for owner in _owners(_table()).values():
        for name, method in vars(type(owner)).items():
            if callable(method) and not name.startswith("_") and name != "hold":
                known = hints_of(method)
                given = inspect.signature(method).parameters.values()
                missing = [
                    one.name
                    for one in given
                    if one.name not in {"self", "table", *known}
                    and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
                ]
                assert not missing, (name, missing)


@pytest.mark.parametrize(
    ("value", "kind", "answer"),
    [
        (5, int, True),
        (True, int, False),
        (5, float, True),
        ("a", list[str], False),
        (["a"], list[str], True),
        ([5], list[str], False),
        ({"a": None}, dict[str, str | None], True),
        ({5: None}, dict[str, str | None], False),
        (None, str | None, True),
        (len, Callable[[str], int], True),
        (5, Callable[[str], int], False),
        (5, "a name that nobody knows", True),
    ],
)
def test_what_fits(value: object, kind: object, answer: bool) -> None:
    assert fits(value, kind) is answer
    assert described(kind)
