"""Convert layout and compression values to the description messages of 2.1 and 2.2 pages."""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from lancetable.errors import UnsupportedError
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.compressions.bitpacking import (
    InlineBitpacking,
    OutOfLineBitpacking,
)
from lancetable.format.encoding.compressions.byte_stream_split import ByteStreamSplit
from lancetable.format.encoding.compressions.constant import Constant
from lancetable.format.encoding.compressions.fixed_size_list import FixedSizeList
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.fsst import Fsst
from lancetable.format.encoding.compressions.general import General
from lancetable.format.encoding.compressions.packed_struct import (
    PackedStruct,
    VariablePackedStruct,
)
from lancetable.format.encoding.compressions.rle import Rle
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.layout import Layout
from lancetable.format.encoding.layouts.constant import ConstantPage
from lancetable.format.encoding.layouts.fullzip import FullZip
from lancetable.format.encoding.layouts.miniblock import MiniBlock
from lancetable.format.encoding.repdef import Layer
from lancetable.format.proto import encodings21_pb2 as messages

SCHEMES = {"lz4": 1, "zstd": 2}


def encode_layout(layout: Layout) -> bytes:
    """Return the message that describes a page."""
    return bytes(_layout(layout).SerializeToString())


def encode_blob_layout(inner: bytes, layers: Sequence[Layer]) -> bytes:
    """Return the message that describes a blob page around the page that ``inner`` describes."""
    blob = messages.BlobLayout(inner_layout=messages.PageLayout.FromString(inner))
    blob.layers.extend(layers)
    return bytes(messages.PageLayout(blob_layout=blob).SerializeToString())


def _layout(layout: Layout) -> Any:
    match layout:
        case MiniBlock():
            return messages.PageLayout(mini_block_layout=_mini_block(layout))
        case FullZip():
            return messages.PageLayout(full_zip_layout=_full_zip(layout))
        case ConstantPage():
            return messages.PageLayout(constant_layout=_constant_page(layout))
        case _:
            raise UnsupportedError(f"the layout {layout} cannot be written")


def _mini_block(layout: MiniBlock) -> Any:
    message = messages.MiniBlockLayout(
        value_compression=encode_compression(layout.values),
        num_buffers=layout.shape.buffer_count,
        repetition_index_depth=int(layout.has_row_index),
        num_items=layout.items,
        has_large_chunk=layout.shape.is_large,
    )
    message.layers.extend(layout.layers.items)
    if layout.shape.rep is not None:
        message.rep_compression.CopyFrom(encode_compression(layout.shape.rep))
    if layout.shape.def_ is not None:
        message.def_compression.CopyFrom(encode_compression(layout.shape.def_))
    if layout.dictionary is not None:
        message.dictionary.CopyFrom(encode_compression(layout.dictionary))
        message.num_dictionary_items = layout.dictionary_items
    return message


def _full_zip(layout: FullZip) -> Any:
    zipped = layout.zipped
    message = messages.FullZipLayout(
        bits_rep=zipped.bits_rep,
        bits_def=zipped.bits_def,
        num_items=layout.items,
        num_visible_items=layout.visible_items,
        value_compression=encode_compression(layout.values),
    )
    if zipped.is_variable:
        message.bits_per_offset = zipped.bits_value
    else:
        message.bits_per_value = zipped.bits_value
    message.layers.extend(layout.layers.items)
    return message


def _constant_page(layout: ConstantPage) -> Any:
    message = messages.ConstantLayout(
        num_rep_values=layout.rep_count, num_def_values=layout.def_count
    )
    message.layers.extend(layout.layers.items)
    if layout.inline_value is not None:
        message.inline_value = layout.inline_value
    if layout.rep is not None:
        message.rep_compression.CopyFrom(encode_compression(layout.rep))
    if layout.def_ is not None:
        message.def_compression.CopyFrom(encode_compression(layout.def_))
    return message


@singledispatch
def encode_compression(compression: Compression) -> Any:
    """Return the message that describes a compressive encoding."""
    raise UnsupportedError(f"the encoding {compression} cannot be written")


@encode_compression.register
def _flat(value: Flat) -> Any:
    return messages.CompressiveEncoding(flat=messages.Flat(bits_per_value=value.bits))


@encode_compression.register
def _variable(value: Variable) -> Any:
    offsets = encode_compression(Flat(value.bits))
    return messages.CompressiveEncoding(variable=messages.Variable(offsets=offsets))


@encode_compression.register
def _constant(value: Constant) -> Any:
    return messages.CompressiveEncoding(constant=messages.Constant(value=value.value))


@encode_compression.register
def _inline(value: InlineBitpacking) -> Any:
    inline = messages.InlineBitpacking(uncompressed_bits_per_value=value.bits)
    return messages.CompressiveEncoding(inline_bitpacking=inline)


@encode_compression.register
def _out_of_line(value: OutOfLineBitpacking) -> Any:
    packed = messages.OutOfLineBitpacking(
        uncompressed_bits_per_value=value.bits, values=encode_compression(Flat(value.width))
    )
    return messages.CompressiveEncoding(out_of_line_bitpacking=packed)


@encode_compression.register
def _rle(value: Rle) -> Any:
    runs = messages.Rle(
        values=encode_compression(Flat(value.bits)), run_lengths=encode_compression(Flat(8))
    )
    return messages.CompressiveEncoding(rle=runs)


@encode_compression.register
def _byte_stream_split(value: ByteStreamSplit) -> Any:
    split = messages.ByteStreamSplit(values=encode_compression(Flat(value.bits)))
    return messages.CompressiveEncoding(byte_stream_split=split)


@encode_compression.register
def _fsst(value: Fsst) -> Any:
    codes = messages.Fsst(symbol_table=value.symbol_table, values=encode_compression(value.inner))
    return messages.CompressiveEncoding(fsst=codes)


@encode_compression.register
def _general(value: General) -> Any:
    general = messages.General(
        compression=messages.BufferCompression(scheme=SCHEMES[value.scheme]),
        values=encode_compression(value.inner),
    )
    return messages.CompressiveEncoding(general=general)


@encode_compression.register
def _fixed_size_list(value: FixedSizeList) -> Any:
    lists = messages.FixedSizeList(
        items_per_value=value.dimension,
        values=encode_compression(value.inner),
        has_validity=value.has_validity,
    )
    return messages.CompressiveEncoding(fixed_size_list=lists)


@encode_compression.register
def _packed_struct(value: PackedStruct) -> Any:
    packed = messages.PackedStruct(
        bits_per_value=value.bits, values=encode_compression(value.inner)
    )
    return messages.CompressiveEncoding(packed_struct=packed)


@encode_compression.register
def _variable_packed_struct(value: VariablePackedStruct) -> Any:
    packed = messages.VariablePackedStruct()
    for child in value.children:
        field = packed.fields.add(value=encode_compression(child.encoding))
        if child.is_variable:
            field.bits_per_length = child.bits
        else:
            field.bits_per_value = child.bits
    return messages.CompressiveEncoding(variable_packed_struct=packed)
