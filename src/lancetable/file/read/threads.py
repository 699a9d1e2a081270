"""The number of threads that share the work of a large take.

A thread that has to wait for a processor in the middle of its part makes the caller wait, too. So
a take gets no other threads while all processors are busy.
"""

import os
import sys

MOST_THREADS = 4
_LOAD = "/proc/loadavg"


def free_threads() -> int:
    """Return how many threads can run at once just now, the caller's included."""
    if sys.platform == "linux":
        processors = len(os.sched_getaffinity(0))
        free = processors - _running() + 1 if processors > 1 else 1
    else:
        free = os.cpu_count() or 1
    return min(max(free, 1), MOST_THREADS)


def _running() -> int:
    """Return how many threads of the machine want to run, the caller's included."""
    try:
        file = os.open(_LOAD, os.O_RDONLY)
    except OSError:
        return 1
    try:
        # 0.20 0.18 0.12 1/80 11206: one of eighty.
        return int(os.read(file, 128).split()[3].partition(b"/")[0])
    except (OSError, IndexError, ValueError):
        return 1
    finally:
        os.close(file)
