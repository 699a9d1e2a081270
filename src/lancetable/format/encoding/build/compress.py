"""General compression around other encodings, and symbol tables of text columns.

A symbol table is trained once and kept as long as it compresses well.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import zstandard

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.blocks import VariableValues
from lancetable.format.encoding.build.field_options import FieldOptions
from lancetable.format.encoding.build.fullzip import joined_values, split_values
from lancetable.format.encoding.build.shred import Shredded
from lancetable.format.encoding.build.values import ChunkedValues
from lancetable.format.encoding.compressions.general import General
from lancetable.format.encoding.kernels.fsst import TABLE_SIZE
from lancetable.format.encoding.kernels.fsst_encode import encode, sample, train
from lancetable.format.encoding.kernels.ragged import Ragged
from lancetable.format.encoding.repdef import layers_of, visible

LEAST_BYTES = 4096
LEAST_PER_VALUE = 32 * 1024
LONG_VALUE = 32 * 1024
DEFAULT_LEVEL = 3


def compress_chunks(values: ChunkedValues, options: FieldOptions) -> ChunkedValues:
    """Compress the first buffer of every chunk, if that was asked for and helps."""
    scheme = options.compression
    if scheme not in {"zstd", "lz4"} or int(values.buffers[0].sizes.sum()) < LEAST_BYTES:
        return values
    first = values.buffers[0]
    parts = [framed(scheme, first.piece(n), options.level) for n in range(len(first.starts))]
    sizes = np.array([len(part) for part in parts], np.int64)
    if int(sizes.sum()) >= int(first.sizes.sum()):
        return values
    data = np.frombuffer(b"".join(parts), np.uint8)
    packed = Ragged(data, np.cumsum(sizes) - sizes, sizes)
    general = General(scheme, values.compression)
    return values._replace(compression=general, buffers=(packed, *values.buffers[1:]))


def compress_values(
    values: VariableValues, compression: Compression, options: FieldOptions, leaf: Shredded
) -> tuple[VariableValues, Compression]:
    """Compress every value by itself, if that was asked for or values are very long."""
    lengths = np.diff(values.offsets)
    is_wanted = options.compression in {"zstd", "lz4"}
    is_long = options.compression is None and int(lengths.max(initial=0)) > LONG_VALUE
    if not (is_wanted or is_long) or int(lengths.sum()) < LEAST_PER_VALUE:
        return values, compression
    valid = _valid_values(leaf, len(lengths))
    parts = [
        framed("zstd", np.frombuffer(part, np.uint8), options.level) if keep else b""
        for part, keep in zip(split_values(values), valid, strict=True)
    ]
    packed = joined_values(parts, values.bits)
    if len(packed.data) >= int(lengths.sum()):
        return values, compression
    return packed, General("zstd", compression)


def _valid_values(leaf: Shredded, count: int) -> list[bool]:
    if leaf.def_ is None:
        return [True] * count
    shown = visible(leaf.def_, layers_of(leaf.layers))
    levels = leaf.def_ if shown is None else leaf.def_[shown]
    flags: list[bool] = (levels == 0).tolist()
    return flags


def framed(scheme: str, data: Bytes, level: int | None) -> bytes:
    """Return compressed bytes behind their uncompressed size."""
    raw = data.tobytes()
    if scheme == "zstd":
        packed = zstandard.ZstdCompressor(level=DEFAULT_LEVEL if level is None else level)
        return len(raw).to_bytes(8, "little") + packed.compress(raw)
    codec = pa.Codec("lz4_raw")
    return len(raw).to_bytes(4, "little") + bytes(codec.compress(raw, asbytes=True))


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
