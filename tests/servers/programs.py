"""Install server programs on demand, and run them so that they never outlive the tests."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "servers"
# The shell ends the program when its own input ends, which happens however the tests end.
_GUARDED = '"$@" & echo $!; cat > /dev/null; kill -9 $! 2> /dev/null'


def installed(package: str, program: str, tool: str, arguments: list[str]) -> str:
    """Return the path of a program, installing it on first use; skip the test if that fails.

    Args:
        package: the address of the package with its version.
        program: the path of the program in the folder into which the package is installed.
        tool: what installs it.
        arguments: those of the tool, which runs in that folder.
    """
    name = package.rpartition("/")[2]
    home = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with _exclusive(CACHE / f"{name}.lock"):
        if not home.exists():
            _install(home, tool, [*arguments, package])
    return str(home / program)


def _install(home: Path, tool: str, arguments: list[str]) -> None:
    """Fill a folder, which gets its name when it is complete."""
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{home.name} is installed by {tool}, which is not on this machine")
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as folder:
        parts = Path(folder) / "parts"
        parts.mkdir()
        done = subprocess.run(
            [found, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=parts,
            env={**os.environ, "GOBIN": str(parts)},
        )
        if done.returncode:
            pytest.skip(f"{home.name} cannot be installed by {tool}: {done.stderr[-300:]}")
        parts.rename(home)


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    import fcntl

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address that nothing listens on."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


class Program:
    """A server process that answers requests.

    Args:
        command: the program and its arguments.
        url: an address that answers, with any status, as soon as the server is ready.
        log: the file that receives what the program prints.
        environment: variables in addition to those of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        url: str,
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.url = url
        self.log = log
        self.environment = dict(environment or {})
        self._start()

    def _start(self) -> None:
        with self.log.open("ab") as log:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDED, "sh", *self.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.log.parent,
                env={**os.environ, **self.environment},
            )
        assert self._shell.stdout is not None
        self.pid = int(self._shell.stdout.readline())
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(self.url, timeout=2).close()
            except urllib.error.HTTPError as answer:
                answer.close()
                return
            except OSError:
                time.sleep(0.05)
            else:
                return
        said = self.log.read_text(errors="replace")[-2000:]
        self.stop()
        raise AssertionError(f"{self.command[0]} does not answer at {self.url}: {said}")

    def kill(self) -> None:
        """Kill the process without warning."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def restart(self) -> None:
        """Start the process again, on the same ports and the same files."""
        self._start()

    def stop(self) -> None:
        """End the process."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.close()
        self._shell.stdout.close()
        self._shell.wait(30)


@contextmanager
def running(
    command: Sequence[str], url: str, *, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """Run a server program until the end of the block."""
    program = Program(command, url, log=log, environment=environment)
    try:
        yield program
    finally:
        program.stop()
