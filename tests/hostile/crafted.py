"""Tables as an attacker would make them, and watchers that tell what opening them did."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

import lancetable as lt
from lancetable.file.write.blobs import BlobStorage
from lancetable.format.manifest.envelope import FOOTER, manifest_message, seal
from lancetable.format.proto import table_pb2
from lancetable.format.schema.types import BLOB_V2_TYPE

Change = Callable[[table_pb2.Manifest], object]

SECRET = b"the content of a file of the reader"


def newest(table: Path) -> Path:
    """Return the manifest of the latest version."""
    return min((table / "_versions").glob("*.manifest"))


def change(table: Path, how: Change) -> None:
    """Rewrite the latest manifest."""
    path = newest(table)
    data = path.read_bytes()
    message = table_pb2.Manifest.FromString(bytes(manifest_message(data)))
    how(message)
    (position, *_) = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    path.write_bytes(seal(data[:position], message.SerializeToString()))


def with_base(table: Path, base: str) -> None:
    """Let all data files of a table lie below a base."""

    def point(manifest: table_pb2.Manifest) -> None:
        manifest.base_paths.add(id=1, path=base, is_dataset_root=True)
        for fragment in manifest.fragments:
            for file in fragment.files:
                file.base_id = 1

    change(table, point)


def with_descriptor(table: Path, descriptor: Mapping[str, object], base: str | None = None) -> None:
    """Make a table with one blob, whose descriptor is the given one, and perhaps a base 1."""
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table([pa.array([b"x"], pa.large_binary())], schema=pa.schema([field]))
    stored = pa.array([descriptor], BLOB_V2_TYPE)
    with patch.object(BlobStorage, "_second", lambda *_: stored):
        lt.create_table(table, rows, storage_version="2.2")
    if base is not None:
        change(table, lambda manifest: manifest.base_paths.add(id=1, path=base))


def with_blob(table: Path, uri: str, *, base: str | None = None) -> None:
    """Make a table with one external blob, below a base when one is given."""
    row = {"kind": 3, "position": 0, "size": 0, "blob_id": 1 if base else 0, "blob_uri": uri}
    with_descriptor(table, row, base)


_opened: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _opened is not None and event in {"open", "os.scandir", "os.listdir", "socket.connect"}:
        _opened.append(str(arguments[1] if event == "socket.connect" else arguments[0]))


sys.addaudithook(_note)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect the paths that Python opens and lists, and the addresses it connects to."""
    global _opened  # noqa: PLW0603 - an audit hook cannot be taken back, only silenced
    seen: list[str] = []
    _opened = seen
    try:
        yield seen
    finally:
        _opened = None


class Listener:
    """A server on the loopback address that remembers what was said to it, and says nothing."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.heard: list[bytes] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.heard.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
