"""Single rows, in any order and any way to name them."""

import os
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable import create_table, open_table
from lancetable.errors import InputError
from tests.conftest import GOLDEN

TABLE = open_table(str(GOLDEN / "table" / "delete_arrow.lance"), version=2)
WHOLE = TABLE.scan(with_row_id=True, with_row_address=True).to_arrow()
DATA = ["id", "name", "x"]

rows = st.lists(st.integers(0, len(WHOLE) - 1), max_size=30)


@given(rows)
def test_by_offset(wanted):
    expected = WHOLE.select(DATA).take(pa.array(wanted, pa.int64()))

    assert TABLE.take(wanted).equals(expected)
    assert TABLE.take(np.array(wanted, np.int64)).equals(expected)


@given(rows)
def test_by_address_and_by_row_id(wanted):
    expected = WHOLE.take(pa.array(wanted, pa.int64()))

    assert TABLE.take(row_addresses=expected["_rowaddr"]).equals(expected.select(DATA))
    assert TABLE.take(row_ids=expected["_rowid"]).equals(expected.select(DATA))


def test_stable_row_ids(golden):
    table = open_table(str(golden / "table" / "stable_rowids.lance"))
    whole = table.scan(with_row_id=True).to_arrow()
    wanted = whole.take(list(range(len(whole)))[::-2])

    found = table.take(row_ids=wanted["_rowid"].to_pylist())

    assert found.equals(wanted.drop_columns("_rowid"))


def test_some_columns_and_expressions():
    assert TABLE.take([3], columns=["x", "_rowoffset"]).to_pylist() == [
        {"x": WHOLE["x"][3].as_py(), "_rowoffset": 3}
    ]
    twice = TABLE.take([3, 1], columns={"twice": "id * 2"})
    assert twice["twice"].to_pylist() == [WHOLE["id"][3].as_py() * 2, WHOLE["id"][1].as_py() * 2]


def deleted_address() -> int:
    live = set(WHOLE["_rowaddr"].to_pylist())
    return next(address for address in range(60) if address not in live)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"offsets": [len(WHOLE)]}, f"there is no row {len(WHOLE)}; the table has {len(WHOLE)}"),
        ({"offsets": [0, 1000, 2000]}, "no row 1000, 2000"),
        ({"offsets": [-1]}, "offset -1 is negative"),
        ({"offsets": [2, -7]}, "offset -7 is negative"),
        ({"offsets": [1.5]}, "whole numbers"),
        ({"offsets": ["a"]}, "whole numbers"),
        ({"row_addresses": [77 << 32]}, f"row address {77 << 32}"),
        ({"row_addresses": [deleted_address()]}, f"row address {deleted_address()}"),
        ({"row_ids": [deleted_address(), 999]}, f"row id {deleted_address()}, 999"),
        ({"row_ids": [0, -5]}, "row id -5 is negative"),
        ({}, "exactly one"),
        ({"offsets": [1], "row_ids": [1]}, "exactly one"),
    ],
)
def test_rows_that_are_not_there(arguments, words):
    with pytest.raises(InputError, match=words):
        TABLE.take(**arguments)


def test_an_unknown_stable_row_id(golden):
    table = open_table(str(golden / "table" / "stable_rowids.lance"))

    with pytest.raises(InputError, match="no live row has the row id 123456"):
        table.take(row_ids=[123456])


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="nothing can be dropped from memory")
@pytest.mark.parametrize("count", [1, 40, 3000])
def test_rows_that_are_not_in_memory(tmp_path, count) -> None:
    table = pa.table({"id": range(60_000), "text": [f"row {one}" for one in range(60_000)]})
    create_table(tmp_path / "t", table, max_rows_per_file=25_000)
    for file in (tmp_path / "t" / "data").iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    chosen = random.Random(count).sample(range(60_000), count)
    assert open_table(tmp_path / "t").take(chosen) == table.take(chosen)
