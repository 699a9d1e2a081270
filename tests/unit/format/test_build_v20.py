"""Arrays become the pages that 2.0 files have for them."""

from typing import Any

import pyarrow as pa
import pytest

from lancetable.errors import InputError
from lancetable.format.encoding.build.blocks import PageDraft
from lancetable.format.encoding.build.compress import TextCoder
from lancetable.format.encoding.build.field_options import FieldOptions
from lancetable.format.encoding.v20.build import build_pages
from lancetable.format.encoding.v20.codec import decode, encode
from lancetable.format.encoding.v20.model import (
    AllNulls,
    ArrayEncoding,
    Binary,
    Dictionary,
    FixedSizeList,
    Flat,
    Fsst,
    ItemList,
    NoNulls,
    PackedStruct,
    SomeNulls,
    Struct,
)
from lancetable.format.schema.types import schema_from_arrow

PACKED = {"lance-encoding:packed": "true"}
NUMBERS = NoNulls(Flat(64, 0))


def pages(
    array: pa.Array, metadata: dict[str, str] | None = None, **options: Any
) -> list[PageDraft]:
    field = schema_from_arrow(pa.schema([pa.field("x", array.type, metadata=metadata)])).fields[0]
    wanted = (FieldOptions(**options), TextCoder())
    return list(build_pages(field, array, lambda _, values: values, lambda _: wanted))


def only(array: pa.Array, **options: Any) -> tuple[ArrayEncoding, list[bytes]]:
    (page,) = pages(array, **options)
    assert page.rows == len(array)
    return decode(page.description), [buffer.tobytes() for buffer in page.buffers]


def test_strings_store_their_ends() -> None:
    encoding, (ends, content) = only(pa.array(["a", None, "", "dd"]))
    assert encoding == Binary(NUMBERS, Flat(8, 1), null_adjustment=4)
    assert [int.from_bytes(ends[n : n + 8], "little") for n in range(0, 32, 8)] == [1, 5, 1, 3]
    assert content == b"add"


def test_numbers_and_bits() -> None:
    assert only(pa.array([1, 2], pa.int16())) == (NoNulls(Flat(16, 0)), [b"\1\0\2\0"])
    assert only(pa.array([True, False, True])) == (NoNulls(Flat(1, 0)), [b"\5"])
    encoding, (validity, values) = only(pa.array([7, None, 9], pa.uint8()))
    assert encoding == SomeNulls(Flat(1, 0), Flat(8, 1))
    assert (validity, values[0], values[2]) == (b"\5", 7, 9)
    assert only(pa.nulls(3, pa.int64())) == (AllNulls(), [])
    assert only(pa.nulls(3)) == (AllNulls(), [])


def test_vectors_keep_nulls_of_lists_and_items() -> None:
    encoding, buffers = only(pa.array([[1, None], None, [3, 4]], pa.list_(pa.int8(), 2)))
    items = SomeNulls(Flat(1, 1), Flat(8, 2))
    assert encoding == SomeNulls(Flat(1, 0), FixedSizeList(2, items))
    assert [len(buffer) for buffer in buffers] == [1, 1, 6]


def test_lists_have_a_page_before_their_items() -> None:
    lists, items = pages(pa.array([[9], [1, 2], None, [], [3]], pa.list_(pa.int8())).slice(1))
    assert decode(lists.description) == ItemList(NUMBERS, 4, 3)
    assert lists.buffers[0].view("<u8").tolist() == [2, 6, 2, 3]
    assert (items.rows, items.buffers[0].tolist()) == (3, [1, 2, 3])


def test_items_of_null_lists_are_left_out() -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5], pa.int32()),
        pa.array([1, 2, 3, 4, 5], pa.int8()),
        mask=pa.array([False, True, False]),
    )
    ends, items = pages(lists)
    assert ends.buffers[0].view("<u8").tolist() == [2, 6, 3]
    assert items.buffers[0].tolist() == [1, 2, 5]


def test_lists_without_items_have_an_empty_page() -> None:
    _, items = pages(pa.array([None, []], pa.list_(pa.string())))
    assert (items.rows, decode(items.description)) == (0, AllNulls())


def test_structs_have_a_page_without_buffers() -> None:
    struct, first, second = pages(pa.array([{"a": 1, "b": "x"}] * 3))
    assert (struct.rows, struct.buffers, decode(struct.description)) == (3, [], Struct())
    assert decode(first.description) == NUMBERS
    assert isinstance(decode(second.description), Binary)


def test_few_strings_become_numbers_from_one() -> None:
    encoding, (numbers, _, content) = only(pa.array(["b", None, "a", "b"] * 25))
    assert encoding == Dictionary(
        NoNulls(Flat(8, 0)), Binary(NoNulls(Flat(64, 1)), Flat(8, 2), 3), 2
    )
    assert numbers == bytes([1, 0, 2, 1] * 25)
    assert content == b"ba"
    assert isinstance(only(pa.array(["b", "a"] * 50, pa.large_string()))[0], Binary)


def test_dictionaries_get_an_item_that_is_null() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), ["x", "y"])
    encoding, (numbers, _, content) = only(column)
    assert isinstance(encoding, Dictionary)
    assert (encoding.item_count, numbers, content) == (3, bytes([0, 2, 1]), b"xy")


def test_compression_is_of_the_bytes() -> None:
    encoding, (_, content) = only(pa.array([f"{n % 7}" * 9 for n in range(999)]), compression="lz4")
    assert encoding == Binary(NUMBERS, Flat(8, 1, "lz4"), null_adjustment=9 * 999 + 1)
    assert len(content) < 5000
    coded, _ = only(pa.array([f"user-{n}" for n in range(999)]), compression="fsst")
    assert isinstance(coded, Fsst)


def test_packed_structs_store_rows() -> None:
    type_ = pa.struct([("a", pa.int8()), ("v", pa.list_(pa.int16(), 2))])
    (page,) = pages(pa.array([{"a": 1, "v": [2, 3]}, {"a": 4, "v": [5, 6]}], type_), PACKED)
    number, vector = NoNulls(Flat(8, 0)), NoNulls(FixedSizeList(2, NoNulls(Flat(16, 0))))
    assert decode(page.description) == PackedStruct((number, vector), 0)
    assert page.buffers[0].tobytes() == bytes([1, 2, 0, 3, 0, 4, 5, 0, 6, 0])


@pytest.mark.parametrize("child", [pa.array([1, None]), pa.array(["a", "b"]), pa.array([True] * 2)])
def test_packed_structs_refuse_other_children(child: pa.Array) -> None:
    with pytest.raises(InputError, match="packed struct"):
        pages(pa.StructArray.from_arrays([child], names=["a"]), PACKED)


ENCODINGS = [
    Flat(7, 3, "zstd"),
    NoNulls(Flat(1, 0)),
    SomeNulls(Flat(1, 0), Flat(256, 1)),
    AllNulls(),
    FixedSizeList(5, AllNulls()),
    ItemList(NUMBERS, 1 << 40, 7),
    Struct(),
    Binary(NUMBERS, Flat(8, 2), 9),
    Dictionary(NUMBERS, Struct(), 3),
    Fsst(Binary(NUMBERS, Flat(8, 2), 9), b"table"),
    PackedStruct((NUMBERS, AllNulls()), 4),
]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda value: type(value).__name__)
def test_descriptions_come_back(encoding: ArrayEncoding) -> None:
    assert decode(encode(encoding)) == encoding
