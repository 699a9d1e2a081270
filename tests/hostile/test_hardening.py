"""The compiled kernels are built so that a fault in them is hard to use."""

import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="readelf knows the files of Linux")
def test_the_library_is_hardened(tmp_path: Path) -> None:
    readelf = shutil.which("readelf")
    spec = util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    if readelf is None or spec is None or spec.loader is None:
        pytest.skip("readelf is not on this machine")
    build = util.module_from_spec(spec)
    spec.loader.exec_module(build)
    shutil.copytree(ROOT / build.FOLDER / "c", tmp_path / "c")
    library = tmp_path / "_kernels.so"
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
