"""On what was a run measured?"""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

_LIBRARIES = ("lancetable", "pylance", "pyarrow", "deltalake", "numpy", "protobuf")


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def copy_speed() -> float:
    """Return the speed of copying 256 MB in memory, in GB/s; a low value marks a busy machine."""
    source = np.ones(1 << 25)
    target = np.zeros(1 << 25)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return round(source.nbytes / best / 1e9, 1)


def write_speed(folder: Path) -> float:
    """Return the speed of writing 256 MB to a file, in GB/s, as far as the page cache."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "speed.tmp"
    content = np.ones(1 << 25)
    best = float("inf")
    try:
        for _ in range(3):
            start = time.perf_counter()
            path.write_bytes(content.data)
            best = min(best, time.perf_counter() - start)
    finally:
        path.unlink(missing_ok=True)
    return round(content.nbytes / best / 1e9, 1)


def machine_facts(folder: Path) -> dict[str, Any]:
    """Return what a reader needs to know to compare two runs."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "libraries": {library: _version(library) for library in _LIBRARIES},
        "load": round(os.getloadavg()[0], 1),
        "memcpy_gb_per_s": copy_speed(),
        "write_gb_per_s": write_speed(folder),
    }
