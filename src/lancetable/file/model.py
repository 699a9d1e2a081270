"""The metadata of a data file, known before any value is decoded."""

from functools import lru_cache
from typing import NamedTuple

from lancetable.errors import InputError


class FileVersion(NamedTuple):
    """The version of a data file, as people name it: 2.0, 2.1, 2.2."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


V2_0 = FileVersion(2, 0)
V2_1 = FileVersion(2, 1)
V2_2 = FileVersion(2, 2)
READABLE = (V2_0, V2_1, V2_2)
_WRITABLE = {str(version): version for version in READABLE}


class Footer(NamedTuple):
    """The last 40 bytes of a data file."""

    column_start: int
    column_table: int
    buffer_table: int
    buffers: int
    columns: int
    version: FileVersion


class WrittenPage(NamedTuple):
    """A page that is in the file: its buffers as (position, size)."""

    rows: int
    first_row: int
    buffers: tuple[tuple[int, int], ...]
    description: bytes


class WrittenColumn(NamedTuple):
    """A column that is in the file."""

    pages: "list[WrittenPage]"
    is_blob: bool


class PageInfo(NamedTuple):
    """One page, for people who look at files."""

    column: int
    field: str
    page: int
    rows: int
    encoding: str
    buffer_sizes: tuple[int, ...]


@lru_cache(maxsize=16)
def file_version(text: str) -> FileVersion:
    """Return the version of files that a text names.

    Raises:
        InputError: no such version can be written.
    """
    found = _WRITABLE.get(text)
    if text in {"legacy", "0.1"}:
        raise InputError(
            f"data files of version {text!r} are read but not written; use storage_version='2.0' "
            "for the oldest version that is written"
        )
    if found is None:
        known = ", ".join(_WRITABLE)
        raise InputError(f"data files of version {text!r} cannot be written; use one of {known}")
    return found
