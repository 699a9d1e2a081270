"""Servers of other ecosystems, installed on demand into a cache below the project.

Azurite comes from npm, MinIO and versitygw from the Go module proxy. Where the tool is missing, or
what it needs cannot be had, the tests that ask for the server are skipped.
"""

import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.places import Place
from tests.servers.programs import free_ports, installed, running
from tests.servers.s3 import BUCKET, S3Server

AZURITE = "azurite@3.35.0"
ACCOUNT = "devstoreaccount1"
# The well-known key of every Azurite; it opens nothing else.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
MINIO = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


@contextmanager
def azurite() -> Iterator[Place]:
    """Start Azurite with one container."""
    if shutil.which("node") is None:
        pytest.skip("azurite runs in node, which is not on this machine")
    arguments = ["install", "--no-fund", "--no-audit", "--prefix", "."]
    program = installed(AZURITE, "node_modules/.bin/azurite-blob", "npm", arguments)
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    options = {
        "azure_storage_account_name": ACCOUNT,
        "azure_storage_account_key": KEY,
        "azure_storage_endpoint": endpoint,
        "allow_http": "true",
    }
    with _scratch("azurite") as folder:
        command = [program, "--silent", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
        command += ["--skipApiVersionCheck", "--inMemoryPersistence"]
        with running(command, f"{endpoint}?comp=list", log=folder / "log"):
            _make_container(options, "box")
            yield Place("az://box", options, options)


@contextmanager
def minio() -> Iterator[S3Server]:
    """Start MinIO with one bucket."""
    program = installed(MINIO, "minio", "go", ["install"])
    (port,) = free_ports(1)
    server = S3Server(port, key="test", secret="test-test")
    environment = {
        "MINIO_ROOT_USER": "test",
        "MINIO_ROOT_PASSWORD": "test-test",
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    with _scratch("minio") as folder:
        command = [program, "server", "--quiet", "--address", f"127.0.0.1:{port}"]
        command.append(str(folder / "data"))
        ready = f"{server.endpoint}/minio/health/ready"
        with running(command, ready, log=folder / "log", environment=environment):
            server.client().create_bucket(Bucket=BUCKET)
            yield server


@contextmanager
def versitygw() -> Iterator[S3Server]:
    """Start versitygw with one bucket on a folder of this machine."""
    program = installed(VERSITYGW, "versitygw", "go", ["install"])
    (port,) = free_ports(1)
    server = S3Server(port, key="test", secret="test")
    environment = {"ROOT_ACCESS_KEY": "test", "ROOT_SECRET_KEY": "test"}
    with _scratch("versitygw") as folder:
        (folder / "data").mkdir()
        # Sidecar files hold the metadata: not every file system has extended attributes.
        (folder / "sidecar").mkdir()
        command = [program, "--port", f"127.0.0.1:{port}", "--quiet", "posix"]
        command += ["--sidecar", str(folder / "sidecar"), str(folder / "data")]
        with running(command, server.endpoint, log=folder / "log", environment=environment):
            server.client().create_bucket(Bucket=BUCKET)
            yield server


@contextmanager
def _scratch(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


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
