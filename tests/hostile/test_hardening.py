"""The compiled kernels are built so that a fault in them is seen early and is hard to use."""

import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def library_of(build: ModuleType, folder: Path) -> Path:
    """Return where the library of a copy of the C sources goes."""
    shutil.copytree(ROOT / build.FOLDER / "c", folder / "c")
    return folder / "_kernels.so"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="readelf knows the files of Linux")
def test_the_library_is_hardened(build: ModuleType, tmp_path: Path) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("readelf is not on this machine")
    library = library_of(build, tmp_path)
    if not build.compile_library(library):
        pytest.skip("no C compiler is on this machine")
    done = subprocess.run(
        [readelf, "-dlsW", str(library)], capture_output=True, text=True, check=True
    )
    assert "BIND_NOW" in done.stdout
    assert "GNU_RELRO" in done.stdout
    assert "__stack_chk_fail" in done.stdout
    (stack,) = (line for line in done.stdout.splitlines() if "GNU_STACK" in line)
    assert " RWE " not in stack


def test_the_sources_compile_without_warnings(build: ModuleType, tmp_path: Path) -> None:
    compilers = build.compilers()
    if not compilers:
        pytest.skip("no C compiler is on this machine")
    library = library_of(build, tmp_path)
    # So much optimization finds the same warnings, in a fraction of the time.
    flags = [*build.FLAGS, *build.WARNED, "-Werror", "-O1"]
    command = [*compilers[0], *flags, "-o", str(library), *build.sources_of(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_warning_does_not_stop_the_build(
    build: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if not build.compilers():
        pytest.skip("no C compiler is on this machine")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "narrow.c").write_text("short lt_narrow(int wide) { return wide; }\n")
    assert build.compile_library(tmp_path / "_kernels.so")
    assert "-Wconversion" in capfd.readouterr().err
