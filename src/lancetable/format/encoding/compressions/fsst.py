"""Strings in codes of one byte, each standing for up to eight bytes (see ``kernels.fsst``)."""

from dataclasses import dataclass

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import Block, Chunks, Compression, FixedWidth, VariableWidth
from lancetable.format.encoding.kernels import fsst


@dataclass(frozen=True, slots=True)
class Fsst:
    """Coded values; ``inner`` says how the codes are stored."""

    symbol_table: bytes
    inner: Compression

    def describe(self) -> str:
        """Return the name and what is inside."""
        return f"fsst({self.inner.describe()})"

    @property
    def buffer_count(self) -> int:
        """As many as the codes need."""
        count: int = getattr(self.inner, "buffer_count", 1)
        return count

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Decode the codes of all chunks together."""
        decode = getattr(self.inner, "decode_chunks", None)
        if decode is None:
            raise CorruptError(f"{self.describe()} cannot encode chunks")
        return self._decoded(decode(chunks))

    def gather(self, chunks: Chunks, chunk: Integers, inside: Integers) -> Block | None:
        """Decode single values."""
        find = getattr(self.inner, "gather", None)
        found = None if find is None else find(chunks, chunk, inside)
        return None if found is None else self._decoded(found)

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Decode values that were cut out already."""
        decode = getattr(self.inner, "decode_values", None)
        if decode is None:
            raise CorruptError(f"{self.describe()} cannot encode single values")
        return self._decoded(decode(stored))

    def _decoded(self, codes: Block) -> Block:
        if not isinstance(codes, VariableWidth):
            raise CorruptError("coded strings are not stored as values of any length")
        table = fsst.parse_symbol_table(self.symbol_table)
        return VariableWidth(*fsst.decode(table, codes.offsets, codes.data))
