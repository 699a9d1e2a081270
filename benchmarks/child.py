"""How are cases run in a process of their own, on equal terms for all peers?

Two things that differ between installations would otherwise decide the result: whether bytecode
is cached beside the modules, and whether pandas happens to be installed (pyarrow.dataset, and so
pylance, imports it then). Children therefore share a bytecode cache of their own, filled by the
first call, which is never timed, and see no pandas.
"""

import os
import subprocess
import sys

from benchmarks.data import data_folder

# Importing importlib.machinery to name the finder would itself take a millisecond.
_NO_PANDAS = """
import sys
finder = next(one for one in sys.meta_path if getattr(one, "__name__", "") == "PathFinder")
find = finder.find_spec
finder.find_spec = lambda name, *rest: None if name == "pandas" else find(name, *rest)
"""


def start_child(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start Python source in a new process, with pipes to talk to it."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment["PYTHONPYCACHEPREFIX"] = str(data_folder() / "bytecode")
    command = [sys.executable, "-c", f"{_NO_PANDAS}\n{program}", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
    )


def finish_child(child: subprocess.Popen[str]) -> str:
    """Wait for a process and return what it printed.

    Raises:
        NotImplementedError: the peer does not have what the process was to do.
        RuntimeError: the process failed; carries the last line of its complaint.
    """
    printed, complaint = child.communicate()
    if child.returncode:
        last = (complaint.strip().splitlines() or [f"no message, code {child.returncode}"])[-1]
        if last.startswith("NotImplementedError: "):
            raise NotImplementedError(last.partition(": ")[2])
        raise RuntimeError(last)
    return printed.strip()


def run_child(program: str, *arguments: str) -> str:
    """Run Python source in a new process and return what it printed.

    Raises:
        NotImplementedError: the peer does not have what the process was to do.
        RuntimeError: the process failed; carries the last line of its complaint.
    """
    return finish_child(start_child(program, *arguments))
