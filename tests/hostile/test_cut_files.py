"""Local files that are cut while a handle has them mapped: an error, never a signal."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store import LocalStore, check_size, mapped_file
from lancetable.store.wrap import WrappedStore

ROWS = 50_000

CUT = """
import os, sys
import lancetable as lt
from lancetable.errors import CorruptError

folder, reads = sys.argv[1], sys.argv[2:]
table = lt.open_table(folder)
for read in 3 * reads:
    eval(read)
for name in os.listdir(folder + "/data"):
    os.truncate(folder + "/data/" + name, 100)
for read in reads:
    try:
        eval(read)
    except CorruptError as error:
        assert ".lance" in str(error), error
        assert "truncated" in str(error) or "ends" in str(error), error
    else:
        raise SystemExit(f"{read}: not noticed")
print("raised")
"""


def vectors(rows: int, width: int) -> pa.Array:
    values = pa.array(range(rows * width), pa.float32())
    return pa.FixedSizeListArray.from_arrays(values, width)


def make(folder: Path, name: str) -> None:
    if name == "small fragments":
        one = pa.table({"a": range(20), "v": vectors(20, 2000)})
        table = lt.create_table(folder, one)
        for _ in range(15):
            table.append(one)
        return
    columns = {
        "plain": {"a": range(ROWS), "s": [f"text {n}" for n in range(ROWS)]},
        "nested": {"a": [[n, n] for n in range(ROWS)], "v": [{"x": n} for n in range(ROWS)]},
        "vectors": {"a": range(ROWS), "v": vectors(ROWS, 16)},
        "repeated": {"a": [n // 500 for n in range(ROWS)], "n": range(ROWS), "s": ["x"] * ROWS},
    }
    lt.create_table(folder, pa.table(columns[name]))


READS = [
    "table.take([LAST])",
    "table.take([7, LAST, 9, 7])",
    "table.take(list(range(0, LAST, 3)))",
    "table.take(row_addresses=[5])",
    "table.take([LAST], columns=['a'])",
    "table.scan(['a']).to_arrow()",
    "table.scan(limit=3, offset=LAST - 3).to_arrow()",
]


def run(folder: Path, reads: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CUT, str(folder), *reads],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "raised"), done.stderr


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("name", ["plain", "nested", "vectors", "repeated", "small fragments"])
def test_a_warm_handle_notices_a_cut_file(
    tmp_path: Path, name: str, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "t", name)
    monkeypatch.setenv("LANCETABLE_LOCAL_READS", "mapped")
    monkeypatch.setenv("LANCETABLE_KERNELS", kernels)
    last = 16 * 20 - 1 if name == "small fragments" else ROWS - 1
    run(tmp_path / "t", [read.replace("LAST", str(last)) for read in READS])


@pytest.mark.parametrize("reads", ["mapped", "copied"])
def test_scans_and_counts_notice_a_cut_file(
    tmp_path: Path, reads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "t", "plain")
    monkeypatch.setenv("LANCETABLE_LOCAL_READS", reads)
    run(tmp_path / "t", ["table.scan(['a']).to_arrow()", "table.count('a > 7')"])


def test_only_the_files_of_wanted_rows_are_checked(tmp_path: Path) -> None:
    rows = pa.table({"a": range(ROWS)})
    table = lt.create_table(tmp_path / "t", rows)
    (first,) = (tmp_path / "t" / "data").iterdir()
    table.append(rows)
    table = lt.open_table(tmp_path / "t", storage_options={"local_reads": "mapped"})
    assert table.take([5, ROWS + 5])["a"].to_pylist() == [5, 5]
    with first.open("r+b") as file:
        file.truncate(100)
    for wanted in ([ROWS], [ROWS, 2 * ROWS - 1], list(range(ROWS, 2 * ROWS))):
        assert table.take(wanted)["a"].to_pylist() == [row - ROWS for row in wanted]
    for wanted in ([0], [ROWS, 0], list(range(2 * ROWS))):
        with pytest.raises(lt.CorruptError, match=f"{first.name}.*was truncated from"):
            table.take(wanted)


def test_a_wrapped_file_is_checked(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(100_000))
    file = WrappedStore(WrappedStore(LocalStore(str(tmp_path), reads="mapped"))).open("large")
    assert mapped_file(file) is not None
    check_size(file)
    (tmp_path / "large").write_bytes(bytes(70_000))
    with pytest.raises(lt.CorruptError, match="from 100000 to 70000 bytes"):
        check_size(file)
