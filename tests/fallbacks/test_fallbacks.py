"""Without a compiler, and inside of a zip, the package works with its NumPy kernels.

Each test builds the package as it is installed, and runs a part of the suite on what came out.
Building fetches the build backend, so this group runs only by ``make test-fallbacks``.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.fallbacks

ROOT = Path(__file__).parents[2]
BUILT_FROM = ("README.md", "LICENSE", "NOTICE", "pyproject.toml", "hatch_build.py", "src")
PART = ["tests/unit/format", "tests/unit/file", "tests/unit/scan", "tests/contracts"]
LIBRARIES = ("_kernels.so", "_kernels.dylib", "_kernels.dll")
COMMAND = "from lancetable.cli import main; main()"
ROUND_TRIP = """
import sys
import pyarrow as pa
import lancetable

assert lancetable.__file__.startswith(sys.argv[1]), lancetable.__file__
rows = pa.table({
    "id": range(5000),
    "name": [f"user{number % 977}" for number in range(5000)],
    "tags": [[str(number)] * (number % 4) for number in range(5000)],
})
table = lancetable.create_table(sys.argv[2], rows)
assert table.scan().to_arrow().equals(rows)
table.delete("id < 10")
table.update({"name": "'new'"}, where="id = 4000")
table.merge(rows.slice(5, 10), on=["id"]).when_not_matched_insert_all().execute()
again = lancetable.open_table(sys.argv[2])
assert again.count() == 4995, again.count()
assert again.count(where="name = 'new'") == 1
assert again.take([0, 4994], columns=["id"]).to_pylist() == [{"id": 10}, {"id": 9}]
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what the package is built from: a build replaces the compiled library."""
    folder = tmp_path_factory.mktemp("sources")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", *LIBRARIES)
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def wheel(sources: Path, out: Path, compiler: str | None) -> Path:
    """Build the package with a compiler of that name, or with what is there."""
    uv = shutil.which("uv")
    builder = (
        [uv, "build", "--quiet", "--wheel", "--out-dir", str(out)]
        if uv
        else [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out)]
    )
    environment = os.environ | ({} if compiler is None else {"CC": compiler})
    subprocess.run([*builder, str(sources)], check=True, env=environment)
    (built,) = out.glob("*.whl")
    return built


def run(package: Path, *command: str) -> str:
    """Run Python on a package in another place, and return what it printed."""
    environment = os.environ | {"PYTHONPATH": str(package)}
    environment.pop("LANCETABLE_KERNELS", None)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def check(package: Path, scratch: Path) -> None:
    """Work with a table, then run a part of the suite."""
    run(package, "-c", ROUND_TRIP, str(package), str(scratch / "table"))
    kernels = run(package, "-c", COMMAND, "info", "--kernels")
    assert kernels.startswith("kernels: numpy"), kernels
    marks = "not soak and not slow and not oracle and not cloud"
    options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-m", marks]
    passed = run(package, "-m", "pytest", *options, *PART)
    assert " passed" in passed


def test_without_a_compiler(sources: Path, tmp_path: Path) -> None:
    built = wheel(sources, tmp_path / "built", "no-such-compiler")
    package = tmp_path / "package"
    with zipfile.ZipFile(built) as whole:
        assert not [name for name in whole.namelist() if name.endswith(LIBRARIES)]
        whole.extractall(package)

    assert built.name.endswith("-none-any.whl")
    check(package, tmp_path)


def test_from_a_zip(sources: Path, tmp_path: Path) -> None:
    built = wheel(sources, tmp_path / "built", None)

    check(built, tmp_path)
