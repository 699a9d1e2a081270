"""Compiles the kernels while the package is built, where a C compiler is at hand.

Nothing needs them: without a compiler the package is built without the library, and NumPy does the
same work more slowly.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "src/lancetable/format/encoding/kernels"
FLAGS = ["-O3", "-fPIC", "-shared", "-std=c11", "-fno-strict-aliasing"]
ENDINGS = {"win32": "dll", "darwin": "dylib"}


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled library to wheels and editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say so in the name of the wheel."""
        if self.target_name != "wheel":
            return
        name = f"_kernels.{ENDINGS.get(sys.platform, 'so')}"
        target = Path(self.root) / FOLDER / name
        if not compile_library(Path(self.root) / FOLDER / "c/kernels.c", target):
            target.unlink(missing_ok=True)
            return
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        if version != "editable":
            build_data["force_include"][str(target)] = str(
                Path("lancetable/format/encoding/kernels") / name
            )


def compile_library(source: Path, target: Path) -> bool:
    """Compile one file into a library; say whether that worked."""
    for compiler in _compilers():
        with tempfile.TemporaryDirectory() as folder:
            built = Path(folder) / target.name
            command = [*compiler, *FLAGS, "-o", str(built), str(source)]
            try:
                done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
            except OSError:
                continue
            if done.returncode == 0:
                # Replaced, never overwritten: a running process may have the old one loaded.
                staged = target.with_name(f"{target.name}.new")
                shutil.copyfile(built, staged)
                staged.replace(target)
                return True
    return False


def _compilers() -> list[list[str]]:
    chosen = os.environ.get("CC")
    names = [chosen] if chosen else ["cc", "gcc", "clang"]
    found = [[path] for name in names if (path := shutil.which(name))]
    try:
        import ziglang  # noqa: F401, PLC0415
    except ImportError:
        return found
    return [*found, [sys.executable, "-m", "ziglang", "cc"]]
