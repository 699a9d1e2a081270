"""Servers of other ecosystems, installed on demand into a cache below the project.

Azurite comes from npm. Where npm is missing, or what it needs cannot be had, the tests that ask for
the server are skipped. For Google there is none: fake-gcs-server does not know the requests of the
XML interface by which obstore writes.
"""

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.servers.places import Place

CACHE = ROOT / ".cache" / "servers"
AZURITE = "azurite@3.35.0"
ACCOUNT = "devstoreaccount1"
# The well-known key of every Azurite; it opens nothing else.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def azurite() -> Iterator[Place]:
    """Start Azurite with one container."""
    program = _installed(
        CACHE / "azurite" / "node_modules" / ".bin" / "azurite-blob",
        "npm",
        ["install", "--no-fund", "--no-audit", "--prefix", str(CACHE / "azurite"), AZURITE],
    )
    port = _free_port()
    command = [program, "--silent", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--skipApiVersionCheck", "--inMemoryPersistence"]
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    options = {
        "azure_storage_account_name": ACCOUNT,
        "azure_storage_account_key": KEY,
        "azure_storage_endpoint": endpoint,
        "allow_http": "true",
    }
    with _process(command, f"{endpoint}?comp=list"):
        _make_container(options, "box")
        yield Place("az://box", options, options)


def _installed(program: Path, tool: str, arguments: list[str]) -> str:
    if program.exists():
        return str(program)
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{program.name} is installed by {tool}, which is not on this machine")
    CACHE.mkdir(parents=True, exist_ok=True)
    lock = CACHE / f"{program.name}.lock"
    with _only_one(lock):
        if not program.exists():
            done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
            if done.returncode or not program.exists():
                pytest.skip(f"{program.name} cannot be installed by {tool}: {done.stderr[-300:]}")
    return str(program)


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Let one process at a time install something."""
    import fcntl

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _process(command: list[str], url: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(url, timeout=1).close()
            except urllib.error.HTTPError as answer:
                answer.close()
            except OSError:
                assert process.poll() is None, f"{command[0]} ended by itself"
                time.sleep(0.1)
                continue
            break
        yield
    finally:
        process.terminate()
        process.wait(10)


def _make_container(options: dict[str, str], name: str) -> None:
    """Make a container by a signed request, as obstore makes none."""
    import base64
    import hashlib
    import hmac
    from email.utils import formatdate

    path, date, version = f"/{ACCOUNT}/{name}", formatdate(usegmt=True), "2021-08-06"
    resource = f"/{ACCOUNT}{path}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{version}\n{resource}"
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(
        f"{options['azure_storage_endpoint']}/{name}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": date,
            "x-ms-version": version,
            "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
        },
    )
    urllib.request.urlopen(request, timeout=10).close()
