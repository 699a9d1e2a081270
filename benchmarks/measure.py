"""How is one case measured: checked for equal results, then timed with the peers in turn?"""

import gc
import math
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.cases import Case, Subject, Unit
from benchmarks.peers import Handle, Peer
from benchmarks.rows import SEED

_BUDGET_SECONDS = 2.0
_TURN_SECONDS = 0.1
_LONGEST_TURN = 10
_LONG_SECONDS = 0.01
COMPARED = ("ours", "pylance")
"""The peers whose times make the ratio."""
_OTHERS = 3
"""Rounds of the peers that stand beside the comparison."""


class Samples(NamedTuple):
    """The samples of one peer in one case, or why there are none."""

    values: tuple[float, ...] = ()
    error: str | None = None

    def summary(self) -> dict[str, Any]:
        """Return median, quartiles and extremes."""
        if not self.values:
            return {"error": self.error}
        low, middle, high = (
            statistics.quantiles(self.values, n=4, method="inclusive")
            if len(self.values) > 1
            else self.values * 3
        )
        return {
            "median": middle,
            "quartiles": [low, high],
            "extremes": [min(self.values), max(self.values)],
            "samples": len(self.values),
        }


class Outcome(NamedTuple):
    """What a case gave."""

    case: Case
    peers: dict[str, Samples]
    is_equal: bool | None
    """Whether the peers gave the same result; None where nothing was compared."""

    @property
    def ratio(self) -> float | None:
        """Return pylance's median over ours, so that more is better; of recalls ours over its."""
        medians = [self.peers.get(name, Samples()).values for name in ("pylance", "ours")]
        if not all(medians) or self.is_equal is False:
            return None
        ratio = statistics.median(medians[0]) / statistics.median(medians[1])
        return 1 / ratio if self.case.unit is Unit.RECALL else ratio

    @property
    def is_hit(self) -> bool | None:
        """Return whether the target is reached; None without a target or a ratio."""
        if self.case.target is None or self.ratio is None:
            return None
        return self.ratio >= self.case.target


def _is_same(first: object, second: object) -> bool:
    if isinstance(first, pa.Table):
        return (
            isinstance(second, pa.Table)
            and first.column_names == second.column_names
            and all(map(pa.ChunkedArray.equals, first.columns, second.columns))
        )
    if isinstance(first, float):
        return isinstance(second, float) and math.isclose(first, second, rel_tol=1e-9)
    if isinstance(first, list) and isinstance(second, list):
        # Scores and distances, whose sums each peer adds up in an order of its own.
        return len(first) == len(second) and np.allclose(first, second, rtol=1e-4)
    return first == second


class _Bench:
    """One case with its open tables."""

    def __init__(self, case: Case, uri: str, rows: int) -> None:
        self.case = case
        self._uri = uri
        self._rows = rows
        self._random = np.random.default_rng(SEED)
        self._tables: dict[str, Handle] = {}
        self.errors: dict[str, str] = {}

    def draw(self) -> list[int]:
        """Return the random positions of the next round."""
        if not self.case.draws:
            return []
        rows: list[int] = self._random.choice(
            self._rows, self.case.draws, replace=False, shuffle=True
        ).tolist()
        return rows

    def turn(self, peer: Peer, draws: Sequence[list[int]]) -> tuple[list[float], object]:
        """Run the case once for each draw, and return the samples with the last result."""
        if peer.name not in self._tables:
            self._tables[peer.name] = peer.open(self._uri)
        subject = Subject(peer, self._uri, self._tables[peer.name], [])
        run = self.case.run
        is_told = self.case.unit is not Unit.SECONDS
        if self.case.prepare is not None:
            subject = self.case.prepare(subject)
        samples = []
        result: object = None
        try:
            for rows in draws:
                drawn = subject._replace(rows=rows)
                # What the last call gave is let go of before the clock starts.
                result = None
                start = time.perf_counter()
                result = run(drawn)
                seconds = time.perf_counter() - start
                tells = isinstance(result, int | float) and is_told
                samples.append(float(result) if tells else seconds)
        finally:
            if self.case.settle is not None:
                self.case.settle(subject)
        return samples, result

    def attempt(self, peer: Peer, rows: list[int]) -> object:
        """Run the case once; remember the peer's error, if any, and return None then."""
        if self.case.is_change and not peer.can_change:
            self.errors[peer.name] = f"NotImplementedError: {peer.name} does not change tables"
            return None
        # A peer that fails must not end the run.
        try:
            return self.turn(peer, [rows])[1]
        except Exception as error:
            self.errors[peer.name] = f"{type(error).__name__}: {error}"
            return None

    def check(self, peers: Sequence[Peer]) -> bool | None:
        """Return whether all peers that can be compared give the same result."""
        rows = self.draw()
        results = [
            result
            for peer in peers
            if (result := self.attempt(peer, rows)) is not None and peer.is_comparable
        ]
        if self.case.unit is not Unit.SECONDS or len(results) < 2:
            return None
        return all(_is_same(results[0], other) for other in results[1:])


class _Pace(NamedTuple):
    """How often the peers take turns, and how many calls a turn has."""

    rounds: int
    calls: int


def _pace(bench: _Bench, peers: Sequence[Peer], repeat: int | None) -> _Pace:
    """Choose what fits into the time of one case, after a round to warm up."""
    case = bench.case
    if case.repeats:
        return _Pace(repeat or case.repeats, case.calls)
    rows = bench.draw()
    seconds = [sum(bench.turn(peer, [rows])[0]) for peer in peers]
    calls = max(1, min(_LONGEST_TURN, int(_TURN_SECONDS / max(seconds))))
    # An even number, so that each peer is first equally often.
    fitting = int(_BUDGET_SECONDS / sum(seconds) / calls / 2)
    return _Pace(repeat or 2 * max(3, min(100, fitting)), calls)


def _sample(
    bench: _Bench, peers: Sequence[Peer], pace: _Pace, samples: dict[str, list[float]]
) -> None:
    """Let the peers take turns.

    Where a turn has several calls its first is not counted: for whoever comes next it would tell
    of the caches and the threads that the one before has left behind, not of the operation.
    """
    for number in range(pace.rounds):
        draws = [bench.draw() for _ in range(pace.calls)]
        for peer in peers if number % 2 else reversed(peers):
            made = bench.turn(peer, draws)[0]
            samples[peer.name] += made[1:] or made
            if bench.case.unit is Unit.SECONDS and max(made) > _LONG_SECONDS:
                gc.collect()


def measure(
    case: Case, uri: str, rows: int, peers: Sequence[Peer], *, repeat: int | None = None
) -> Outcome:
    """Check and time one case; the peers take turns, and each round changes who is first."""
    bench = _Bench(case, uri, rows)
    is_equal = bench.check(peers)
    working = [peer for peer in peers if peer.name not in bench.errors]
    samples: dict[str, list[float]] = {peer.name: [] for peer in working}
    gc.collect()
    gc.disable()
    try:
        # The two that are compared take turns; how slow the others are must not cost them rounds.
        main = [peer for peer in working if peer.name in COMPARED]
        if main:
            _sample(bench, main, _pace(bench, main, repeat), samples)
        for peer in working:
            if peer not in main:
                _sample(bench, [peer], _Pace(min(repeat or _OTHERS, _OTHERS), 1), samples)
    finally:
        gc.enable()
    failed = {name: Samples(error=text) for name, text in bench.errors.items()}
    done = {name: Samples(tuple(values)) for name, values in samples.items()}
    return Outcome(case, {peer.name: {**failed, **done}[peer.name] for peer in peers}, is_equal)
