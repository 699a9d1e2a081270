"""Strings in codes of one byte, each standing for up to eight bytes (see ``kernels.fsst``)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import (
    Block,
    Chunks,
    Compression,
    FixedWidth,
    VariableWidth,
    addressable,
    for_chunks,
    for_values,
)
from lancetable.format.encoding.kernels import fsst
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.kernels.texts import TextChunks, decode_texts

if TYPE_CHECKING:
    from lancetable.format.encoding.blocks import Addressable

FEW_VALUES = 32
"""Up to here single values are decoded faster one by one than as arrays."""


@dataclass(frozen=True, slots=True)
class Fsst:
    """Coded values; ``inner`` says how the codes are stored."""

    symbol_table: bytes
    inner: Compression

    def __str__(self) -> str:
        return f"fsst({self.inner})"

    @property
    def buffer_count(self) -> int:
        """As many as the codes need."""
        return for_chunks(self.inner).buffer_count

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Decode the codes of all chunks together."""
        width = getattr(self.inner, "offset_bytes", 0)
        if LIBRARY is not None and width:
            return VariableWidth(*decode_texts(LIBRARY, [self.texts(chunks)], width))
        return self._decoded(for_chunks(self.inner).decode_chunks(chunks))

    def texts(self, chunks: Chunks) -> TextChunks:
        """Return chunks of coded text with what their codes stand for."""
        table = fsst.parse_symbol_table(self.symbol_table)
        return TextChunks(chunks.buffers[0], chunks.counts, table)

    def prepare(self, chunks: Chunks) -> object | None:
        """Let the stored codes be prepared."""
        inner = addressable(self.inner)
        return None if inner is None else inner.prepare(chunks)

    def gather(self, prepared: object, chunk: Integers, inside: Integers) -> Block:
        """Decode single values."""
        return self._decoded(cast("Addressable", self.inner).gather(prepared, chunk, inside))

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Decode values that were cut out already."""
        return self._decoded(for_values(self.inner).decode_values(stored))

    def _decoded(self, codes: Block) -> Block:
        if not isinstance(codes, VariableWidth):
            raise CorruptError("coded strings are not stored as values of any length")
        table = fsst.parse_symbol_table(self.symbol_table)
        if len(codes) <= FEW_VALUES:
            view = codes.data.data
            edges = pairwise(codes.offsets.tolist())
            values = [fsst.decode_value(table, bytes(view[a:b])) for a, b in edges]
            offsets = np.zeros(len(values) + 1, np.int64)
            np.cumsum([len(value) for value in values], out=offsets[1:])
            return VariableWidth(offsets, np.frombuffer(b"".join(values), np.uint8))
        return VariableWidth(*fsst.decode(table, codes.offsets, codes.data))
