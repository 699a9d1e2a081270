"""Limits on the bytes that reading a table may take.

A few bytes of a file can stand for very many decoded ones: constant values, dictionaries, nulls.
Sizes are compared with these limits before memory is allocated where they are known by then.

================================  ============  =================================================
environment variable              default       limits
================================  ============  =================================================
``LANCETABLE_MAX_OPEN_BYTES``     none          a manifest file with its sections, a deletion or
                                                row id file, the metadata of a data file
``LANCETABLE_MAX_PAGE_BYTES``     2 GiB         decoded bytes of the wanted rows of one page,
                                                of one compressed buffer, and of one set of
                                                rows of an index
``LANCETABLE_MAX_ROW_BYTES``      2 GiB         bytes of the fixed-width columns of one row
``LANCETABLE_MAX_BATCH_BYTES``    none          bytes of all columns of one batch of a scan, and
                                                of the rows of one take
================================  ============  =================================================

The variables are read once per process. :func:`set_limits` takes their place.
"""

import os
import sys
from typing import NamedTuple

from lancetable.errors import InputError, LimitError

GiB = 1 << 30
NO_LIMIT = sys.maxsize


class ReadLimits(NamedTuple):
    """Limits of the bytes that reading a table may take, for :func:`set_limits`."""

    max_open_bytes: int = NO_LIMIT
    """Bytes of a manifest file, a deletion or row id file, or the metadata of a data file."""

    max_page_bytes: int = 2 * GiB
    """Decoded bytes of the wanted rows of one page, a compressed buffer or an index's set."""

    max_row_bytes: int = 2 * GiB
    """Bytes of the fixed-width columns of one row."""

    max_batch_bytes: int = NO_LIMIT
    """Bytes of all columns of one batch of a scan, and of the rows of one take."""

    @property
    def are_sizes_free(self) -> bool:
        """True when no result is so large that its size has to be known before it is made."""
        return self.max_batch_bytes == NO_LIMIT and self.max_page_bytes >= 2 * GiB

    @property
    def page_room(self) -> int:
        """The most bytes that rows of a page may take in a batch."""
        return min(self.max_page_bytes, self.max_batch_bytes)

    def check_open(self, size: int, path: str | None = None) -> None:
        """Check the bytes that are read to open a table, a fragment or a data file.

        Raises:
            LimitError: there are more than ``max_open_bytes``.
        """
        if size > self.max_open_bytes:
            found = f"metadata takes {size} bytes"
            raise _exceeded(found, "max_open_bytes", self.max_open_bytes, size, path)

    def check_page(self, size: int, rows: int) -> None:
        """Check the decoded size of rows of a page, which are part of a batch.

        Raises:
            LimitError: it is larger than ``max_page_bytes`` or ``max_batch_bytes``.
        """
        if size > self.max_page_bytes:
            found = f"{rows} rows of a page take {size} bytes when decoded"
            raise _exceeded(found, "max_page_bytes", self.max_page_bytes, _each(size, rows))
        self.check_batch(size, rows)

    def check_buffer(self, size: int) -> None:
        """Check the size that a compressed buffer of a page expands to.

        Raises:
            LimitError: it is larger than ``max_page_bytes``.
        """
        if size > self.max_page_bytes:
            found = f"a compressed buffer of a page expands to {size} bytes"
            raise _exceeded(found, "max_page_bytes", self.max_page_bytes, size)

    def check_row(self, size: int) -> None:
        """Check the bytes of the fixed-width columns of one row.

        Raises:
            LimitError: there are more than ``max_row_bytes``.
        """
        if size > self.max_row_bytes:
            found = f"one row of the chosen columns takes {size} bytes"
            raise _exceeded(found, "max_row_bytes", self.max_row_bytes, size)

    def check_batch(self, size: int, rows: int) -> None:
        """Check the bytes of rows that are handed out together.

        Raises:
            LimitError: there are more than ``max_batch_bytes``.
        """
        if size > self.max_batch_bytes:
            found = f"{rows} rows take {size} bytes"
            raise _exceeded(found, "max_batch_bytes", self.max_batch_bytes, _each(size, rows))


_current: ReadLimits | None = None


def read_limits() -> ReadLimits:
    """Return the limits of this process.

    Raises:
        InputError: an environment variable is not a whole number above 0.
    """
    global _current  # noqa: PLW0603 - one set of limits per process
    if _current is None:
        _current = _from_environment()
    return _current


def set_limits(limits: ReadLimits | None) -> None:
    """Set the limits of this process, for tables that are opened from then on.

    They take the place of those in the environment. ``None`` returns to the environment.

    Raises:
        InputError: a limit is not a whole number above 0.
    """
    global _current  # noqa: PLW0603 - one set of limits per process
    for name, value in zip(ReadLimits._fields, limits or (), strict=False):
        if type(value) is not int or value < 1:
            raise InputError(f"{name} is {value!r}; set it to a number of bytes above 0")
    _current = limits


def variable_of(name: str) -> str:
    """Return the environment variable that sets a limit."""
    return f"LANCETABLE_{name.upper()}"


def _from_environment() -> ReadLimits:
    given: dict[str, int] = {}
    for name in ReadLimits._fields:
        text = os.environ.get(variable_of(name), "").strip()
        if not text:
            continue
        if not (text.isascii() and text.isdigit() and int(text)):
            raise InputError(
                f"{variable_of(name)} is {text!r}; set it to a number of bytes above 0"
            )
        given[name] = int(text)
    return ReadLimits(**given)


def _each(size: int, rows: int) -> int:
    return -(-size // max(rows, 1))


def _exceeded(
    found: str, name: str, allowed: int, row_bytes: int, path: str | None = None
) -> LimitError:
    advice = "" if name == "max_open_bytes" else "read fewer rows or columns at once, or, "
    return LimitError(
        f"{found}, expected at most {allowed} ({name}); {advice}if you trust the table, raise the "
        f"limit with set_limits or the environment variable {variable_of(name)}",
        row_bytes=row_bytes,
        path=path,
    )
