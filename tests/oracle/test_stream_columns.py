"""Columns that come in row order are the same, whichever library adds them."""

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancetable as lt
from tests.same import assert_same_table

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("stable", [False, True])
def test_columns_from_a_reader(tmp_path: Path, stable: bool) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    rows = pa.table({"id": range(100)})
    lance.write_dataset(rows, ours, max_rows_per_file=30, enable_stable_row_ids=stable)
    lance.dataset(ours).delete("id % 7 = 0")
    shutil.copytree(ours, theirs)
    live = [n for n in range(100) if n % 7]
    new = pa.table({"s": [f"s{n}" for n in live], "v": [[float(n)] * 3 for n in live]})
    lt.open_table(ours).columns.add(new.to_reader(max_chunksize=11))
    lance.dataset(theirs).add_columns(new.to_reader(max_chunksize=11))
    for uri in (ours, theirs):
        lance.dataset(uri).validate()
    expected = lance.dataset(theirs).to_table(with_row_id=True)
    assert_same_table(lance.dataset(ours).to_table(with_row_id=True), expected)
    assert_same_table(lt.open_table(ours).scan(with_row_id=True).to_arrow(), expected)
    assert expected["s"].to_pylist() == new["s"].to_pylist()
