"""A front of our own that speaks the Google Cloud Storage XML API before the S3 server.

Objects, parts and metadata are kept by SeaweedFS. The front signs and renames what clients send:

==================================  ==============================================================
``GET /bucket?list-type=2``         ``ListObjectsV2``
``GET``, ``HEAD /bucket/key``       ``GetObject``, ``HeadObject``, of one ``generation`` if asked
``PUT /bucket/key``                 ``PutObject``, or ``CopyObject`` for ``x-goog-copy-source``
``POST /bucket/key?uploads``        ``CreateMultipartUpload`` in a second bucket; ``PUT`` of a part
                                    and ``DELETE`` go there too
``POST /bucket/key?uploadId=``      ``CompleteMultipartUpload`` there, then ``CopyObject``
``DELETE /bucket/key``              ``DeleteObject``, but 404 without an object
==================================  ==============================================================

The generation of an object is a piece of its metadata, so it is read and replaced together with the
content. An upload gets it when it is completed, hence the copy. ``x-goog-if-generation-match: 0``
becomes ``If-None-Match: *``. S3 has no condition for any other generation, so the front compares it
and writes under a lock, which every change of the same key takes.

Unlike those of Google, lists have no generations, and the order of folders: ``a/b`` before ``a-b``.
"""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from tests.servers.places import Place
from tests.servers.s3 import S3Server

