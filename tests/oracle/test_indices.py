"""Indices that pylance builds and moves answer as a scan does, on random tables and predicates."""

import os
import random

import lance
import pyarrow as pa
import pytest

import lancetable as lt

pytestmark = pytest.mark.oracle

TABLES = int(os.environ.get("LANCETABLE_INDEX_TABLES", "8"))
PREDICATES = 25
WORDS = ["red", "green", "blue", "", "re", "Red", "grün"]
FLOATS = [-float("inf"), -1.5, -0.0, 0.0, 1.0, 2.5, float("inf"), float("nan")]
KINDS = {
    "i": ["BTREE", "BITMAP", "ZONEMAP"],
    "f": ["BTREE", "BITMAP", "ZONEMAP"],
    "s": ["BTREE", "BITMAP", "ZONEMAP"],
    "l": ["LABEL_LIST"],
}


def rows(draw: random.Random, first: int, count: int) -> pa.Table:
    def some(values):
        return [None if draw.random() < 0.1 else draw.choice(values) for _ in range(count)]

    lists = [
        None if draw.random() < 0.1 else some(WORDS[:3])[: draw.randrange(3)] for _ in range(count)
    ]
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "i": pa.array(some(range(-20, 20)), pa.int32()),
            "f": pa.array(some(FLOATS), pa.float64()),
            "s": pa.array(some(WORDS), pa.string()),
            "l": pa.array(lists, pa.list_(pa.string())),
        }
    )


def part(draw: random.Random) -> str:
    number, other = sorted(draw.randrange(-22, 22) for _ in range(2))
    real = draw.choice(["-1.5", "0.0", "-0.0", "1.0", "cast('NaN' as double)"])
    word = draw.choice(WORDS)
    op = draw.choice(["=", "<", "<=", ">", ">=", "!="])
    return draw.choice(
        [
            f"i {op} {number}",
            f"i between {number} and {other}",
            f"i in ({number}, {other}, 3)",
            f"i not in ({number})",
            "i is null",
            "i is not null",
            f"f {op} {real}",
            "f is null",
            f"s {op} '{word}'",
            f"s in ('{word}', 'blue')",
            f"s like '{word[:2]}%'",
            "s is null",
            f"starts_with(s, '{word[:1]}')",
            f"array_has(l, '{word}')",
            "array_has_any(l, ['red', 'blue'])",
            "array_has_all(l, ['red', 'green'])",
            "id % 7 = 3",
        ]
    )


def predicate(draw: random.Random, depth: int = 2) -> str:
    if depth == 0 or draw.random() < 0.4:
        return part(draw)
    operands = [predicate(draw, depth - 1) for _ in range(draw.randrange(1, 4))]
    joined = f"({draw.choice([' and ', ' or ']).join(operands)})"
    return f"not {joined}" if draw.random() < 0.2 else joined


def change(draw: random.Random, uri: str, first: int) -> None:
    dataset = lance.dataset(uri)
    deferred = not dataset.has_stable_row_ids
    match draw.randrange(6):
        case 0:
            lance.write_dataset(rows(draw, first, draw.randrange(1, 60)), uri, mode="append")
        case 1:
            dataset.delete(f"id % {draw.randrange(5, 12)} = 1")
        case 2:
            dataset.update({"i": "i + 1"}, where=f"id % {draw.randrange(5, 12)} = 2")
        case 3:
            defer = deferred and draw.random() < 0.5
            dataset.optimize.compact_files(target_rows_per_fragment=200, defer_index_remap=defer)
        case 4:
            dataset.optimize.optimize_indices(num_indices_to_merge=draw.randrange(2))
        case _:
            lt.open_table(uri).compact(target_rows=200)


@pytest.mark.parametrize("seed", range(TABLES))
def test_answers_with_indices_are_those_without(tmp_path, seed):
    draw = random.Random(seed)
    uri = str(tmp_path / "t")
    stable = seed % 2 == 1
    first = rows(draw, 0, 300)
    dataset = lance.write_dataset(
        first, uri, max_rows_per_file=100, enable_stable_row_ids=stable, data_storage_version="2.1"
    )
    for column, kinds in KINDS.items():
        dataset.create_scalar_index(column, draw.choice(kinds))
    used = 0
    for step in range(4):
        table = lt.open_table(uri)
        for _ in range(PREDICATES):
            where = predicate(draw)
            scan = table.scan(["id"], where=where)
            found = scan.to_arrow()["id"].to_pylist()
            plain = table.scan(["id"], where=where, use_indices=False).to_arrow()["id"].to_pylist()
            assert found == plain, where
            assert table.count(where) == len(plain), where
            used += "index " in scan.explain()
        change(draw, uri, 1000 * (step + 1))
    assert used
