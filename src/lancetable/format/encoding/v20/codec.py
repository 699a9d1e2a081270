"""Between the description of a page of a 2.0 file and the array encoding it means."""

from collections.abc import Callable
from functools import lru_cache, singledispatch
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


def encode(encoding: ArrayEncoding) -> bytes:
    """Return the serialized ``lance.encodings.ArrayEncoding`` that describes an encoding."""
    return bytes(_message(encoding).SerializeToString())


def _stored_in(number: int) -> encodings20_pb2.Buffer:
    return encodings20_pb2.Buffer(buffer_index=number)


@singledispatch
def _message(encoding: Any) -> Any:
    raise UnsupportedError(f"the encoding {encoding} cannot be written")


@_message.register
def _encode_flat(value: Flat) -> Any:
    flat = encodings20_pb2.Flat(bits_per_value=value.bits, buffer=_stored_in(value.buffer))
    if value.scheme:
        flat.compression.scheme = value.scheme
    return encodings20_pb2.ArrayEncoding(flat=flat)


@_message.register
def _encode_no_nulls(value: NoNulls) -> Any:
    inner = encodings20_pb2.Nullable.NoNull(values=_message(value.values))
    return encodings20_pb2.ArrayEncoding(nullable=encodings20_pb2.Nullable(no_nulls=inner))


@_message.register
def _encode_some_nulls(value: SomeNulls) -> Any:
    inner = encodings20_pb2.Nullable.SomeNull(
        validity=_message(value.validity), values=_message(value.values)
    )
    return encodings20_pb2.ArrayEncoding(nullable=encodings20_pb2.Nullable(some_nulls=inner))


@_message.register
def _encode_all_nulls(_: AllNulls) -> Any:
    inner = encodings20_pb2.Nullable.AllNull()
    return encodings20_pb2.ArrayEncoding(nullable=encodings20_pb2.Nullable(all_nulls=inner))


@_message.register
def _encode_fixed_size_list(value: FixedSizeList) -> Any:
    lists = encodings20_pb2.FixedSizeList(dimension=value.dimension, items=_message(value.items))
    return encodings20_pb2.ArrayEncoding(fixed_size_list=lists)


@_message.register
def _encode_list(value: ItemList) -> Any:
    lists = encodings20_pb2.List(
        offsets=_message(value.offsets),
        null_offset_adjustment=value.null_adjustment,
        num_items=value.item_count,
    )
    return encodings20_pb2.ArrayEncoding(list=lists)


@_message.register
def _encode_struct(_: Struct) -> Any:
    return encodings20_pb2.ArrayEncoding(struct=encodings20_pb2.SimpleStruct())


@_message.register
def _encode_binary(value: Binary) -> Any:
    binary = encodings20_pb2.Binary(
        indices=_message(value.indices),
        bytes=_message(value.content),
        null_adjustment=value.null_adjustment,
    )
    return encodings20_pb2.ArrayEncoding(binary=binary)


@_message.register
def _encode_dictionary(value: Dictionary) -> Any:
    dictionary = encodings20_pb2.Dictionary(
        indices=_message(value.indices),
        items=_message(value.items),
        num_dictionary_items=value.item_count,
    )
    return encodings20_pb2.ArrayEncoding(dictionary=dictionary)


@_message.register
def _encode_fsst(value: Fsst) -> Any:
    codes = encodings20_pb2.Fsst(binary=_message(value.binary), symbol_table=value.symbol_table)
    return encodings20_pb2.ArrayEncoding(fsst=codes)


@_message.register
def _encode_packed_struct(value: PackedStruct) -> Any:
    packed = encodings20_pb2.PackedStruct(
        inner=[_message(child) for child in value.children], buffer=_stored_in(value.buffer)
    )
    return encodings20_pb2.ArrayEncoding(packed_struct=packed)
