"""Which array encoding do the bytes of a page description of a 2.0 file mean?"""

from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.v20.model import (
    AllNulls,
    ArrayEncoding,
    Binary,
    Bitpacked,
    BitpackedBlocks,
    Constant,
    Dictionary,
    FixedSizeBinary,
    FixedSizeList,
    Flat,
    Fsst,
    ItemList,
    NoNulls,
    PackedStruct,
    SomeNulls,
    Struct,
)
from lancetable.format.proto import encodings20_pb2

MAX_DEPTH = 32
_PAGE_BUFFER = 0


@lru_cache(maxsize=1024)
def decode(data: bytes) -> ArrayEncoding:
    """Return the array encoding that a serialized ``lance.encodings.ArrayEncoding`` describes.

    Raises:
        CorruptError: the bytes are no such message, or one that says nothing.
        UnsupportedError: the message names an encoding that finished 2.0 files do not have.
    """
    try:
        message = encodings20_pb2.ArrayEncoding.FromString(data)
    except DecodeError:
        raise CorruptError("the description of a page is not an array encoding") from None
    return _decode(message, 0)


def _decode(message: encodings20_pb2.ArrayEncoding, depth: int) -> ArrayEncoding:
    if depth > MAX_DEPTH:
        raise CorruptError(f"array encodings are nested deeper than {MAX_DEPTH} levels")
    kind = message.WhichOneof("array_encoding")
    if kind is None:
        raise CorruptError("a page does not say which array encoding it has")
    read = _READERS.get(kind)
    if read is None:
        raise UnsupportedError(
            f"array encoding {kind!r} belongs to unfinished files between 2.0 and 2.1; "
            "rewrite the table with the release that wrote it"
        )
    return read(getattr(message, kind), depth + 1)


def _buffer(message: encodings20_pb2.Buffer) -> int:
    if message.buffer_type != _PAGE_BUFFER:
        raise UnsupportedError("a page keeps its values in a buffer outside of the page")
    return int(message.buffer_index)


def _nullable(message: encodings20_pb2.Nullable, depth: int) -> ArrayEncoding:
    kind = message.WhichOneof("nullability")
    if kind == "no_nulls":
        return NoNulls(_decode(message.no_nulls.values, depth))
    if kind == "some_nulls":
        validity = _decode(message.some_nulls.validity, depth)
        return SomeNulls(validity, _decode(message.some_nulls.values, depth))
    if kind == "all_nulls":
        return AllNulls()
    raise CorruptError("a page does not say whether it has nulls")


def _packed_struct(message: encodings20_pb2.PackedStruct, depth: int) -> ArrayEncoding:
    children = tuple(_decode(child, depth) for child in message.inner)
    return PackedStruct(children, _buffer(message.buffer))


_READERS: MappingProxyType[str, Callable[[Any, int], ArrayEncoding]] = MappingProxyType(
    {
        "flat": lambda m, _: Flat(m.bits_per_value, _buffer(m.buffer), m.compression.scheme),
        "nullable": _nullable,
        "fixed_size_list": lambda m, d: FixedSizeList(m.dimension, _decode(m.items, d)),
        "list": lambda m, d: ItemList(_decode(m.offsets, d), m.null_offset_adjustment, m.num_items),
        "struct": lambda _, __: Struct(),
        "binary": lambda m, d: Binary(
            _decode(m.indices, d), _decode(m.bytes, d), m.null_adjustment
        ),
        "dictionary": lambda m, d: Dictionary(
            _decode(m.indices, d), _decode(m.items, d), m.num_dictionary_items
        ),
        "fsst": lambda m, d: Fsst(_decode(m.binary, d), m.symbol_table),
        "packed_struct": _packed_struct,
        "bitpacked": lambda m, _: Bitpacked(
            m.compressed_bits_per_value,
            m.uncompressed_bits_per_value,
            _buffer(m.buffer),
            m.signed,
        ),
        "fixed_size_binary": lambda m, d: FixedSizeBinary(_decode(m.bytes, d), m.byte_width),
        "bitpacked_for_non_neg": lambda m, _: BitpackedBlocks(
            m.compressed_bits_per_value, m.uncompressed_bits_per_value, _buffer(m.buffer)
        ),
        "constant": lambda m, _: Constant(m.value),
    }
)
