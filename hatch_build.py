"""Compiles the kernels while the package is built, where a C compiler is at hand.

Nothing needs them: without a compiler the package is built without the library, and NumPy does the
same work more slowly. ``python hatch_build.py`` compiles them in place after a change, and
``python hatch_build.py --sanitize`` with checks of every address and of undefined behaviour.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:
    # Run by hand, outside a build.
    BuildHookInterface = object  # type: ignore[assignment,misc]

FOLDER = "src/lancetable/format/encoding/kernels"
FLAGS = ["-O3", "-fPIC", "-shared", "-std=c11", "-fno-strict-aliasing"]
WARNED = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow"]
"""What these find is printed; only the tests make it an error."""
HARDENED = ["-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
"""A damaged stack, or a copy behind the end of an object, ends the process."""
LINKED = {"linux": ["-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]}
"""The tables by which functions are found are read-only once the library is loaded."""
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
ENDINGS = {"win32": "dll", "darwin": "dylib"}


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled library to wheels and editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say so in the name of the wheel."""
        if self.target_name != "wheel":
            return
        target = library_in(Path(self.root))
        if not compile_library(target):
            target.unlink(missing_ok=True)
            return
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        if version != "editable":
            build_data["force_include"][str(target)] = str(
                Path("lancetable/format/encoding/kernels") / target.name
            )


def library_in(root: Path) -> Path:
    """Return where the library of a source tree belongs."""
    return root / FOLDER / f"_kernels.{ENDINGS.get(sys.platform, 'so')}"


def compile_library(target: Path, flags: Sequence[str] = ()) -> bool:
    """Compile the C files beside a library into it; say whether that worked."""
    sources = sources_of(target)
    hardened = [] if "--sanitize" in sys.argv else [*HARDENED, *LINKED.get(sys.platform, [])]
    # A compiler that does not know these flags compiles without them.
    extras = ([*WARNED, *hardened], hardened, [])
    ways = [(one, extra) for extra in extras for one in compilers()]
    for compiler, extra in ways:
        with tempfile.TemporaryDirectory() as scratch:
            built = Path(scratch) / target.name
            command = [*compiler, *FLAGS, *extra, *flags, "-o", str(built), *sources]
            try:
                done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
            except OSError:
                continue
            if done.returncode == 0:
                sys.stderr.write(done.stderr.decode(errors="replace"))
                # Replaced, never overwritten: a running process may have the old one loaded.
                staged = target.with_name(f"{target.name}.new")
                shutil.copyfile(built, staged)
                staged.replace(target)
                return True
    return False


def sources_of(target: Path) -> list[str]:
    """Return the C files beside a library."""
    return [str(path) for path in sorted((target.parent / "c").glob("*.c"))]


def compilers() -> list[list[str]]:
    """Return the commands of the C compilers at hand, the first to be tried first."""
    chosen = os.environ.get("CC")
    names = [chosen] if chosen else ["cc", "gcc", "clang"]
    found = [[path] for name in names if (path := shutil.which(name))]
    try:
        import ziglang  # noqa: F401, PLC0415
    except ImportError:
        return found
    return [*found, [sys.executable, "-m", "ziglang", "cc"]]


if __name__ == "__main__":
    wanted = SANITIZED if "--sanitize" in sys.argv else ()
    if not compile_library(library_in(Path(__file__).resolve().parent), wanted):
        sys.exit("no C compiler was found, or none could compile the kernels")
