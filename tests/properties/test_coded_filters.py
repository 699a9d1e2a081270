"""Filters on pages of few values are asked of the values, and find the same rows."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lancetable
from lancetable.errors import ExpressionError
from lancetable.format.encoding.codes import Codes, Runs
from lancetable.fragment.readers import Readers
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest, parse_where

ROWS = 4_000

_WORDS = [f"kind of thing number {number}" for number in range(7)]
Predicate = tuple[str, Callable[[dict[str, Any]], bool]]

_PREDICATES: list[Predicate] = [
    ("word = 'kind of thing number 3'", lambda row: row["word"] == _WORDS[3]),
    ("word is null", lambda row: row["word"] is None),
    ("word <> 'kind of thing number 3'", lambda row: row["word"] not in {None, _WORDS[3]}),
    ("word like '%5' or word is null", lambda row: row["word"] in {None, _WORDS[5]}),
    ("run > 2", lambda row: row["run"] > 2),
    ("run in (0, 4) and word is not null", lambda row: row["run"] in {0, 4} and bool(row["word"])),
    ("same = 9", lambda row: row["same"] == 9),
    ("same = 8", lambda row: row["same"] == 8),
    ("none is null and run = 1", lambda row: row["run"] == 1),
    ("none = 1", lambda _: False),
    ("some = 5", lambda row: row["some"] == 5),
    ("id < 100 and word is not null", lambda row: row["id"] < 100 and row["word"] is not None),
    ("run = id", lambda row: row["run"] == row["id"]),
]


def _rows(seed: int, *, with_nulls: bool) -> pa.Table:
    picks = [(number * 7919 + seed) % 11 for number in range(ROWS)]
    words = [_WORDS[pick] if pick < 7 else (None if with_nulls else _WORDS[0]) for pick in picks]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "word": pa.array(words, pa.string()),
            "run": pa.array([(number // 37 + seed) % 5 for number in range(ROWS)], pa.int64()),
            "same": pa.array([9] * ROWS, pa.int32()),
            "none": pa.nulls(ROWS, pa.int64()),
            "some": pa.array([5 if pick else None for pick in picks], pa.int64()),
        }
    )


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def tables(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[lancetable.Table, list[dict[str, Any]]]]:
    """Tables with and without nulls, one of them with deleted rows."""
    made = []
    folder = tmp_path_factory.mktemp("coded")
    for seed, with_nulls in ((0, False), (3, True)):
        data = _rows(seed, with_nulls=with_nulls)
        table = lancetable.create_table(
            str(folder / f"table-{seed}"),
            data,
            max_rows_per_file=3_000,
            storage_version=request.param,
        )
        made.append((table, data.to_pylist()))
    data = _rows(5, with_nulls=True)
    worn = lancetable.create_table(str(folder / "worn"), data, storage_version=request.param)
    worn.delete("id % 3 = 1")
    made.append((worn, [row for row in data.to_pylist() if row["id"] % 3 != 1]))
    return made


@given(
    number=st.integers(0, 2),
    predicate=st.sampled_from(_PREDICATES),
    columns=st.lists(st.sampled_from(["id", "word", "run", "same", "none", "some"]), unique=True),
    batch_bytes=st.sampled_from([2_000, 50_000, 8 << 20]),
)
def test_the_same_rows_are_found(
    tables: list[tuple[lancetable.Table, list[dict[str, Any]]]],
    number: int,
    predicate: Predicate,
    columns: list[str],
    batch_bytes: int,
) -> None:
    table, rows = tables[number]
    where, holds = predicate
    wanted = [{name: row[name] for name in columns} for row in rows if holds(row)]
    scan = table.scan(columns=columns, where=where, batch_bytes=batch_bytes)
    assert sum(batch.num_rows for batch in scan.to_batches()) == len(wanted)
    assert table.count(where=where) == len(wanted)
    if columns:
        found = scan.to_arrow()
        found.validate(full=True)
        assert found.to_pylist() == wanted


def _chunks(table: lancetable.Table, where: str) -> list[object]:
    planned = plan(table._snapshot.manifest.schema, ScanRequest(where=parse_where(where)))
    found = Readers(table._snapshot)[0].read_coded(planned.early, 0, 2_000)
    return [] if found is None else [type(chunk) for chunk in found(0)]


def test_pages_of_few_values_are_not_decoded(
    tables: list[tuple[lancetable.Table, list[dict[str, Any]]]],
) -> None:
    plain, missing = tables[0][0], tables[1][0]
    assert _chunks(plain, "word = 'x'") == [Codes]
    assert _chunks(missing, "word = 'x'") == [Codes]
    assert _chunks(plain, "run = 1")[0] in {Runs, Codes}
    assert _chunks(plain, "same = 1") == [Runs]
    assert _chunks(plain, "none = 1") == [Runs]
    assert _chunks(plain, "id = 1") == []


def test_a_value_that_no_row_has_makes_no_error(tmp_path: Any) -> None:
    words = ["1", "2", "x"] * 1_000
    table = lancetable.create_table(
        str(tmp_path / "t"), pa.table({"id": range(3_000), "word": words}), storage_version="2.1"
    )
    table.delete("word = 'x'")
    assert table.count(where="cast(word as int) = 2") == 1_000
    with pytest.raises(ExpressionError):
        table.checkout(1).count(where="cast(word as int) = 2")


def test_what_may_fail_is_never_overtaken(tmp_path: Any) -> None:
    flags = pa.array([number % 2 for number in range(6_000)], pa.int64())
    words = [("7", "x")[number % 2] for number in range(6_000)]
    table = lancetable.create_table(tmp_path / "t", pa.table({"flag": flags, "word": words}))
    assert table.count(where="flag = 0 AND cast(word as int) = 7") == 3_000
    assert table.count(where="flag is null AND cast(word as int) = 7") == 0
    for where in (
        "cast(word as int) = 7 AND flag is null",
        "flag is not null AND cast(word as int) = 7 AND flag is null",
    ):
        with pytest.raises(ExpressionError):
            table.count(where=where)
