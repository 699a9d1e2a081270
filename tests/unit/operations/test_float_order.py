"""Floats as keys and in sorted fragments follow the order of predicates."""

import math
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt

VALUES = [math.nan, 1.0, -math.nan, -0.0, math.inf, None, -1.0, -math.inf, 0.0]
SORTED = ["-nan", "-inf", "-1.0", "-0.0", "0.0", "1.0", "inf", "nan", "None"]


def shown(value: float | None) -> str:
    is_low = value is not None and math.copysign(1.0, value) < 0
    return "-nan" if is_low and math.isnan(value or 0.0) else str(value)


@pytest.mark.parametrize("type_", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_compaction_sorts_nan_last_and_negative_nan_first(
    type_: pa.DataType, tmp_path: Path
) -> None:
    table = lt.create_table(tmp_path / "t", pa.table({"f": pa.array(VALUES, type_)}))
    table.append(pa.table({"f": pa.array(VALUES, type_)}))
    table.compact(sort_by=["f"])
    found = [shown(value) for value in table.scan().to_arrow()["f"].to_pylist()]
    expected = [one for one in SORTED for _ in range(2)]
    zeros = slice(expected.index("-0.0"), expected.index("-0.0") + 4)
    expected[zeros] = found[zeros]
    assert sorted(found[zeros]) == ["-0.0", "-0.0", "0.0", "0.0"]
    assert found == expected


@pytest.mark.parametrize("type_", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_merges_match_what_predicates_call_equal(type_: pa.DataType, tmp_path: Path) -> None:
    def rows(values: list[float], text: str) -> pa.Table:
        return pa.table({"f": pa.array(values, type_), "t": [text] * len(values)})

    table = lt.create_table(tmp_path / "t", rows([math.nan, -math.nan, 0.0, 1.0], "old"))
    source = rows([-math.nan, -0.0, 2.0], "new")
    table.merge(source, "f").when_matched_update_all().when_not_matched_insert_all().execute()
    found = table.scan().to_arrow().to_pylist()
    assert sorted((shown(row["f"]), row["t"]) for row in found) == [
        ("-0.0", "new"),
        ("-nan", "new"),
        ("1.0", "old"),
        ("2.0", "new"),
        ("nan", "old"),
    ]
