"""The symbol table of a text column: trained once, kept as long as it compresses well."""

from typing import NamedTuple

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.fsst import TABLE_SIZE
from lancetable.format.encoding.kernels.fsst_encode import encode, sample, train

STILL_GOOD = 1.1
"""A table is kept while a sample takes at most so much more than where it was trained."""


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
        table = self._fitting(*sample(offsets, data))
        edges, codes = encode(table, offsets, data)
        if len(codes) + TABLE_SIZE >= total:
            return None
        return Coded(table, edges, codes)

    def _fitting(self, offsets: Integers, data: Bytes) -> bytes:
        if self._table is None or _ratio(self._table, offsets, data) > STILL_GOOD * self._ratio:
            self._table = train(offsets, data)
            self._ratio = _ratio(self._table, offsets, data)
        return self._table


def _ratio(table: bytes, offsets: Integers, data: Bytes) -> float:
    _, codes = encode(table, offsets, data)
    return len(codes) / max(1, int(offsets[-1] - offsets[0]))
