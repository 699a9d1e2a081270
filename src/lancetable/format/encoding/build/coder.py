"""The symbol table of a text column: trained once, kept as long as it compresses well."""

from typing import NamedTuple

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.fsst import TABLE_SIZE
from lancetable.format.encoding.kernels.fsst_encode import encode, sample, train

STILL_GOOD = 1.1
"""A table is kept while a sample takes at most so much more than where it was trained."""


WORTHWHILE = 0.98
"""Text is not coded when a sample does not get smaller than this."""


class Coded(NamedTuple):
    """The codes of some values and the symbols they stand for."""

    symbol_table: bytes
    offsets: Integers
    data: Bytes


class TextCoder:
    """Encodes the pages of one column."""

    __slots__ = ("_ratio", "_table")

    def __init__(self) -> None:
        self._table: bytes | None = None
        self._ratio = 0.0

    def encode(self, offsets: Integers, data: Bytes) -> Coded | None:
        """Return the codes of the values; None when they and their table take more room."""
        total = int(offsets[-1] - offsets[0])
        if total <= TABLE_SIZE:
            return None
        table, ratio = self._fitting(*sample(offsets, data))
        if ratio > WORTHWHILE:
            return None
        edges, codes = encode(table, offsets, data)
        if len(codes) + TABLE_SIZE >= total:
            return None
        return Coded(table, edges, codes)

    def _fitting(self, offsets: Integers, data: Bytes) -> tuple[bytes, float]:
        """Return a table for values like those of a sample, and what it makes of the sample."""
        if self._table is not None:
            ratio = _ratio(self._table, offsets, data)
            if ratio <= STILL_GOOD * self._ratio:
                return self._table, ratio
        self._table = train(offsets, data)
        self._ratio = _ratio(self._table, offsets, data)
        return self._table, self._ratio


def _ratio(table: bytes, offsets: Integers, data: Bytes) -> float:
    _, codes = encode(table, offsets, data)
    return len(codes) / max(1, int(offsets[-1] - offsets[0]))
