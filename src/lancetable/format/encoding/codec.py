"""Convert the description messages of 2.1 and 2.2 pages to layout and compression values."""

from functools import lru_cache
from typing import Any

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.blocks import (
    Compression,
    for_chunks,
)
from lancetable.format.encoding.compressions.bitpacking import (
    InlineBitpacking,
    OutOfLineBitpacking,
)
from lancetable.format.encoding.compressions.byte_stream_split import ByteStreamSplit
from lancetable.format.encoding.compressions.constant import Constant
from lancetable.format.encoding.compressions.empty import Empty
from lancetable.format.encoding.compressions.fixed_size_list import FixedSizeList
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.fsst import Fsst
from lancetable.format.encoding.compressions.general import General
from lancetable.format.encoding.compressions.packed_struct import (
    PackedChild,
    PackedStruct,
    VariablePackedStruct,
)
from lancetable.format.encoding.compressions.rle import Rle
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.layout import Layout
from lancetable.format.encoding.layouts.blob import BlobPage
from lancetable.format.encoding.layouts.chunks import ChunkShape
from lancetable.format.encoding.layouts.constant import ConstantPage
from lancetable.format.encoding.layouts.fullzip import FullZip
from lancetable.format.encoding.layouts.miniblock import MiniBlock
from lancetable.format.encoding.layouts.zipped import Zipped
from lancetable.format.encoding.repdef import Layer, Layers, layers_of
from lancetable.format.proto import encodings21_pb2 as messages

LARGEST_DIMENSION = 1 << 24
LARGEST_BITS = 1 << 34
DEEPEST = 32
SCHEMES = {1: "lz4", 2: "zstd"}


@lru_cache(maxsize=4096)
def decode_layout(data: bytes) -> Layout:
    """Decode the description of a page.

    Thousands of small files share their descriptions, hence the cache.

    Raises:
        CorruptError: the message cannot be parsed or contradicts itself.
        UnsupportedError: it names a layout or an encoding of a later version.
    """
    message = messages.PageLayout()
    try:
        message.ParseFromString(data)
    except DecodeError as cause:
        raise CorruptError("the description of a page cannot be parsed") from cause
    return _layout(message, 0)


def _layout(message: Any, depth: int) -> Layout:
    kind = message.WhichOneof("layout")
    if kind == "mini_block_layout":
        return _mini_block(message.mini_block_layout)
    if kind == "full_zip_layout":
        return _full_zip(message.full_zip_layout)
    if kind == "constant_layout":
        return _constant_page(message.constant_layout)
    if kind == "blob_layout" and depth == 0:
        blob = message.blob_layout
        return BlobPage(_layout(blob.inner_layout, depth + 1), _layers(blob.layers))
    if kind == "sparse_layout":
        raise UnsupportedError("the page layout 'sparse' of file version 2.3 is not supported")
    raise CorruptError("a page does not say how it is laid out")


def _layers(numbers: Any) -> Layers:
    return _layers_of(tuple(numbers))


@lru_cache(maxsize=256)
def _layers_of(numbers: tuple[int, ...]) -> Layers:
    if not 0 < len(numbers) <= DEEPEST:
        raise CorruptError(f"a page has {len(numbers)} layers")
    try:
        return layers_of([Layer(number) for number in numbers])
    except ValueError as cause:
        raise CorruptError("a page has a layer of an unknown kind") from cause


def _mini_block(message: Any) -> MiniBlock:
    layers = _layers(message.layers)
    values = _chunk_values(message.value_compression)
    has_dictionary = message.HasField("dictionary")
    buffers = int(message.num_buffers)
    if buffers != for_chunks(values).buffer_count:
        raise CorruptError(f"{values} does not have {buffers} buffers in a chunk")
    shape = ChunkShape(
        rep=_levels(message, "rep_compression"),
        def_=_levels(message, "def_compression"),
        buffer_count=buffers,
        is_large=bool(message.has_large_chunk),
    )
    if message.repetition_index_depth > 1:
        raise UnsupportedError("a page has a repetition index deeper than one level")
    return MiniBlock(
        shape=shape,
        values=values,
        dictionary=decode_compression(message.dictionary) if has_dictionary else None,
        dictionary_items=int(message.num_dictionary_items),
        layers=layers,
        has_row_index=message.repetition_index_depth > 0,
        items=int(message.num_items),
    )


def _levels(message: Any, name: str) -> Compression | None:
    return decode_compression(getattr(message, name)) if message.HasField(name) else None


def _full_zip(message: Any) -> FullZip:
    kind = message.WhichOneof("details")
    if kind is None or message.bits_rep > 16 or message.bits_def > 16:
        raise CorruptError("a page does not say how wide its values and levels are")
    is_variable = kind == "bits_per_offset"
    bits = int(message.bits_per_offset if is_variable else message.bits_per_value)
    values = decode_compression(message.value_compression)
    # Lists of fixed size that are all null have no bytes at all.
    least = 0 if isinstance(values, Constant) else 1
    if (is_variable and bits not in {32, 64}) or bits % 8 or not least <= bits < LARGEST_BITS:
        raise CorruptError(f"a page has values of {bits} bits")
    zipped = Zipped(int(message.bits_rep), int(message.bits_def), bits, is_variable)
    items, visible_items = int(message.num_items), int(message.num_visible_items)
    return FullZip(zipped, items, visible_items, values, _layers(message.layers))


