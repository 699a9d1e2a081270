"""An S3 and DynamoDB server in a process of its own: moto's.

Run as a program it prints the port it listens on, and ends when its input does.
"""

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tests.servers.places import Place
from tests.servers.s3 import BUCKET, S3Server


class Moto(S3Server):
    """A running server."""

    def place(self, bucket: str = BUCKET, *, endpoint: str | None = None) -> Place:
        """Return a bucket of the server, with the address of its DynamoDB."""
        place = super().place(bucket, endpoint=endpoint)
        both = {**place.options, "dynamodb_endpoint": self.endpoint}
        return Place(place.uri, both, both)


@contextmanager
def running() -> Iterator[Moto]:
    """Start a server with one bucket, and stop it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.moto"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        server = Moto(int(process.stdout.readline()))
        server.client().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        process.stdin.close()
        process.stdout.close()
        process.terminate()
        process.wait(10)


class OneByOne:
    """Lets requests with a condition through one at a time.

    moto checks a condition and writes in two steps, between which another thread may write: of
    eight writers of one DynamoDB item two succeed now and then. A real service never does that.
    """

    def __init__(self, inner: Callable[..., Iterable[bytes]]) -> None:
        self.inner = inner
        self.lock = threading.Lock()

    def __call__(self, environ: dict[str, str], start: object) -> Iterable[bytes]:
        """Serve a request."""
        if "HTTP_IF_NONE_MATCH" in environ or "HTTP_X_AMZ_TARGET" in environ:
            with self.lock:
                return list(self.inner(environ, start))
        return self.inner(environ, start)


def _serve() -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    app = OneByOne(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(server.server_port, flush=True)  # noqa: T201
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    _serve()