BUCKET = "google"
UPLOADS = "google-uploads"
_GENERATION = "x-amz-meta-front-generation"
# The headers of an object, by which it is asked for, and of answers.
_STORED = ("content-type", "content-encoding", "content-disposition", "cache-control")
_ASKED = ("range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
_ANSWERED = ("etag", "last-modified", "content-range", "content-length")


class Answer(NamedTuple):
    """What a request is answered with."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


class Asked(NamedTuple):
    """A request, taken apart."""

    method: str
    key: str
    query: Mapping[str, str] = MappingProxyType({})
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""


class Front:
    """The translation of requests to an S3 server."""

    def __init__(self, server: S3Server) -> None:
        from botocore.auth import S3SigV4Auth
        from botocore.credentials import Credentials

        self._port = server.port
        keys = Credentials(server.keys["aws_access_key_id"], server.keys["aws_secret_access_key"])
        self._signer = S3SigV4Auth(keys, "s3", server.keys["aws_region"])
        self._locks = [threading.Lock() for _ in range(64)]
        # As with Google, microseconds since 1970.
        self._generations = itertools.count(time.time_ns() // 1000)
        for name in (BUCKET, UPLOADS):
            server.client().create_bucket(Bucket=name)

    def answer(self, asked: Asked) -> Answer:
        """Serve one request."""
        if not asked.key:
            return self._send(BUCKET, asked)
        if "uploads" in asked.query or ("uploadId" in asked.query and asked.method != "POST"):
            return self._send(UPLOADS, asked)
        if asked.method in {"GET", "HEAD"}:
            return self._read(asked)
        with self._locks[hash(asked.key) % len(self._locks)]:
            return self._change(asked)

    def _read(self, asked: Asked) -> Answer:
        answer = self._send(BUCKET, asked._replace(query={}))
        found = answer.headers.get("x-goog-generation")
        if found is not None and asked.query.get("generation", found) != found:
            return _error(404, "NoSuchKey")
        return answer

    def _change(self, asked: Asked) -> Answer:
        condition = asked.headers.get("x-goog-if-generation-match")
        if asked.method == "DELETE" or condition not in {None, "0"}:
            present = self._send(BUCKET, Asked("HEAD", asked.key))
            if present.status not in {200, 404}:
                return _error(present.status, "InternalError")
            if condition not in {None, present.headers.get("x-goog-generation", "0")}:
                return _error(412, "PreconditionFailed")
            if asked.method == "DELETE" and present.status == 404:
                return _error(404, "NoSuchKey")
        if asked.method == "DELETE":
            return self._send(BUCKET, asked)
        generation = str(next(self._generations))
        headers = {_GENERATION: generation, **({"if-none-match": "*"} if condition == "0" else {})}
        if asked.method == "POST":
            answer = self._complete(asked, headers)
        elif source := asked.headers.get("x-goog-copy-source"):
            answer = self._copy(unquote(source).lstrip("/"), asked.key, headers)
        else:
            answer = self._send(BUCKET, asked, headers)
        if answer.status != 200:
            return answer
        return answer._replace(headers={**answer.headers, "x-goog-generation": generation})

    def _complete(self, asked: Asked, headers: dict[str, str]) -> Answer:
        whole = self._send(UPLOADS, asked)
        if whole.status != 200:
            return whole
        copied = self._copy(f"{UPLOADS}/{asked.key}", asked.key, headers)
        if copied.status != 200:
            return copied
        self._send(UPLOADS, Asked("DELETE", asked.key))
        return whole._replace(content=whole.content.replace(UPLOADS.encode(), BUCKET.encode()))

    def _copy(self, source: str, key: str, headers: dict[str, str]) -> Answer:
        """Copy an object with its metadata, but for the generation."""
        bucket, _, name = source.partition("/")
        found = self._send(bucket, Asked("HEAD", name))
        if found.status != 200:
            return _error(found.status, "NoSuchKey")
        copying = {"x-amz-copy-source": quote(source), "x-amz-metadata-directive": "REPLACE"}
        return self._send(BUCKET, Asked("PUT", key, headers=found.headers), {**headers, **copying})

    def _send(self, bucket: str, asked: Asked, extra: Mapping[str, str] | None = None) -> Answer:
        """Sign a request, send it to a bucket of the S3 server and rename its answer."""
        from botocore.awsrequest import AWSRequest

        path = quote(f"/{bucket}/{asked.key}")
        if asked.query:
            path += f"?{urlencode(asked.query, quote_via=quote)}"
        headers = _renamed(asked.headers, "x-goog-", "x-amz-", _STORED + _ASKED) | dict(extra or {})
        host = f"127.0.0.1:{self._port}"
        request = AWSRequest(asked.method, f"http://{host}{path}", headers, asked.body)
        self._signer.add_auth(request)
        connection = http.client.HTTPConnection(host, timeout=60)
        try:
            connection.request(asked.method, path, asked.body, dict(request.headers.items()))
            found = connection.getresponse()
            content = found.read()
        except (OSError, http.client.HTTPException):
            return _error(503, "ServiceUnavailable")
        finally:
            connection.close()
        given = {name.lower(): value for name, value in found.getheaders()}
        answered = _renamed(given, "x-amz-", "x-goog-", _STORED + _ANSWERED)
        if _GENERATION in given:
            answered["x-goog-generation"] = given[_GENERATION]
        return Answer(found.status, content, answered)


def _renamed(
    headers: Mapping[str, str], old: str, new: str, others: tuple[str, ...]
) -> dict[str, str]:
    """Keep the metadata by its other name, and some further headers."""
    return {
        name.replace(old, new): value
        for name, value in headers.items()
        if name != _GENERATION and (name.startswith(f"{old}meta-") or name in others)
    }


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


def _reply(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    headers = dict(answer.headers)
    if handler.command != "HEAD" or "content-length" not in headers:
        headers["content-length"] = str(len(answer.content))
    if answer.status in {204, 304}:
        del headers["content-length"]
    handler.send_response_only(answer.status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(answer.content)


@contextmanager
def google(server: S3Server) -> Iterator[Place]:
    """Start a front before an S3 server, and stop it."""
    front = Front(server)

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
                answer = front.answer(Asked(self.command, key, query, headers, body))
            _reply(self, answer)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any  # noqa: N815

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: object) -> None:
            return

    listener = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield place_at(listener.server_address[1])
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
