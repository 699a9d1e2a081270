"""Builds of indices stay within the memory that they may take."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is told by /proc"),
]

LIMIT, BESIDE = 64_000_000, 64_000_000
ROWS = 4_000_000
PROGRAM = """
import sys
import lancetable as lt
import pyarrow as pa
def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))
uri, few, column, kind, limit = sys.argv[1:]
kind = lt.JsonPath("a") if kind == "json" else kind
for place in (few, uri):
    before = status("VmRSS")
    table = lt.open_table(place)
    table.indices.create(column, kind, memory_bytes=int(limit))
print(status("VmHWM") - before)
"""


def above_start(folder, column, kind) -> int:
    """Return the bytes that a build takes in a process that has built one before."""
    places = [str(folder / "t"), str(folder / "few")]
    command = [sys.executable, "-c", PROGRAM, *places, column, kind, str(LIMIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


def batches(column):
    draw = np.random.default_rng(1)
    for _ in range(0, ROWS, 500_000):
        yield pa.record_batch({"v": column(draw.integers(0, 1 << 40, 500_000))})


def points(numbers):
    rows = np.zeros((len(numbers), 21), np.uint8)
    rows[:, :5] = (1, 1, 0, 0, 0)
    rows[:, 5:] = np.stack([numbers, numbers[::-1]], axis=1).astype(np.float64).view(np.uint8)
    data = pa.Array.from_buffers(pa.binary(21), len(rows), [None, pa.py_buffer(rows)])
    return data.cast(pa.binary())


CASES = {
    "btree": pa.array,
    "bitmap": lambda numbers: pa.array(numbers % 3),
    "label_list": lambda numbers: pa.FixedSizeListArray.from_arrays(
        pa.array(numbers % 1000), 2
    ).cast(pa.list_(pa.int64())),
    "rtree": points,
}


@pytest.mark.parametrize("kind", CASES)
def test_builds_spill_what_is_more_than_the_limit(tmp_path, kind):
    made = batches(CASES[kind])
    first = next(made)
    lt.create_table(tmp_path / "few", pa.table(first.slice(0, 100).to_pydict(), first.schema))
    reader = pa.RecordBatchReader.from_batches(first.schema, made)
    lt.create_table(tmp_path / "t", reader, max_rows_per_file=2_000_000)
    assert above_start(tmp_path, "v", kind) <= LIMIT + BESIDE
