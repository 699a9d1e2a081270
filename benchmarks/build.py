"""How much time of the processor and how much memory does the build of an index take?

Meant for a new process; an index on a few rows is built first, so that everything is loaded. Prints
seconds, bytes at the peak, and how many more these are than at the start, as JSON.
"""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.peak import peak_bytes, status_bytes
from benchmarks.peers import load_peer

_FEW = 1_000
"""Enough rows to learn the codes of vectors."""


def main(kind: str, column: str, memory: str, peer_name: str, uri: str) -> None:
    """Build an index, and print what it took."""
    peer = load_peer(peer_name)
    folder = tempfile.mkdtemp(prefix="few-", dir=Path(uri).parent)
    try:
        few = f"{folder}/table"
        peer.create(few, peer.open(uri).head(_FEW).select([column]))
        peer.open(few).index(column, kind)
    finally:
        shutil.rmtree(folder)
    table = peer.open(uri)
    resident, seconds = status_bytes("VmRSS"), time.process_time()
    table.index(column, kind, int(memory) or None)
    peak = peak_bytes()
    found = {"seconds": time.process_time() - seconds, "peak": peak, "above": peak - resident}
    sys.stdout.write(json.dumps(found) + "\n")
