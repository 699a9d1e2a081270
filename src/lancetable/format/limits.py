"""Limits on the memory that stored bytes may ask for.

A few bytes of a file can stand for very many decoded ones: constant values, dictionaries, nulls.
The sizes are compared with these limits before memory is allocated.

================================  ============  =================================================
environment variable              default       limits
================================  ============  =================================================
``LANCETABLE_MAX_PAGE_BYTES``     2 GiB         decoded bytes of the wanted rows of one page,
                                                and of one compressed buffer
``LANCETABLE_MAX_ROW_BYTES``      2 GiB         bytes of the fixed-width columns of one row
================================  ============  =================================================

They are read once per process, when the first page is decoded.
"""

import os
from dataclasses import dataclass, fields
from functools import cache

from lancetable.errors import InputError, LimitError

GiB = 1 << 30


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """How much memory one page and one row may take when they are decoded."""

    max_page_bytes: int = 2 * GiB
    max_row_bytes: int = 2 * GiB

    def check_page(self, size: int, rows: int) -> None:
        """Check the decoded size of rows of a page.

        Raises:
            LimitError: it is larger than ``max_page_bytes``.
        """
        if size > self.max_page_bytes:
            found = f"{rows} rows of a page take {size} bytes when decoded"
            raise _exceeded(found, "max_page_bytes", self.max_page_bytes, -(-size // max(rows, 1)))

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


def variable_of(name: str) -> str:
    """Return the environment variable that sets a limit."""
    return f"LANCETABLE_{name.upper()}"


@cache
def decode_limits() -> DecodeLimits:
    """Return the limits of this process.

    Raises:
        InputError: an environment variable is not a whole number above 0.
    """
    given: dict[str, int] = {}
    for field in fields(DecodeLimits):
        text = os.environ.get(variable_of(field.name), "").strip()
        if not text:
            continue
        if not (text.isascii() and text.isdigit() and int(text)):
            name = variable_of(field.name)
            raise InputError(f"{name} is {text!r}; set it to a number of bytes above 0")
        given[field.name] = int(text)
    return DecodeLimits(**given)


def _exceeded(found: str, name: str, allowed: int, row_bytes: int) -> LimitError:
    return LimitError(
        f"{found}, expected at most {allowed} ({name}); read fewer rows or columns at once, or, "
        f"if you trust the table, set the environment variable {variable_of(name)}",
        row_bytes=row_bytes,
    )
