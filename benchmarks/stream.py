"""How much memory does this process need to stream one table?

Meant for a new process; prints rows, peak and anonymous bytes as JSON.
"""

import json
import resource
import sys
from pathlib import Path

from benchmarks.peers import load_peer

_STATUS = Path("/proc/self/status")


def _status_bytes(key: str) -> int:
    """Return one line of the process status in bytes, 0 where the system does not tell."""
    if not _STATUS.exists():
        return 0
    for line in _STATUS.read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


def _peak() -> int:
    """Return the largest resident size so far.

    On Linux `ru_maxrss` survives exec and so may be that of the parent; `VmHWM` does not.
    """
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return _status_bytes("VmHWM") or (used if sys.platform == "darwin" else used * 1024)


def main(peer: str, uri: str) -> None:
    """Stream the table, dropping every batch, and print what it took."""
    rows = anonymous = 0
    for batch in load_peer(peer).open(uri).stream():
        rows += batch.num_rows
        anonymous = max(anonymous, _status_bytes("RssAnon"))
    sys.stdout.write(json.dumps({"rows": rows, "peak": _peak(), "anonymous": anonymous}) + "\n")
