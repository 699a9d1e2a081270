"""A web proxy that injects faults: errors, resets, silence, cut answers, repeated deliveries.

It stands before a server, passes requests on and remembers them. Which request is hurt, and how, is
drawn from a seeded generator, or decided by a function of the test.
"""

import contextlib
import enum
import http.client
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

_GENERATION = "x-goog-if-generation-match"
_CONDITIONS = frozenset({"if-none-match", _GENERATION})
CONFLICT = (
    b'<?xml version="1.0"?><Error><Code>ConditionalRequestConflict</Code>'
    b"<Message>A conflicting operation occurred, try again.</Message></Error>"
)
DENIED = b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'
SLOW_DOWN = (
    b'<?xml version="1.0"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)


class Harm(enum.Enum):
    """What happens to a request."""

    NONE = "none"
    THROTTLE = "503, nothing done"
    ERROR = "500, nothing done"
    LOST_ANSWER = "500, but done"
    RESET = "reset, nothing done"
    RESET_AFTER = "reset, but done"
    CUT = "answer cut short"
    SLOW = "late"
    TOO_MANY = "429, nothing done"
    DENIED = "403, nothing done"
    CONFLICT = "409 to a conditional write, nothing done"
    SILENCE = "no answer, nothing done"
    SILENCE_AFTER = "no answer, but done"
    TWICE = "done twice, the second answer given"
    OVERTAKEN = "reset, and done after its repetition"


# Those that cost little time, whatever the limits of the client are.
USUAL = (
    Harm.THROTTLE,
    Harm.ERROR,
    Harm.LOST_ANSWER,
    Harm.RESET,
    Harm.RESET_AFTER,
    Harm.CUT,
    Harm.SLOW,
)


class Seen(NamedTuple):
    """One request."""

    method: str
    path: str
    range_: str
    harm: Harm


Choose = Callable[[str, str], Harm]


class Proxy:
    """A running proxy."""

    def __init__(self, port: int, upstream: int) -> None:
        self.port = port
        self.upstream = upstream
        self.endpoint = f"http://127.0.0.1:{port}"
        self.seen: list[Seen] = []
        self.under_way = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        self.choose: Choose = lambda method, path: Harm.NONE
        self.delay = 0.0
        self.overtaken_seconds = 0.4
        self.silent_seconds = 30.0
        self.drops_conditions = False
        self.answer: Callable[[str, str], tuple[int, bytes] | None] = lambda method, path: None

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request among those under way."""
        with self._lock:
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            yield
        finally:
            with self._lock:
                self.under_way -= 1

    def hurt(self, share: float, seed: int = 0, kinds: list[Harm] | None = None) -> None:
        """Hurt a share of the requests from here on."""
        draw, lock = random.Random(seed), threading.Lock()
        usual = kinds or list(USUAL)

        def choose(method: str, path: str) -> Harm:
            with lock:
                return draw.choice(usual) if draw.random() < share else Harm.NONE

        self.choose = choose

    def heal(self) -> None:
        """Pass everything on again."""
        self.choose = lambda method, path: Harm.NONE

    def settle(self) -> None:
        """Wait until no request is under way, those included that were held back."""
        deadline = time.monotonic() + 60
        while self.under_way:
            assert time.monotonic() < deadline, "a request is under way for a minute"
            time.sleep(0.01)


@contextmanager
def proxy(upstream: int) -> Iterator[Proxy]:
    """Start a proxy before a port of this machine."""

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
            with state.counted():
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                if len(body) < length:
                    # The client gave up while it sent; a server would wait for the rest.
                    self.close_connection = True
                else:
                    _pass_on(self, state, body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any  # noqa: N815

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: object) -> None:
            return

    server = Server(("127.0.0.1", 0), Handler)
    state = Proxy(server.server_address[1], upstream)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _pass_on(handler: BaseHTTPRequestHandler, state: Proxy, body: bytes) -> None:
    method, path = handler.command, handler.path
    if "X-Amz-Target" in handler.headers:
        # DynamoDB names the operation in a header only.
        path += handler.headers["X-Amz-Target"].rpartition(".")[2]
    harm = state.choose(method, path)
    state.seen.append(Seen(method, path, handler.headers.get("Range") or "", harm))
    if state.delay:
        time.sleep(state.delay)
    made_up = state.answer(method, path)
    if made_up is not None:
        return _reply(handler, made_up[0], {}, made_up[1])
    if harm in _UNDONE:
        return _UNDONE[harm](handler, state)
    if harm is Harm.CONFLICT and _is_conditional(handler):
        return _reply(handler, 409, {}, CONFLICT)
    if harm is Harm.OVERTAKEN:
        _reset(handler)
        time.sleep(state.overtaken_seconds)
    if harm is Harm.SLOW:
        time.sleep(0.2)
    if harm is Harm.TWICE:
        _ask(handler, state, body)
    status, headers, content = _ask(handler, state, body)
    if harm in _DONE:
        return _DONE[harm](handler, state)
    cut = len(content) // 2 if harm is Harm.CUT and len(content) > 1 else None
    return _reply(handler, status, headers, content, cut)


def _is_conditional(handler: BaseHTTPRequestHandler) -> bool:
    return any(handler.headers.get(name) for name in ("If-None-Match", _GENERATION))


def _ask(
    handler: BaseHTTPRequestHandler, state: Proxy, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    # The host is part of what is signed, so it stays as it came.
    headers = dict(handler.headers.items())
    if state.drops_conditions:
        headers = {
            name: value for name, value in headers.items() if name.lower() not in _CONDITIONS
        }
    connection = http.client.HTTPConnection("127.0.0.1", state.upstream, timeout=60)
    try:
        connection.putrequest(handler.command, handler.path, True, True)
        for name, value in headers.items():
            if name.lower() not in {"connection", "transfer-encoding"}:
                connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def _reply(
    handler: BaseHTTPRequestHandler,
    status: int,
    headers: dict[str, str],
    content: bytes,
    cut: int | None = None,
) -> None:
    handler.send_response_only(status)
    length = str(len(content))
    for name, value in headers.items():
        if name.lower() == "content-length" and handler.command == "HEAD":
            length = value
        elif name.lower() not in {"content-length", "connection", "transfer-encoding"}:
            handler.send_header(name, value)
    if status not in {204, 304}:
        handler.send_header("Content-Length", length)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(content if cut is None else content[:cut])
    if cut is not None:
        _reset(handler)


def _reset(handler: BaseHTTPRequestHandler) -> None:
    """End the connection without a goodbye."""
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def _stay_silent(handler: BaseHTTPRequestHandler, state: Proxy) -> None:
    """Say nothing until the client gives up."""
    handler.connection.settimeout(state.silent_seconds)
    with contextlib.suppress(OSError):
        handler.connection.recv(1, socket.MSG_PEEK)
    handler.close_connection = True


Reaction = Callable[[BaseHTTPRequestHandler, Proxy], None]
_UNDONE: dict[Harm, Reaction] = {
    Harm.RESET: lambda handler, _: _reset(handler),
    Harm.THROTTLE: lambda handler, _: _reply(handler, 503, {}, SLOW_DOWN),
    Harm.TOO_MANY: lambda handler, _: _reply(handler, 429, {}, SLOW_DOWN),
    Harm.ERROR: lambda handler, _: _reply(handler, 500, {}, b""),
    Harm.DENIED: lambda handler, _: _reply(handler, 403, {}, DENIED),
    Harm.SILENCE: _stay_silent,
}
_DONE: dict[Harm, Reaction] = {
    Harm.RESET_AFTER: lambda handler, _: _reset(handler),
    Harm.LOST_ANSWER: lambda handler, _: _reply(handler, 500, {}, b""),
    Harm.SILENCE_AFTER: _stay_silent,
    Harm.OVERTAKEN: lambda handler, _: None,
}
