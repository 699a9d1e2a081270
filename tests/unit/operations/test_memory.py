"""What changes need of memory, in processes of their own: it does not grow with the rows."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="the system does not tell about memory"
    ),
]

COMPACTION = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.compute
import lancetable as lt
import lancetable.operations.compact.run
import lancetable.operations.compact.write

folder, limit, settings = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])


def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


table = lt.open_table(folder)
before = peak()
done = table.compact(memory_bytes=limit << 20, **settings)
print(peak() - before, done.fragments_added)
"""

PROGRAM = """
import sys
import numpy as np
import pyarrow as pa
import lancetable as lt

folder, what, rows, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
TEXT = "some words that are not short at all " * 2


def batches(count, step=50_000):
    texts = pa.array([TEXT] * step)
    for first in range(0, count, step):
        # Every id once, in no order.
        ids = np.arange(first, first + step) * 7_368_787 % count
        yield pa.record_batch({"id": pa.array(ids), "text": texts, "x": ids * 0.5})


def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


table = lt.create_table(folder + "/table", batches(100_000))
if what == "write":
    table.append(batches(rows))
elif what == "merge":
    upsert = table.merge(batches(rows), on="id").when_matched_update_all()
    result = upsert.when_not_matched_insert_all().with_memory(limit).execute()
    assert (result.updated, result.inserted) == (100_000, rows - 100_000), result
print(peak())
"""


def peak(folder: Path, what: str, rows: int, limit: int = 2**40) -> int:
    """Return the most megabytes that a process needed."""
    command = [sys.executable, "-c", PROGRAM, str(folder), what, str(rows), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


def test_a_stream_is_written_in_constant_memory(tmp_path: Path) -> None:
    few = peak(tmp_path / "few", "write", 500_000)
    many = peak(tmp_path / "many", "write", 2_000_000)
    assert many < few + 60


def test_a_merge_stays_within_its_limit(tmp_path: Path) -> None:
    nothing = peak(tmp_path / "nothing", "none", 0)
    limited = peak(tmp_path / "limited", "merge", 1_500_000, 32 * 2**20)
    free = peak(tmp_path / "free", "merge", 1_500_000)
    # The rows alone are 140 MB, of which a merge without a limit holds most; buffers for pages are
    # the rest.
    assert limited < nothing + 130
    assert free > limited + 40


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of 160 MB in four fragments, with some rows deleted."""
    path = tmp_path_factory.mktemp("wide") / "table"
    rng = np.random.default_rng(1)
    for first in range(0, 200_000, 50_000):
        ids = pa.array(rng.permutation(np.arange(first, first + 50_000)))
        vectors = pa.FixedSizeListArray.from_arrays(rng.random(200 * 50_000, np.float32), 200)
        rows = {
            "id": ids,
            "flag": pa.array(rng.random(50_000) < 0.5),
            "s": pa.array([f"text {number}" for number in ids.to_pylist()]),
            "vector": vectors,
        }
        if first:
            lt.open_table(path).append(pa.table(rows))
        else:
            lt.create_table(path, pa.table(rows))
    lt.open_table(path).delete("id % 100 = 7")
    return path


@pytest.mark.parametrize("limit", [16, 64])
@pytest.mark.parametrize("settings", [{}, {"sort_by": ["s"]}, {"z_order_by": ["s", "id"]}])
def test_a_compaction_stays_within_its_limit(
    wide: Path, tmp_path: Path, limit: int, settings: dict[str, list[str]]
) -> None:
    shutil.copytree(wide, tmp_path / "table")
    command = [sys.executable, "-c", COMPACTION, str(tmp_path / "table"), str(limit), str(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    grown, fragments = map(int, done.stdout.split())
    assert grown <= limit + 64
    assert fragments < 4
    found = lt.open_table(tmp_path / "table").scan(["id", "s"]).to_arrow()
    assert len(found) == 198_000
    assert len(found["id"].unique()) == 198_000
