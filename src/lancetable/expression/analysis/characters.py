"""Tables of characters and words: what belongs to words, lower case, folding, stop words."""

import json
from functools import cache
from importlib.resources import files as resources
from typing import Any

import numpy as np

from lancetable.format.encoding.base import Bytes
from lancetable.format.encoding.kernels.words import MOST_POINTS

_SPACES = "\t\n\f\r "
_NEWER_CASES = (
    *((0x1C89, 0x1C89, 1), (0xA7CB, 0xA7CB, 0x264 - 0xA7CB), (0xA7CC, 0xA7CC, 1)),
    *((0xA7CE, 0xA7CE, 1), (0xA7D2, 0xA7D2, 1), (0xA7D4, 0xA7D4, 1), (0xA7DA, 0xA7DA, 1)),
    *((0xA7DC, 0xA7DC, 0x19B - 0xA7DC), (0x10D50, 0x10D65, 32), (0x16EA0, 0x16EB8, 27)),
)
"""Capital letters of Unicode 15 to 17: the first, the last, and how far their small ones are."""
_SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"


@cache
def word_characters() -> Bytes:
    """Return a bit for each character that belongs to a word: letters, digits, vowel signs."""
    flat = np.array(_table("word_characters.json"), np.int64)
    edges = np.cumsum(flat)
    change = np.zeros(MOST_POINTS + 1, np.int8)
    change[edges[::2]], change[edges[1::2]] = 1, -1
    return np.packbits(np.cumsum(change[:-1], dtype=np.int8).astype(np.bool_), bitorder="little")


@cache
def visible_characters() -> Bytes:
    """Return a bit for each character but the white space of ASCII."""
    is_word = np.ones(MOST_POINTS, np.bool_)
    is_word[[*map(ord, _SPACES)]] = False
    return np.packbits(is_word, bitorder="little")


@cache
def _newer() -> dict[int, int]:
    return {
        point: point + shift
        for first, last, shift in _NEWER_CASES
        for point in range(first, last + 1)
    }


def lower(text: str) -> str:
    """Change each character to lower case, whatever is beside it."""
    if text.isascii():
        return text.lower()
    if _SIGMA in text:  # whose small letter is another one at the end of a word
        return "".join(map(str.lower, text)).translate(_newer())
    return text.lower().translate(_newer())


@cache
def _folding() -> dict[int, str]:
    return str.maketrans(_table("folding.json"))


def fold(text: str) -> str:
    """Write Latin letters, digits and marks with ASCII characters; others stay."""
    return text if text.isascii() else text.translate(_folding())


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language."""
    return frozenset(_table("stop_words.json")[language])


def _table(name: str) -> Any:  # noqa: ANN401 - of either shape
    return json.loads(resources(__package__).joinpath(name).read_text("utf-8"))
