"""Cut long lists of plain constants out of SQL text before it is parsed.

sqlglot takes tens of microseconds per constant. A list of only integers, only decimal numbers or
only strings is found by a regular expression instead and replaced by the constant ``0`` and spaces,
so that every position in the text stays the same. All other lists are left to the parser.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.format.arrays import numbers

LONG = 1000
"""Lists with fewer constants are left to the parser."""

_SPACE = r"[ \t\r\n]*+"
_INTEGER = r"-?[0-9]++"
_DECIMAL = r"-?[0-9]++(?:\.[0-9]++(?:[eE][+-]?[0-9]++)?|[eE][+-]?[0-9]++)"
_STRING = r"'[^']*+(?:''[^']*+)*+'"
_LIST_START = re.compile(rf"{_STRING}|\"[^\"]*+\"|`[^`]*+`|(\bIN{_SPACE}\()", re.IGNORECASE)
_STRINGS = re.compile(_STRING)


class LongLists(NamedTuple):
    """Text without its long lists, and their constants by the position of the placeholder."""

    text: str
    values: dict[int, pa.Array]


def cut_long_lists(text: str) -> LongLists:
    """Replace the constants of every long list of plain constants."""
    values: dict[int, pa.Array] = {}
    if text.count(",") < LONG:
        return LongLists(text, values)
    pieces: list[str] = []
    done = 0
    place = _LIST_START.search(text)
    while place is not None:
        end = place.end()
        if place[1]:
            found = plain_list(text, end)
            if found is not None and len(found.values) > LONG:
                pieces += [text[done:end], "0".ljust(found.end - end)]
                values[end] = found.values
                done = end = found.end
        place = _LIST_START.search(text, end)
    return LongLists("".join([*pieces, text[done:]]), values)


class Found(NamedTuple):
    """The constants of a list."""

    values: pa.Array
    end: int
    """Position of the closing parenthesis."""


def plain_list(text: str, start: int) -> Found | None:
    """Return the constants of a list that begins at a position; None when they are not plain."""
    for pattern, convert in _KINDS:
        match = pattern.match(text, start)
        if match is None:
            continue
        end = match.end() - 1
        try:
            return Found(convert(text[start:end]), end)
        except (ValueError, OverflowError, pa.ArrowException):  # left to the parser
            return None
    return None


def _integers(text: str) -> pa.Array:
    return numbers(np.array(list(map(int, text.split(","))), np.int64))


def _decimals(text: str) -> pa.Array:
    return numbers(np.array(list(map(float, text.split(","))), np.float64))


def _strings(text: str) -> pa.Array:
    return pa.array([item[1:-1].replace("''", "'") for item in _STRINGS.findall(text)], pa.string())


def _list_of(item: str) -> re.Pattern[str]:
    return re.compile(rf"{_SPACE}{item}{_SPACE}(?:,{_SPACE}{item}{_SPACE})*+\)")


_KINDS: tuple[tuple[re.Pattern[str], Callable[[str], pa.Array]], ...] = (
    (_list_of(_INTEGER), _integers),
    (_list_of(_DECIMAL), _decimals),
    (_list_of(_STRING), _strings),
)
