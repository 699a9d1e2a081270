"""Damaged index files: queries and merges end with rows or with an error of this library."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancetable as lt
from tests.fuzz.mutate import damage

ROWS = 300
TRIALS = 10
CASES: dict[str, tuple[str, Any, str]] = {
    "btree": ("n", "btree", "n = 7"),
    "btree of texts": ("s", "btree", "s > 'v3'"),
    "bitmap": ("n", "bitmap", "n in (7, 8)"),
    "label_list": ("l", "label_list", "array_has(l, 7)"),
    "zonemap": ("n", lt.ZoneMap(rows_per_zone=50), "n = 7"),
    "bloomfilter": ("n", lt.BloomFilter(items=50), "n = 7"),
    "ngram": ("s", "ngram", "contains(s, 'v1 ')"),
    "json": ("j", lt.JsonPath("a"), "json_get_int(j, 'a') = 7"),
}


def rows(first: int) -> pa.Table:
    numbers = [None if one % 13 == 0 else one % 40 for one in range(first, first + ROWS)]
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "s": [None if one is None else f"v{one} text" for one in numbers],
            "l": pa.array([[one, 3] for one in numbers], pa.list_(pa.int64())),
            "j": pa.array([f'{{"a":{one or 0}}}' for one in numbers], pa.json_()),
        }
    )


@pytest.mark.parametrize("case", CASES)
def test_damaged_index_files(tmp_path: Path, case: str) -> None:
    column, kind, where = CASES[case]
    lt.create_table(tmp_path / "t", rows(0)).indices.create(column, kind)
    lt.open_table(tmp_path / "t").append(rows(ROWS))
    files = {path: path.read_bytes() for path in tmp_path.glob("t/_indices/*/*.lance")}
    chance = random.Random(case)
    for trial in range(TRIALS):
        place, whole = chance.choice(sorted(files.items()))
        data, _ = damage(chance, whole, 0, len(whole))
        # Opened segments are kept by their folder, so each trial has a folder of its own.
        moved = tmp_path / f"t{trial}"
        moved.mkdir()
        for path in tmp_path.glob("t/**/*"):
            if path.is_file():
                target = moved / path.relative_to(tmp_path / "t")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data if path == place else path.read_bytes())
        for act in (
            lambda table: table.count(where),
            lambda table: table.indices.optimize(mode="merge"),
            lambda table: table.count(where),
        ):
            with suppress(lt.LanceTableError):
                act(lt.open_table(moved))
