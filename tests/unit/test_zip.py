"""The package runs from a zip archive, where no library can be loaded: NumPy does the work."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lancetable

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import pyarrow as pa
import lancetable
from lancetable.format.encoding.kernels.compiled import NAME
assert lancetable.__file__.startswith(sys.argv[1]), lancetable.__file__
texts = [f"user{number * 7919 % 100003}" for number in range(20_000)]
rows = pa.table({"id": range(20_000), "s": texts})
table = lancetable.create_table(sys.argv[2], rows)
table.append(rows.slice(0, 10))
table.delete("id >= 19990")
assert table.scan(columns=["s"]).to_arrow().column("s").to_pylist() == texts[:-10] + texts[:10]
print(NAME, lancetable.open_table(sys.argv[2]).count())
"""


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["", "c"])
def test_from_a_zip(tmp_path: Path, wanted: str) -> None:
    source = Path(lancetable.__file__).parent
    archive = tmp_path / "lancetable.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in source.rglob("*"):
            if path.suffix in {".py", ".so", ".typed"}:
                packed.write(path, Path("lancetable", path.relative_to(source)))
    environment = {**os.environ, "LANCETABLE_KERNELS": wanted, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(archive), str(tmp_path / "table")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if wanted:
        assert "the compiled kernels cannot be loaded" in done.stderr
    else:
        assert done.stdout.split() == ["numpy", "20000"], done.stderr
