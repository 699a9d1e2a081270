"""Tables whose data files lie in several folders."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import InputError, StoreError
from lancetable.fragment.write.writer import WriteTarget

ROWS = pa.table({"a": list(range(10))})


def spread(*bases: str) -> Any:
    return {"max_rows_per_file": 2, "target_bases": bases}


@pytest.fixture
def table(tmp_path: Path) -> lt.Table:
    bases = {"one": tmp_path / "one", "two": tmp_path / "two"}
    return lt.create_table(tmp_path / "t", ROWS, bases=bases, **spread("one", "two"))


def bases_of(table: lt.Table) -> list[int | None]:
    return [file.base_id for fragment in table.fragments for file in fragment.files]


@pytest.mark.parametrize("data", [ROWS, iter(ROWS.to_batches())], ids=["table", "stream"])
def test_files_go_to_the_bases_in_turn(table: lt.Table, tmp_path: Path, data: object) -> None:
    assert bases_of(table) == [1, 2, 1, 2, 1]
    assert len(list((tmp_path / "one").iterdir())) == 3
    table.bases.add({"three": tmp_path / "three"})
    table.append(data, **spread("three", str(tmp_path / "two")))
    assert bases_of(table)[5:] == [3, 2, 3, 2, 3]
    table.append(ROWS)
    assert bases_of(table)[10:] == [None]
    assert lt.open_table(table.uri).scan().to_arrow() == pa.concat_tables([ROWS] * 3)


def test_changes_stay_with_the_table(table: lt.Table) -> None:
    table.delete("a = 3")
    table.update({"a": "a + 100"}, where="a = 4")
    table.columns.add({"b": "a"})
    assert None in bases_of(table)
    assert sorted(table.scan(["a"]).to_arrow()["a"].to_pylist()) == [0, 1, 2, 5, 6, 7, 8, 9, 104]
    table.overwrite(ROWS, **spread("two"))
    assert bases_of(table) == [2] * 5


def test_a_branch_and_a_clone_know_the_bases(table: lt.Table, tmp_path: Path) -> None:
    dev = table.branches.create("dev")
    dev.append(ROWS, **spread("two"))
    table.branches.fast_forward("dev")
    assert bases_of(table)[5:] == [2] * 5
    deep = table.clone(tmp_path / "deep", deep=True)
    assert not deep.bases
    assert deep.scan().to_arrow() == table.scan().to_arrow()
    shallow = table.clone(tmp_path / "shallow")
    assert {base.name for base in shallow.bases.values()} == {"one", "two", None}
    assert shallow.scan().to_arrow() == table.scan().to_arrow()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda t: t.append(ROWS, **spread("four")), "no base 'four'; known are: 'one', 'two'"),
        (lambda t: t.bases.add({"one": "elsewhere"}), "shares its id, name or path"),
        (lambda t: t.bases.add({}), "at least one"),
        (lambda t: t.bases.add({"x": "same", "y": "same"}), "a folder of its own"),
        (lambda t: t.update({"a": "1"}, **spread("one")), "stay in the folder of the table"),
        (
            lambda t: lt.create_table(t.uri, ROWS, mode="overwrite", bases={"x": "y"}),
            "add them with add_bases",
        ),
    ],
)
def test_what_is_refused(table: lt.Table, act, words: str) -> None:
    with pytest.raises(InputError, match=words):
        act(table)
    assert lt.open_table(table.uri).version == 1


def test_files_of_a_failed_write_are_removed_everywhere(
    table: lt.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("no commit today")

    monkeypatch.setattr("lancetable.operations.rows.new_fragments.commit", fail)
    with pytest.raises(StoreError, match="no commit today"):
        table.append(ROWS, **spread("one", "two"))
    assert len(list((tmp_path / "one").iterdir())) + len(list((tmp_path / "two").iterdir())) == 5
    assert WriteTarget(table._snapshot.store).turned(3).others == ()
