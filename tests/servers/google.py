"""A server of our own that speaks the part of the Google Cloud Storage XML API that obstore uses.

Objects are kept in memory under one lock, so that every request is atomic. Supported requests:

=====================================  ==========================================================
``GET /bucket?list-type=2``            list keys, with prefix, delimiter, start-after and pages
``GET``, ``HEAD /bucket/key``          read an object, or one range of it
``PUT /bucket/key``                    write an object, or copy one (``x-goog-copy-source``)
``POST /bucket/key?uploads``           begin a multipart upload; ``PUT`` sends a part, ``POST``
                                       completes it, ``DELETE`` aborts it
``DELETE /bucket/key``                 remove an object
=====================================  ==========================================================

``x-goog-if-generation-match: 0`` means that the object must not exist, any other number that it has
that generation.
"""

import hashlib
import json
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.servers.places import Place

BUCKET = "bucket"


class Stored(NamedTuple):
    """One generation of an object."""

    content: bytes
    generation: int
    modified: datetime

    @property
    def etag(self) -> str:
        """The entity tag."""
        return f'"{hashlib.md5(self.content, usedforsecurity=False).hexdigest()}"'

    @property
    def headers(self) -> dict[str, str]:
        """The headers of an answer that is about this object."""
        return {
            "ETag": self.etag,
            "Last-Modified": format_datetime(self.modified, usegmt=True),
            "x-goog-generation": str(self.generation),
        }


class Answer(NamedTuple):
    """What a request is answered with."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


@dataclass
class Asked:
    """A request, taken apart."""

    method: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Bucket:
    """The objects and the unfinished uploads of the server."""

    objects: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, tuple[str, dict[int, bytes]]] = field(default_factory=dict)
    generation: int = 0
    page: int = 1000
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Answer:
        """Serve one request."""
        with self.lock:
            if not asked.key:
                return self._list(asked.query)
            if "uploads" in asked.query or "uploadId" in asked.query:
                return self._upload(asked)
            if asked.method == "PUT":
                return self._put(asked)
            found = self.objects.get(asked.key)
            if found is None:
                return _error(404, "NoSuchKey")
            if asked.method == "DELETE":
                del self.objects[asked.key]
                return Answer(204)
            return _read(found, asked.headers.get("range"))

    def _list(self, query: dict[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        limit = min(int(query.get("max-keys", self.page)), self.page)
        entries: list[str] = []
        folders: dict[str, None] = {}
        last = token = ""
        for key in sorted(self.objects):
            if not key.startswith(prefix) or key <= after:
                continue
            if len(entries) + len(folders) == limit:
                token = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
                break
            last = key
            head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if cut:
                folders[prefix + head + cut] = None
            else:
                entries.append(_entry(key, self.objects[key]))
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders
        )
        return _xml("ListBucketResult", "".join(entries) + common + token)

    def _put(self, asked: Asked) -> Answer:
        condition = asked.headers.get("x-goog-if-generation-match")
        present = self.objects.get(asked.key)
        if condition is not None and int(condition) != (present.generation if present else 0):
            return _error(412, "PreconditionFailed")
        source = asked.headers.get("x-goog-copy-source")
        if source is None:
            return Answer(200, b"", self._store(asked.key, asked.body).headers)
        copied = self.objects.get(unquote(source).lstrip("/").partition("/")[2])
        if copied is None:
            return _error(404, "NoSuchKey")
        stored = self._store(asked.key, copied.content)
        return _xml("CopyObjectResult", f"<ETag>{escape(stored.etag)}</ETag>", stored.headers)

    def _store(self, key: str, content: bytes) -> Stored:
        self.generation += 1
        stored = Stored(content, self.generation, datetime.now(UTC))
        self.objects[key] = stored
        return stored

    def _upload(self, asked: Asked) -> Answer:
        if "uploads" in asked.query:
            name = uuid.uuid4().hex
            self.uploads[name] = (asked.key, {})
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>")
        name = asked.query["uploadId"]
        if name not in self.uploads:
            return _error(404, "NoSuchUpload")
        key, parts = self.uploads[name]
        if asked.method == "PUT":
            parts[int(asked.query["partNumber"])] = asked.body
            return Answer(200, b"", {"ETag": Stored(asked.body, 0, datetime.now(UTC)).etag})
        del self.uploads[name]
        if asked.method == "DELETE":
            return Answer(204)
        numbers = re.findall(rb"<PartNumber>(\d+)</PartNumber>", asked.body)
        stored = self._store(key, b"".join(parts[int(number)] for number in numbers))
        body = f"<Key>{escape(key)}</Key><ETag>{escape(stored.etag)}</ETag>"
        return _xml("CompleteMultipartUploadResult", body, stored.headers)


def _read(found: Stored, wanted: str | None) -> Answer:
    if wanted is None:
        return Answer(200, found.content, found.headers)
    size = len(found.content)
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(size - int(last), 0)
    stop = min(int(last) + 1, size) if first and last else size
    if start >= size:
        return _error(416, "InvalidRange")
    span = {"Content-Range": f"bytes {start}-{stop - 1}/{size}"}
    return Answer(206, found.content[start:stop], {**found.headers, **span})


def _entry(key: str, stored: Stored) -> str:
    return (
        f"<Contents><Key>{escape(key)}</Key><Size>{len(stored.content)}</Size>"
        f"<Generation>{stored.generation}</Generation><ETag>{escape(stored.etag)}</ETag>"
        f"<LastModified>{stored.modified:%Y-%m-%dT%H:%M:%S.%fZ}</LastModified></Contents>"
    )


def _xml(name: str, inner: str, headers: dict[str, str] | None = None) -> Answer:
    text = f"<?xml version='1.0' encoding='UTF-8'?><{name}>{inner}</{name}>"
    return Answer(200, text.encode(), {**(headers or {}), "Content-Type": "application/xml"})


def _error(status: int, code: str) -> Answer:
    return Answer(status, f"<Error><Code>{code}</Code></Error>".encode())


def place_at(port: int) -> Place:
    """Return the bucket of a server, or of a proxy before one."""
    account = {
        "type": "service_account",
        "gcs_base_url": f"http://127.0.0.1:{port}",
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    options = {"google_service_account_key": json.dumps(account), "allow_http": "true"}
    return Place(f"gs://{BUCKET}", options, options)


@contextmanager
def google() -> Iterator[Place]:
    """Start a server with one bucket, and stop it."""
    bucket = Bucket()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            return

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                self.close_connection = True

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            name, _, key = unquote(url.path).lstrip("/").partition("/")
            query = {n: v[0] for n, v in parse_qs(url.query, keep_blank_values=True).items()}
            headers = {n.lower(): value for n, value in self.headers.items()}
            if name != BUCKET:
                answer = _error(404, "NoSuchBucket")
            else:
                answer = bucket.answer(Asked(self.command, key, query, headers, body))
            self.send_response_only(answer.status)
            for header, value in answer.headers.items():
                self.send_header(header, value)
            if answer.status != 204:
                self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any  # noqa: N815

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: object) -> None:
            return

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield place_at(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
