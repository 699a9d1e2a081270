"""Both libraries on one S3 server on this machine, with and without a delay of the network.

``python -m benchmarks.cloud`` prints medians and ratios. The server and the proxy that delays
answers run in processes of their own; both libraries take turns, so that a busy machine slows both.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import lancetable as lt
from lancetable.store.cloud.objects import KEPT
from tests.servers import moto
from tests.servers.places import Place
from tests.servers.proxy import proxy

ROWS = 400_000
TAKEN = 100


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that both libraries do."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    rounds: int


def rows(count: int = ROWS) -> pa.Table:
    """Return rows of five columns, about 60 bytes each."""
    draw = np.random.default_rng(0)
    return pa.table(
        {
            "id": np.arange(count),
            "a": draw.random(count),
            "b": draw.integers(0, 1000, count),
            "text": [f"name {number % 5000} of {number}" for number in range(count)],
            "f": draw.random(count).astype(np.float32),
        }
    )


def wide(megabytes: int) -> pa.Table:
    """Return vectors of so many megabytes, which hardly take time to encode."""
    count = megabytes * 1024 * 1024 // 4 // 256
    values = np.random.default_rng(0).random(count * 256, dtype=np.float32)
    return pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(values), 256)})


@contextmanager
def delayed(server: moto.Moto, seconds: float) -> Iterator[str]:
    """Give an endpoint that answers later than the server does."""
    if not seconds:
        yield server.endpoint
        return
    command = [sys.executable, "-m", "benchmarks.cloud", "--proxy", str(server.port), str(seconds)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait(10)


def serve_proxy(port: int, seconds: float) -> None:
    """Run a proxy until the input ends."""
    with proxy(port) as running:
        running.delay = seconds
        print(running.port, flush=True)
        sys.stdin.read()


def cases(place: Place, megabytes: int, rounds: int) -> list[Case]:
    """Make the tables, and say what is measured on them."""
    import lance

    base = place.fresh()
    lance.write_dataset(rows(), base.uri, storage_options=base.pylance, max_rows_per_file=ROWS // 4)
    grown = {"ours": place.fresh(), "theirs": place.fresh()}
    for one in grown.values():
        lance.write_dataset(rows(1000), one.uri, storage_options=one.pylance)
    more = rows(1000)
    vectors = wide(megabytes)
    taken = np.sort(np.random.default_rng(1).choice(ROWS, TAKEN, replace=False)).tolist()

    def open_ours(one: Place = base) -> lt.Table:
        return lt.open_table(one.uri, storage_options=one.options)

    def open_theirs(one: Place = base) -> "lance.LanceDataset":
        return lance.dataset(one.uri, storage_options=one.pylance)

    def append_theirs() -> object:
        one = grown["theirs"]
        return lance.write_dataset(
            more, open_theirs(one), mode="append", storage_options=one.pylance
        )

    def open_anew() -> lt.Table:
        KEPT.clear()
        return open_ours()

    return [
        Case("open", open_anew, open_theirs, rounds),
        Case("open again", open_ours, open_theirs, rounds),
        Case(
            "scan",
            lambda: open_ours().scan().to_arrow(),
            lambda: open_theirs().to_table(),
            rounds,
        ),
        Case(
            "take 100",
            lambda: open_ours().take(taken),
            lambda: open_theirs().take(taken),
            rounds,
        ),
        Case("append", lambda: open_ours(grown["ours"]).append(more), append_theirs, rounds),
        Case(
            f"write {megabytes} MB",
            lambda: lt.create_table(place.fresh().uri, vectors, storage_options=place.options),
            lambda: lance.write_dataset(vectors, place.fresh().uri, storage_options=place.pylance),
            max(rounds // 5, 2),
        ),
    ]


def measure(case: Case) -> tuple[float, float]:
    """Return the median seconds of ours and of theirs, measured by turns."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    case.ours()
    case.theirs()
    for number in range(case.rounds):
        pair = [("ours", case.ours), ("theirs", case.theirs)]
        for who, action in pair if number % 2 else reversed(pair):
            started = time.perf_counter()
            action()
            times[who].append(time.perf_counter() - started)
    return statistics.median(times["ours"]), statistics.median(times["theirs"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--delays", type=float, nargs="*", default=[0.0, 0.02])
    parser.add_argument("--proxy", nargs=2)
    given = parser.parse_args()
    if given.proxy:
        serve_proxy(int(given.proxy[0]), float(given.proxy[1]))
        return
    with moto.running() as server:
        for delay in given.delays:
            with delayed(server, delay) as endpoint:
                place = server.place(endpoint=endpoint)
                print(f"\ndelay {delay * 1000:.0f} ms      ours ms  pylance ms   ratio")
                for case in cases(place, given.megabytes, given.rounds):
                    ours, theirs = measure(case)
                    figures = f"{ours * 1000:9.1f} {theirs * 1000:11.1f} {theirs / ours:7.2f}"
                    print(f"{case.name:<16} {figures}", flush=True)


if __name__ == "__main__":
    main()
