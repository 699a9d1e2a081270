"""How much memory does this process need for one thing?

Meant for a new process; prints rows, and bytes before, at the peak and anonymous, as JSON.
"""

import json
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks import rows
from benchmarks.peers import load_peer

_STATUS = Path("/proc/self/status")
_PAUSE_SECONDS = 0.002
WRITTEN = 10_000_000
UPSERTED = 2_000_000
TAKEN = 10_000
COMPACTED_WITHIN = {"compact": 256 * 1024 * 1024, "compact_little": 64 * 1024 * 1024}


def status_bytes(key: str) -> int:
    """Return one line of the process status in bytes, 0 where the system does not tell."""
    if not _STATUS.exists():
        return 0
    for line in _STATUS.read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


def peak_bytes() -> int:
    """Return the largest resident size so far.

    On Linux `ru_maxrss` survives exec and so may be that of the parent; `VmHWM` does not.
    """
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return status_bytes("VmHWM") or (used if sys.platform == "darwin" else used * 1024)


def _reader(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Return batches as a stream; the first names the columns."""
    schema = next(rows.batches(1)).schema
    return pa.RecordBatchReader.from_batches(schema, batches)


def _stream(peer: str, uri: str) -> int:
    return sum(batch.num_rows for batch in load_peer(peer).open(uri).stream())


def _filter(peer: str, uri: str) -> int:
    return load_peer(peer).open(uri).scan(where="id % 100 = 7").num_rows


def _take(peer: str, uri: str) -> int:
    table = load_peer(peer).open(uri)
    taken = range(0, table.count(), max(1, table.count() // TAKEN))
    return table.take(list(taken)).num_rows


def _write(peer: str, uri: str) -> int:
    load_peer(peer).create(uri, _reader(rows.batches(WRITTEN)))
    return load_peer(peer).open(uri).count()


def _delete(peer: str, uri: str) -> int:
    load_peer(peer).open(uri).delete("id % 100 = 7")
    return load_peer(peer).open(uri).count()


def _add_column(peer: str, uri: str) -> int:
    load_peer(peer).open(uri).add_column("twice", "val * 2")
    return load_peer(peer).open(uri).count()


def _update(peer: str, uri: str) -> int:
    load_peer(peer).open(uri).update({"val": "val * 2"}, "id % 100 = 7")
    return load_peer(peer).open(uri).count()


def _update_half(peer: str, uri: str) -> int:
    load_peer(peer).open(uri).update({"val": "val * 2"}, "id % 2 = 1")
    return load_peer(peer).open(uri).count()


def _merge(peer: str, uri: str) -> int:
    table = load_peer(peer).open(uri)
    known = table.count()
    table.upsert(_reader(rows.upserted(min(UPSERTED, known), known)), "id")
    return load_peer(peer).open(uri).count()


def _compact(task: str, peer: str, uri: str) -> int:
    load_peer(peer).open(uri).compact(COMPACTED_WITHIN[task])
    return load_peer(peer).open(uri).count()


TASKS: dict[str, Callable[[str, str], int]] = {
    "stream": _stream,
    "filter": _filter,
    "take": _take,
    "write": _write,
    "delete": _delete,
    "add_column": _add_column,
    "update": _update,
    "update_half": _update_half,
    "merge": _merge,
    **{task: partial(_compact, task) for task in COMPACTED_WITHIN},
}


def main(task: str, peer: str, uri: str) -> None:
    """Do one thing with a table, and print what it took."""
    before = peak_bytes()
    anonymous = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_PAUSE_SECONDS):
            anonymous.append(status_bytes("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        counted = TASKS[task](peer, uri)
    finally:
        done.set()
        watcher.join()
    found = {"rows": counted, "before": before, "peak": peak_bytes(), "anonymous": max(anonymous)}
    sys.stdout.write(json.dumps(found) + "\n")