def _constant_page(message: Any) -> ConstantPage:
    return ConstantPage(
        layers=_layers(message.layers),
        inline_value=bytes(message.inline_value) if message.HasField("inline_value") else None,
        rep=_levels(message, "rep_compression"),
        def_=_levels(message, "def_compression"),
        rep_count=int(message.num_rep_values),
        def_count=int(message.num_def_values),
    )


def _chunk_values(message: Any) -> Compression:
    """Decode how the values of chunks are stored; only there they may have no bytes."""
    if message.WhichOneof("compression") == "flat" and not message.flat.bits_per_value:
        return Empty()
    return decode_compression(message)


def decode_compression(message: Any, depth: int = 0) -> Compression:
    """Decode the description of a compressive encoding."""
    kind = message.WhichOneof("compression")
    if kind is None or depth > DEEPEST:
        raise CorruptError("a page does not say how its values are encoded")
    decode = _COMPRESSIONS.get(kind)
    if decode is None:
        raise UnsupportedError(f"the encoding {kind!r} belongs to a later file version")
    return decode(getattr(message, kind), depth + 1)


def _flat(message: Any, depth: int) -> Compression:
    _refuse_compressed(message, "data")
    bits = int(message.bits_per_value)
    if bits != 1 and (bits % 8 or not 0 < bits < LARGEST_BITS):
        raise CorruptError(f"flat values have {bits} bits")
    return Flat(bits)


def _refuse_compressed(message: Any, name: str) -> None:
    if message.HasField(name):
        raise UnsupportedError("buffers compressed inside an encoding are not supported")


def _variable(message: Any, depth: int) -> Compression:
    _refuse_compressed(message, "values")
    return Variable(_flat_bits(decode_compression(message.offsets, depth), {32, 64}))


def _flat_bits(compression: Compression, allowed: set[int]) -> int:
    if not isinstance(compression, Flat) or compression.bits not in allowed:
        raise CorruptError(f"flat integers are expected, found {compression}")
    return compression.bits


def _constant(message: Any, depth: int) -> Compression:
    return Constant(bytes(message.value) if message.HasField("value") else None)


def _word_bits(bits: int) -> int:
    if bits not in {8, 16, 32, 64}:
        raise CorruptError(f"integers of {bits} bits cannot be packed")
    return bits


def _out_of_line(message: Any, depth: int) -> Compression:
    bits = _word_bits(int(message.uncompressed_bits_per_value))
    values = message.values
    width = int(values.flat.bits_per_value)
    if values.WhichOneof("compression") != "flat" or width > bits or depth > DEEPEST:
        raise CorruptError(f"integers of {bits} bits are packed to {width} bits")
    return OutOfLineBitpacking(bits, width)


def _inline(message: Any, depth: int) -> Compression:
    _refuse_compressed(message, "values")
    return InlineBitpacking(_word_bits(int(message.uncompressed_bits_per_value)))


def _fsst(message: Any, depth: int) -> Compression:
    return Fsst(bytes(message.symbol_table), decode_compression(message.values, depth))


def _rle(message: Any, depth: int) -> Compression:
    bits = _flat_bits(decode_compression(message.values, depth), {8, 16, 32, 64})
    _flat_bits(decode_compression(message.run_lengths, depth), {8})
    return Rle(bits)


def _byte_stream_split(message: Any, depth: int) -> Compression:
    return ByteStreamSplit(_flat_bits(decode_compression(message.values, depth), {32, 64}))


def _general(message: Any, depth: int) -> Compression:
    scheme = SCHEMES.get(message.compression.scheme)
    if scheme is None:
        raise UnsupportedError(f"compression scheme {message.compression.scheme} is not known")
    return General(scheme, decode_compression(message.values, depth))


def _fixed_size_list(message: Any, depth: int) -> Compression:
    dimension = int(message.items_per_value)
    if not 0 < dimension <= LARGEST_DIMENSION:
        raise CorruptError(f"lists of fixed size have {dimension} items")
    inner = decode_compression(message.values, depth)
    return FixedSizeList(dimension, inner, bool(message.has_validity))


def _packed_struct(message: Any, depth: int) -> Compression:
    bits = tuple(int(number) for number in message.bits_per_value)
    if not bits or any(number % 8 or not 0 < number < LARGEST_BITS for number in bits):
        raise CorruptError("a packed struct has children of no whole bytes")
    return PackedStruct(bits, decode_compression(message.values, depth))


def _variable_packed_struct(message: Any, depth: int) -> Compression:
    return VariablePackedStruct(tuple(_child(child, depth) for child in message.fields))


def _child(message: Any, depth: int) -> PackedChild:
    is_variable = message.WhichOneof("layout") == "bits_per_length"
    bits = int(message.bits_per_length if is_variable else message.bits_per_value)
    allowed = bits in {8, 16, 32, 64} if is_variable else bits % 8 == 0 and 0 < bits < LARGEST_BITS
    if not allowed:
        raise CorruptError(f"a child of a packed struct has {bits} bits")
    return PackedChild(decode_compression(message.value, depth), bits, is_variable)


_COMPRESSIONS = {
    "flat": _flat,
    "variable": _variable,
    "constant": _constant,
    "out_of_line_bitpacking": _out_of_line,
    "inline_bitpacking": _inline,
    "fsst": _fsst,
    "rle": _rle,
    "byte_stream_split": _byte_stream_split,
    "general": _general,
    "fixed_size_list": _fixed_size_list,
    "packed_struct": _packed_struct,
    "variable_packed_struct": _variable_packed_struct,
}
