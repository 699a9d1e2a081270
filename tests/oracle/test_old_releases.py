"""Older releases of pylance read the tables that we write in the versions of files they know.

Each release is installed into an environment of its own that is thrown away afterwards, so this
group needs a package index; it runs only when it is asked for: ``make test-releases``.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt

pytestmark = pytest.mark.releases

RELEASES = ["0.39.0", "4.0.2", "8.0.1"]
READER = """
import json, sys
import lance, pyarrow as pa
problems = []
for case in json.load(open(sys.argv[1])):
    expected = pa.ipc.open_file(case["expected"]).read_all()
    try:
        dataset = lance.dataset(case["uri"])
        found = dataset.to_table()
        if found.to_pylist() != expected.to_pylist():
            problems.append(case["name"] + ": other rows")
        if dataset.count_rows() != expected.num_rows:
            problems.append(case["name"] + ": other count")
        if expected.num_rows:
            places = [expected.num_rows - 1, 0, expected.num_rows // 2]
            taken = dataset.take(places).to_pylist()
            if taken != expected.take(places).to_pylist():
                problems.append(case["name"] + ": other rows by number")
            kept = [row for row in expected.to_pylist() if (row["id"] or 0) >= 40]
            filtered = dataset.to_table(filter="id >= 40").to_pylist()
            if filtered != kept:
                problems.append(case["name"] + ": other rows by filter")
    except Exception as error:
        problems.append(case["name"] + ": " + str(error)[:250])
        continue
    try:
        dataset.validate()
    except Exception as error:
        # These releases read files that gave up a column, but their check does not know them.
        if "Field id -2 is not in increasing order" not in str(error):
            problems.append(case["name"] + ": " + str(error)[:250])
print(lance.__version__)
print(json.dumps(problems))
"""


def rows(first: int, count: int) -> pa.Table:
    """Return rows of the usual types."""
    numbers = list(range(first, first + count))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "small": pa.array([number % 5 for number in numbers], pa.int8()),
            "text": [None if number % 7 == 0 else f"text {number} " * 3 for number in numbers],
            "word": pa.array([f"w{number % 4}" for number in numbers]),
            "real": np.sin(np.array(numbers)),
            "flag": [number % 2 == 0 for number in numbers],
            "vector": pa.array(
                [[number, 0.5, -number, 1.0] for number in numbers], pa.list_(pa.float32(), 4)
            ),
            "list": pa.array([[number] * (number % 4) for number in numbers], pa.list_(pa.int32())),
            "struct": pa.array([{"a": number, "b": [str(number)]} for number in numbers]),
            "bytes": pa.array([bytes([number % 256]) * (number % 9) for number in numbers]),
            "time": pa.array(numbers, pa.timestamp("us", "UTC")),
            "money": pa.array(numbers, pa.int64()).cast(pa.decimal128(20, 0)),
        }
    )


def _merge(table: lt.Table) -> None:
    table.merge(rows(90, 20), on="id").when_matched_update(
        {"text": "'matched'"}
    ).when_not_matched_insert_all().execute()


CHANGES: dict[str, Callable[[lt.Table], object]] = {
    "created": lambda table: None,
    "appended": lambda table: table.append(rows(100, 30)),
    "deleted": lambda table: table.delete("id % 3 = 0"),
    "updated": lambda table: table.update({"text": "'new'"}, "id < 20"),
    "updated by columns": lambda table: table.update({"real": "0.5"}, "id > 50", mode="columns"),
    "merged": _merge,
    "with added columns": lambda table: table.columns.add({"sum": "id + small"}),
    "with nulls": lambda table: table.columns.add(pa.field("none", pa.string())),
    "dropped and renamed": lambda table: (
        table.columns.drop(["real"]),
        table.columns.rename("word", "term"),
    ),
    "cast": lambda table: table.columns.cast("small", pa.int32()),
    "replaced": lambda table: table.columns.replace({"small": "1"}),
    "restored": lambda table: (table.truncate(), table.restore(1)),
    "overwritten": lambda table: table.overwrite(rows(10, 55)),
    "configured": lambda table: (
        table.config.update({"k": "v"}),
        table.columns.update_metadata({"text": {"note": "x"}}),
    ),
    "truncated": lambda table: table.truncate(),
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables changed in all ways, in files of both versions, and what they hold."""
    folder = tmp_path_factory.mktemp("written")
    listed: list[dict[str, str]] = []
    for version in ("2.0", "2.1"):
        for stable in (False, True):
            for name, change in CHANGES.items():
                label = f"{name}, {version}, {'stable ids' if stable else 'addresses'}"
                uri = folder / f"{len(listed)}.lance"
                table = lt.create_table(
                    uri,
                    rows(0, 100),
                    storage_version=version,
                    stable_row_ids=stable,
                    max_rows_per_file=40,
                )
                change(table)
                held = table.scan().to_arrow()
                expected = folder / f"{len(listed)}.arrow"
                with (
                    pa.OSFile(str(expected), "wb") as sink,
                    pa.ipc.new_file(sink, held.schema) as writer,
                ):
                    writer.write_table(held)
                listed.append({"name": label, "uri": str(uri), "expected": str(expected)})
    found = folder / "cases.json"
    found.write_text(json.dumps(listed))
    return found


def install(release: str, folder: Path) -> Path:
    """Make an environment with one release of pylance; return its Python."""
    python = folder / "bin" / "python"
    if shutil.which("uv"):
        made = [["uv", "venv", "--quiet", "--python", sys.executable, str(folder)]]
        made += [["uv", "pip", "install", "--quiet", "--python", str(python),
                  f"pylance=={release}"]]  # fmt: skip
    else:
        made = [[sys.executable, "-m", "venv", str(folder)]]
        made += [[str(python), "-m", "pip", "install", "--quiet", f"pylance=={release}"]]
    for command in made:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(f"pylance {release} cannot be installed: {done.stderr[-300:]}")
    return python


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_reads_our_tables(release: str, cases: Path, tmp_path: Path) -> None:
    python = install(release, tmp_path / "environment")
    script = tmp_path / "reader.py"
    script.write_text(READER)
    done = subprocess.run(
        [str(python), str(script), str(cases)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    version, problems = done.stdout.strip().splitlines()[-2:]
    assert version == release
    found = json.loads(problems)
    assert not found, "\n".join(found)
