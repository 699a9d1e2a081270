"""Scans that include deleted rows return the rows of a plain list with flags."""

import random
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lancetable

WORDS = [f"kind of thing number {number}" for number in range(5)]


class Row(NamedTuple):
    """A row that the version still has in its files."""

    values: dict[str, Any]
    is_deleted: bool


class Kept(NamedTuple):
    """A table and the rows in its files."""

    table: lancetable.Table
    rows: list[Row]


def _made(folder: Path, seed: int, fragment_rows: int, *, stable: bool) -> Kept:
    """Make a table of several data files per fragment and delete rows of it at random."""
    chance = random.Random(seed)
    count = 600 if fragment_rows < 100 else 6_000
    rows: list[dict[str, Any]] = [
        {"id": n, "word": WORDS[n % 5], "run": n // 50, "text": f"text {n * 7919 % 1000}"}
        for n in range(count)
    ]
    table = lancetable.create_table(
        str(folder / f"{seed}"),
        pa.Table.from_pylist(rows),
        max_rows_per_file=fragment_rows,
        stable_row_ids=stable,
    )
    table.columns.add({"twice": "id * 2"})
    gone: set[int] = set()
    for share in (0.05, 0.5):
        part = set(chance.sample(range(count), int(share * count / 4)))
        first = chance.randrange(count)
        part |= set(range(first, min(first + fragment_rows // 2, count)))
        table.delete(f"id in ({', '.join(map(str, part))})")
        gone |= part
    kept = []
    for row in rows:
        first = row["id"] // fragment_rows * fragment_rows
        is_removed = all(n in gone for n in range(first, min(first + fragment_rows, count)))
        if not is_removed:
            kept.append(Row(row | {"twice": row["id"] * 2}, row["id"] in gone))
    return Kept(table, kept)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Kept]:
    """Return tables of small and of large fragments, with and without stable row ids."""
    folder = tmp_path_factory.mktemp("deleted")
    return [
        _made(folder, 1, 20, stable=False),
        _made(folder, 2, 20, stable=True),
        _made(folder, 3, 2_500, stable=False),
        _made(folder, 4, 2_500, stable=True),
    ]


PREDICATES = [
    (None, lambda _: True),
    ("_rowid IS NULL", lambda row: row.is_deleted),
    ("_rowid IS NOT NULL", lambda row: not row.is_deleted),
    ("_rowaddr IS NULL AND run = 3", lambda row: row.is_deleted and row.values["run"] == 3),
    ("id < 300", lambda row: row.values["id"] < 300),
    (
        "id < 300 AND id > 280 AND _rowid IS NULL",
        lambda row: row.is_deleted and 280 < row.values["id"] < 300,
    ),
    ("twice > 100 AND run = 4", lambda row: row.values["twice"] > 100 and row.values["run"] == 4),
    ("word = 'kind of thing number 3'", lambda row: row.values["word"] == WORDS[3]),
    ("run in (1, 7) and word <> 'x'", lambda row: row.values["run"] in {1, 7}),
    (
        "text like '%11' or twice = 6",
        lambda row: row.values["text"].endswith("11") or row.values["id"] == 3,
    ),
]


@given(
    number=st.integers(0, 3),
    predicate=st.sampled_from(PREDICATES),
    columns=st.lists(st.sampled_from(["id", "word", "run", "text", "twice"]), unique=True),
    window=st.tuples(st.sampled_from([None, 0, 1, 25, 700]), st.sampled_from([0, 1, 30, 5_000])),
    batch_bytes=st.sampled_from([2_000, 8 << 20]),
)
def test_rows_and_flags(
    tables: list[Kept],
    number: int,
    predicate: tuple[str | None, Any],
    columns: list[str],
    window: tuple[int | None, int],
    batch_bytes: int,
) -> None:
    table, rows = tables[number]
    where, holds = predicate
    limit, offset = window
    passed = [row for row in rows if holds(row)][offset:]
    passed = passed if limit is None else passed[:limit]
    scan = table.scan(
        columns,
        where=where,
        limit=limit,
        offset=offset,
        with_row_id=True,
        include_deleted=True,
        batch_bytes=batch_bytes,
    )
    found = scan.to_arrow()
    found.validate(full=True)
    assert [value is None for value in found["_rowid"].to_pylist()] == [
        row.is_deleted for row in passed
    ]
    assert found.select(columns).to_pylist() == [
        {name: row.values[name] for name in columns} for row in passed
    ]
    streamed = pa.Table.from_batches(scan.to_batches(), scan.schema)
    assert streamed.combine_chunks().equals(found.combine_chunks())
    assert scan.count() == len(passed)


def test_live_rows_keep_their_row_ids(tables: list[Kept]) -> None:
    for table, rows in tables:
        columns = ["id", "_rowaddr"]
        every = table.scan(columns, with_row_id=True, include_deleted=True).to_arrow().to_pylist()
        live = table.scan(columns, with_row_id=True).to_arrow().to_pylist()
        assert [row for row in every if row["_rowid"] is not None] == live
        assert sum(not row.is_deleted for row in rows) == table.count() == len(live)
