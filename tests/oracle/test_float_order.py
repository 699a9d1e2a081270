"""Floats in predicates: -NaN first, NaN last, one zero, as pylance orders them."""

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.format.encoding import compiled_range

pytestmark = pytest.mark.oracle

NAN = float("nan")
NAMES = ["-0", "+0", "NaN", "-NaN", "1", "-1", "inf", "-inf", "null"]
VALUES = [-0.0, 0.0, NAN, -NAN, 1.0, -1.0, float("inf"), float("-inf"), None]
CONSTANTS = [
    "0.0",
    "-0.0",
    "1.0",
    "-1.0",
    "cast('inf' as double)",
    "cast('-inf' as double)",
    "cast('NaN' as double)",
    "-cast('NaN' as double)",
]
PREDICATES = [
    *(f"f {op} {constant}" for op in ("<", "<=", "=", "!=", ">", ">=") for constant in CONSTANTS),
    *(f"NOT (f {op} {constant})" for op in ("<", ">") for constant in CONSTANTS),
    *(f"f IS DISTINCT FROM {constant}" for constant in CONSTANTS),
    *(f"f IN ({constant}, 7.0)" for constant in CONSTANTS),
    *(f"f NOT IN ({constant}, 7.0)" for constant in CONSTANTS),
    *(f"f BETWEEN {low} AND {high}" for low in CONSTANTS[1::2] for high in CONSTANTS[::2]),
    "f NOT BETWEEN 0.0 AND 1.0",
    "f = f",
    # pylance tells the zeros of two columns apart; to us they are equal there, too.
    *(f"f {op} g AND NOT (f = 0.0 AND g = 0.0)" for op in ("<", "<=", "=", "!=", ">", ">=")),
    "isnan(f)",
    "i < cast('NaN' as double)",
    "i > -cast('NaN' as double)",
    "i <= -cast('NaN' as double)",
    *(f"f > {constant} OR i < 0" for constant in CONSTANTS),
    *(f"f <= {constant} AND i >= 0 AND isnan(f)" for constant in CONSTANTS),
]


def table_of(type_: pa.DataType, *, is_repeated: bool) -> pa.Table:
    """Return every value beside every other; among many more when they are not repeated."""
    column = [one for one in VALUES for _ in VALUES]
    other = VALUES * len(VALUES)
    names = [one for one in NAMES for _ in NAMES]
    if is_repeated:
        column, other, names = column * 20, other * 20, names * 20
    else:
        noise = np.random.default_rng(3).uniform(2, 5, 2000).tolist()
        column, other, names = column + noise, other + noise, names + ["noise"] * len(noise)
    return pa.table(
        {
            "f": pa.array(column, type_),
            "g": pa.array(other, type_),
            "i": range(len(column)),
            "name": names,
        }
    )


CASES = [
    (pa.float16(), True, False),
    (pa.float16(), False, False),
    (pa.float32(), True, False),
    (pa.float32(), False, False),
    (pa.float64(), True, False),
    (pa.float64(), False, False),
    (pa.float64(), False, True),
]


@pytest.mark.parametrize(("type_", "is_repeated", "is_plain"), CASES, ids=str)
def test_predicates_find_the_rows_that_pylance_finds(
    type_: pa.DataType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_repeated: bool,
    is_plain: bool,
) -> None:
    """Compare with values that pages repeat, and without compiled comparisons."""
    theirs = lance.write_dataset(table_of(type_, is_repeated=is_repeated), tmp_path / "t")
    ours = lt.open_table(tmp_path / "t")
    if is_plain:
        monkeypatch.setattr(compiled_range, "DLL", None)
    for predicate in PREDICATES:
        expected = theirs.to_table(columns=["i"], filter=predicate)["i"].to_pylist()
        found = ours.scan(["i"], where=predicate).to_arrow()["i"].to_pylist()
        assert found == expected, predicate
        assert ours.count(predicate) == len(expected), predicate


def test_the_reference_itself(tmp_path: Path) -> None:
    """What is promised to users, without pylance: a sample of its answers."""
    lt.create_table(tmp_path / "t", pa.table({"f": VALUES, "name": NAMES}))
    table = lt.open_table(tmp_path / "t")
    expected = {
        "f < 0.0": ["-NaN", "-1", "-inf"],
        "f >= 0.0": ["-0", "+0", "NaN", "1", "inf"],
        "f > 1.0": ["NaN", "inf"],
        "f < cast('-inf' as double)": ["-NaN"],
        "f = cast('NaN' as double)": ["NaN"],
        "f != 0.0": ["NaN", "-NaN", "1", "-1", "inf", "-inf"],
    }
    for predicate, names in expected.items():
        assert table.scan(["name"], where=predicate).to_arrow()["name"].to_pylist() == names
