"""A server that speaks enough of the Azure Blob API to create and read a small table.

It keeps blobs in memory and checks no signatures. It can ignore the conditions of requests, as some
gateways do; Azurite honours them.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.servers.emulators import ACCOUNT, KEY
from tests.servers.places import Place

CONTAINER = "box"
_ROOT = f"/{ACCOUNT}/{CONTAINER}/"
_BOUNDARY = "batchresponse_1"
_XML = {"Content-Type": "application/xml"}
_BLOB = {"ETag": '"1"', "Last-Modified": formatdate(0, usegmt=True)}
Answer = tuple[int, bytes, dict[str, str]]


@dataclass
class Container:
    """The blobs of the server."""

    honours_conditions: bool
    blobs: dict[str, bytes] = field(default_factory=dict)

    def answer(self, method: str, path: str, headers: Message, body: bytes) -> Answer:
        """Serve one request."""
        url = urlsplit(path)
        query = {name: one[0] for name, one in parse_qs(url.query).items()}
        key = unquote(url.path).removeprefix(_ROOT)
        if query.get("comp") == "list":
            return _listed(self.blobs, query.get("prefix", ""))
        if query.get("comp") == "batch":
            return _removed(self.blobs, body.decode())
        if method == "PUT":
            is_conditional = self.honours_conditions and headers.get("If-None-Match") == "*"
            if is_conditional and key in self.blobs:
                return _error(409, "BlobAlreadyExists")
            self.blobs[key] = body
            return 201, b"", _BLOB
        if key not in self.blobs:
            return _error(404, "BlobNotFound")
        return _read(self.blobs[key], headers.get("Range"))


@contextmanager
def azure_blobs(*, honours_conditions: bool) -> Iterator[Place]:
    """Start a server with one container, and stop it."""
    container = Container(honours_conditions)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            return

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                status, content, headers = container.answer(
                    self.command, self.path, self.headers, body
                )
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_HEAD = do_any  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    options = {
        "azure_storage_account_name": ACCOUNT,
        "azure_storage_account_key": KEY,
        "azure_storage_endpoint": f"http://127.0.0.1:{server.server_address[1]}/{ACCOUNT}",
        "allow_http": "true",
    }
    try:
        yield Place(f"az://{CONTAINER}", options, options)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _error(status: int, code: str) -> Answer:
    return status, f"<Error><Code>{code}</Code></Error>".encode(), _XML


def _read(content: bytes, wanted: str | None) -> Answer:
    if wanted is None:
        return 200, content, _BLOB
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(len(content) - int(last), 0)
    stop = min(int(last) + 1, len(content)) if first and last else len(content)
    span = {"Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"}
    return 206, content[start:stop], {**_BLOB, **span}


def _listed(blobs: dict[str, bytes], prefix: str) -> Answer:
    found = "".join(
        f"<Blob><Name>{escape(key)}</Name><Properties>"
        f"<Last-Modified>{_BLOB['Last-Modified']}</Last-Modified>"
        f"<Content-Length>{len(content)}</Content-Length><Content-Type/>"
        f"<Etag>1</Etag></Properties></Blob>"
        for key, content in sorted(blobs.items())
        if key.startswith(prefix)
    )
    text = f"<EnumerationResults><Blobs>{found}</Blobs><NextMarker/></EnumerationResults>"
    return 200, text.encode(), _XML


def _removed(blobs: dict[str, bytes], body: str) -> Answer:
    """Remove the blobs that a batch names; obstore removes them by batches only."""
    parts = []
    for number, path in enumerate(re.findall(r"DELETE (\S+) HTTP", body)):
        blobs.pop(unquote(path.partition("?")[0]).removeprefix(_ROOT), None)
        parts.append(
            f"--{_BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            "HTTP/1.1 202 Accepted\r\nx-ms-version: 2023-11-03\r\n\r\n"
        )
    text = "".join(parts) + f"--{_BOUNDARY}--\r\n"
    return 202, text.encode(), {"Content-Type": f"multipart/mixed; boundary={_BOUNDARY}"}
