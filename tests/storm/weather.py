"""Decide which requests of a storm are hurt, by a seed, and tell afterwards what happened."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.servers.proxy import Harm, Proxy

Fault = tuple[Harm, ...]
"""What happens to the first, second … attempt of one request."""

FAULTS: dict[str, Fault] = {
    **{harm.name: (harm,) for harm in Harm if harm is not Harm.NONE},
    "RESET_AFTER_then_CONFLICT": (Harm.RESET_AFTER, Harm.CONFLICT),
    "RESET_AFTER_then_DENIED": (Harm.RESET_AFTER, Harm.DENIED),
    "THROTTLE_then_RESET_AFTER": (Harm.THROTTLE, Harm.RESET_AFTER),
    "LOST_ANSWER_always": (Harm.LOST_ANSWER,) * 6,
}
# A claim decides about a version: its manifest, or its entry in a manifest store.
_AIMS = ("anything", "claims", "claims", "one request")


class Weather:
    """Faults in the requests to one or more servers.

    Args:
        proxies: the proxies before the servers.
        seed: what all choices are drawn from.
        faults: the faults to choose from.
    """

    def __init__(self, proxies: list[Proxy], seed: int, faults: list[Fault]) -> None:
        self.proxies = proxies
        self.faults = faults
        self.draw = random.Random(seed)
        self.log: list[str] = []
        self.hurt = 0

    @contextmanager
    def during(self, title: str, upload: int | None = None) -> Iterator[None]:
        """Hurt requests until the end of the block, and wait until the last one has arrived.

        With ``upload`` only this request of an upload in parts is hurt, counted from 0.
        """
        choose = self._plan(title, upload)
        for one in self.proxies:
            one.choose = choose
        try:
            yield
        finally:
            for one in self.proxies:
                one.heal()
            for one in self.proxies:
                one.settle()

    def _plan(self, title: str, upload: int | None) -> Callable[[str, str], Harm]:
        """Draw what to aim at: a quarter of all requests, claims, or the n-th request."""
        aim, first = self.draw.choice(_AIMS), self.draw.randrange(8)
        if upload is not None:
            aim, first = "upload", upload
        dice = random.Random(self.draw.random())
        self.log.append(f"{title}: aims at {aim}, number {first}")
        lock = threading.Lock()
        waiting: dict[tuple[str, str], list[Harm]] = {}
        state = {"number": -1, "uploads": 0, "left": dice.choice([1, 1, 2])}

        def is_hit(method: str, path: str) -> bool:
            if aim == "anything":
                return dice.random() < 0.25
            if aim == "upload":
                state["uploads"] += is_of_parts(path)
                return is_of_parts(path) and state["uploads"] == first + 1
            fits = _is_claim(method, path) if aim == "claims" else state["number"] >= first
            return fits and state["left"] > 0

        def choose(method: str, path: str) -> Harm:
            with lock:
                state["number"] += 1
                harms = waiting.setdefault((method, path), [])
                if not harms and is_hit(method, path):
                    state["left"] -= 1
                    harms.extend(dice.choice(self.faults))
                harm = harms.pop(0) if harms else Harm.NONE
                self.hurt += harm is not Harm.NONE
                note = harm.name if harm is not Harm.NONE else ""
                self.log.append(f"    {method} {path.partition('?')[0]} {note}")
                return harm

        return choose

    def report(self) -> str:
        """Return what happened, for the message of a failed test."""
        return "\n".join(self.log[-200:])


def _is_claim(method: str, path: str) -> bool:
    return path == "/PutItem" or (method == "PUT" and ".manifest" in path)


def is_of_parts(path: str) -> bool:
    """Say whether a request belongs to an upload in parts, to any of the services."""
    query = path.partition("?")[2]
    return any(name in query for name in ("uploads", "uploadId=", "partNumber=", "comp=block"))
