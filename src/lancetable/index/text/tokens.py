"""The set of words of a partition: a finite-state transducer, or a plain table.

The file of the first kind has one row with the columns ``_token_fst_bytes``, ``_token_next_id``,
the number of words, and ``_token_total_length``, the bytes of all words. That of the second kind
has the columns ``_token`` and ``_token_id``, a row for each word.
"""

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels.token_set import Found, Near, Transducer, is_near
from lancetable.index.files import SegmentFiles

_MOST_WORDS = 1 << 31


class TokenSet(Protocol):
    """The words of a partition and their numbers."""

    def find(self, token: bytes) -> int | None:
        """Return the number of a word; None when there is no such word."""
        ...

    def near(self, near: Near) -> list[bytes]:
        """Return the first words, in the order of their bytes, that are near another."""
        ...

    def all(self) -> Found:
        """Return all words with their numbers, in the order of their bytes."""
        ...


class TransducerSet:
    """Words in a transducer, looked up in its bytes."""

    def __init__(self, transducer: Transducer) -> None:
        self._transducer = transducer
        self.find = transducer.find
        self.all = transducer.all

    def near(self, near: Near) -> list[bytes]:
        """Return the first words that are near another."""
        return self._transducer.near(near).tokens()


class TokenTable:
    """Words in a table, which is held in memory."""

    def __init__(self, tokens: pa.Array, numbers: pa.Array) -> None:
        """Take the columns of a table.

        Raises:
            CorruptError: a value is null, or a word occurs twice.
        """
        if tokens.null_count or numbers.null_count:
            raise CorruptError("a word of a full-text index is null")
        words = tokens.cast(pa.large_binary())
        order = pc.sort_indices(words)
        self._words: list[bytes] = words.take(order).to_pylist()
        self._numbers = dict(zip(self._words, numbers.take(order).to_pylist(), strict=True))
        if len(self._numbers) < len(self._words):
            raise CorruptError("a full-text index has a word twice")

    def find(self, token: bytes) -> int | None:
        """Return the number of a word; None when there is no such word."""
        return self._numbers.get(token)

    def near(self, near: Near) -> list[bytes]:
        """Return the first words that are near another."""
        return near_words(self._words, near)

    def all(self) -> Found:
        """Return all words with their numbers."""
        edges = np.cumsum([0, *map(len, self._words)], dtype=np.int64)
        text = np.frombuffer(b"".join(self._words), np.uint8)
        return Found(np.array([*self._numbers.values()], np.int64), edges, text)


def near_words(words: list[bytes], near: Near) -> list[bytes]:
    """Return the first of some words, in the order of their bytes, that are near another."""
    found: list[bytes] = []
    for word in words:
        if is_near(word, near):
            found.append(word)
            if len(found) == near.most:
                break
    return found


def open_tokens(files: SegmentFiles, name: str, format_: str) -> TokenSet:
    """Return the words of a partition; ``format_`` is ``fst`` or ``arrow``.

    Raises:
        CorruptError: the file is damaged.
    """
    if format_ == "arrow":
        return TokenTable(*files.read(name, ("_token", "_token_id")))
    if format_ != "fst":
        raise CorruptError(f"the words of a full-text index are in a {format_!r}")
    data, size = files.read(name, ("_token_fst_bytes", "_token_total_length"))
    if len(data) != 1 or data.null_count or size.null_count:
        raise CorruptError("the file of the words of a full-text index does not have one row")
    buffer = np.frombuffer(data[0].as_buffer(), np.uint8)
    total = size[0].as_py()
    if total >= _MOST_WORDS:
        raise CorruptError(f"the words of a full-text index have {total} bytes")
    return TransducerSet(Transducer(buffer, total))
