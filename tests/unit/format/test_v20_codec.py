"""Array encodings from their messages."""

import pytest

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.v20.codec import decode
from lancetable.format.encoding.v20.model import (
    AllNulls,
    Binary,
    Bitpacked,
    Dictionary,
    FixedSizeList,
    Flat,
    ItemList,
    NoNulls,
    SomeNulls,
)
from lancetable.format.proto import encodings20_pb2 as pb


def flat(bits: int, buffer: int, scheme: str = "") -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.flat.bits_per_value = bits
    message.flat.buffer.buffer_index = buffer
    if scheme:
        message.flat.compression.scheme = scheme
    return message


def no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.nullable.no_nulls.values.CopyFrom(values)
    return message


def some_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.nullable.some_nulls.validity.CopyFrom(flat(1, 0))
    message.nullable.some_nulls.values.CopyFrom(values)
    return message


def binary() -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.binary.indices.CopyFrom(no_nulls(flat(64, 0)))
    message.binary.bytes.CopyFrom(flat(8, 1, "zstd"))
    message.binary.null_adjustment = 7
    return message


def dictionary() -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.dictionary.indices.CopyFrom(flat(8, 0))
    message.dictionary.items.CopyFrom(binary())
    message.dictionary.num_dictionary_items = 3
    return message


def vectors() -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.fixed_size_list.dimension = 4
    message.fixed_size_list.items.CopyFrom(some_nulls(flat(32, 1)))
    return message


def lists() -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.list.offsets.CopyFrom(flat(64, 0))
    message.list.null_offset_adjustment = 10
    message.list.num_items = 9
    return message


def packed() -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.bitpacked.compressed_bits_per_value = 3
    message.bitpacked.uncompressed_bits_per_value = 16
    message.bitpacked.signed = True
    return message


def all_nulls() -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    message.nullable.all_nulls.SetInParent()
    return message


STRINGS = Binary(NoNulls(Flat(64, 0)), Flat(8, 1, "zstd"), 7)


@pytest.mark.parametrize(
    ("message", "expected", "text"),
    [
        (no_nulls(flat(64, 0)), NoNulls(Flat(64, 0)), "no_nulls(flat64)"),
        (all_nulls(), AllNulls(), "all_nulls"),
        (binary(), STRINGS, "binary(no_nulls(flat64);flat8[zstd])"),
        (
            dictionary(),
            Dictionary(Flat(8, 0), STRINGS, 3),
            "dictionary(flat8;binary(no_nulls(flat64);flat8[zstd])x3)",
        ),
        (
            vectors(),
            FixedSizeList(4, SomeNulls(Flat(1, 0), Flat(32, 1))),
            "fsl[4](some_nulls(flat1;flat32))",
        ),
        (lists(), ItemList(Flat(64, 0), 10, 9), "list(flat64)"),
        (packed(), Bitpacked(3, 16, 0, is_signed=True), "bitpacked16->3"),
    ],
)
def test_messages_become_values(message, expected, text: str) -> None:
    decoded = decode(message.SerializeToString())
    assert decoded == expected
    assert str(decoded) == text


def test_the_same_bytes_give_the_same_value() -> None:
    assert decode(binary().SerializeToString()) is decode(binary().SerializeToString())


@pytest.mark.parametrize("data", [b"", b"\xff\xff\xff", b"\x12\x00", b"\x12\x02\x0a\x00"])
def test_messages_that_say_nothing_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptError):
        decode(data)


def test_encodings_of_unfinished_releases_are_refused_by_name() -> None:
    message = pb.ArrayEncoding()
    message.rle.bits_per_value = 8
    with pytest.raises(UnsupportedError, match="rle"):
        decode(message.SerializeToString())


def test_buffers_outside_of_the_page_are_refused() -> None:
    message = flat(8, 0)
    message.flat.buffer.buffer_type = pb.Buffer.file
    with pytest.raises(UnsupportedError, match="outside"):
        decode(message.SerializeToString())


def test_endless_nesting_is_refused() -> None:
    message = flat(8, 0)
    for _ in range(40):
        message = no_nulls(message)
    with pytest.raises(CorruptError):
        decode(message.SerializeToString())
