"""The peer `raw`: the floor set by the machine, for cases where one can be named.

Opening is reading the version hint and the bytes of the manifest it names, a scan of all columns
is reading every data file into memory, and a fresh process is the bare interpreter. Nothing is
decoded, so its results are never compared, and other cases are left out.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

# Manifest names count down, so that the newest one is listed first.
_LAST_VERSION = 2**64 - 1


def _no_floor(what: str) -> NoReturn:
    raise NotImplementedError(f"there is no raw floor for {what}")


@dataclass(frozen=True, slots=True)
class _Handle:
    root: Path
    manifest: bytes

    def version(self) -> int:
        return len(self.manifest)

    def scan(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        if columns is not None or where is not None:
            _no_floor("a part of the columns or rows")
        return [file.read_bytes() for file in (self.root / "data").iterdir()]

    def __getattr__(self, name: str) -> NoReturn:
        """Say so of everything else."""
        _no_floor(name)


@dataclass(frozen=True, slots=True)
class _Raw:
    name: str = "raw"
    count_program: str = "pass"
    is_comparable: bool = False
    can_change: bool = False

    def open(self, uri: str) -> _Handle:
        folder = Path(uri, "_versions")
        version = json.loads((folder / "latest_version_hint.json").read_bytes())["version"]
        manifest = (folder / f"{_LAST_VERSION - version:020}.manifest").read_bytes()
        return _Handle(Path(uri), manifest)

    def create(self, uri: str, data: pa.Table | pa.RecordBatchReader) -> None:
        _no_floor(f"writing {uri} ({type(data).__name__})")


PEER = _Raw()
