"""The worked examples of the format's description, byte for byte."""

import numpy as np
import pyarrow as pa
import pytest

from lancetable.format.encoding.kernels import bitpack
from lancetable.format.proto import encodings20_pb2
from tests.handmade import Column, Compression, Layout, Page, data_file, flat, handle, variable
from tests.same import assert_same_array

ITEM, LIST = 1, 2
NULLABLE_ITEM, NULL_AND_EMPTY = 3, 6
PAD = b"\xfe"


def u16(*values: int) -> bytes:
    return np.array(values, "<u2").tobytes()


def u32(*values: int) -> bytes:
    return np.array(values, "<u4").tobytes()


def u64(*values: int) -> bytes:
    return np.array(values, "<u8").tobytes()


def column(data: bytes) -> pa.Array:
    """Return the only column, after checking that single rows come out the same."""
    opened = handle(data)
    whole = opened.read().column(0).combine_chunks()
    rows = [*range(opened.rows - 1, -1, -1), *range(opened.rows)]
    assert_same_array(opened.take(rows).column(0), whole.take(pa.array(rows)))
    return whole


def single(version: str, type_: str, page: Page) -> pa.Array:
    return column(data_file(version, [Column("x", type_)], [[page]], page.rows))


def listed(version: str, page: Page) -> list[object]:
    fields = [Column("x", "list"), Column("item", "int32", 0)]
    return list(column(data_file(version, fields, [[page]], page.rows)).to_pylist())


def mini_block(version: str, **parts: object) -> Layout:
    parts.setdefault("num_buffers", 1)
    return Layout(mini_block_layout={"has_large_chunk": version == "2.2", **parts})


def test_mini_block_of_int64_with_a_null_in_2_2() -> None:
    chunk = (
        bytes.fromhex("0400 0800 20000000 0000 0000 0100 0000")
        + u64(3, 1, 0, 2)
    )  # fmt: skip
    layout = mini_block(
        "2.2",
        def_compression=flat(16),
        value_compression=flat(64),
        layers=[NULLABLE_ITEM],
        num_items=4,
    )
    found = single("2.2", "int64", Page(4, layout, [bytes.fromhex("50000000"), chunk]))
    assert found.to_pylist() == [3, 1, None, 2]


def test_mini_block_of_int64_with_a_null_in_2_1() -> None:
    chunk = bytes.fromhex("0400 0800 2000 FEFE 0000 0000 0100 0000") + u64(3, 1, 0, 2)
    layout = mini_block(
        "2.1",
        def_compression=flat(16),
        value_compression=flat(64),
        layers=[NULLABLE_ITEM],
        num_items=4,
    )
    found = single("2.1", "int64", Page(4, layout, [bytes.fromhex("5000"), chunk]))
    assert found.to_pylist() == [3, 1, None, 2]


def test_mini_block_of_lists() -> None:
    chunk = (
        u16(5, 10, 10) + u32(12) + PAD * 6
        + u16(1, 0, 1, 1, 1) + PAD * 6
        + u16(0, 0, 1, 2, 0) + PAD * 6
        + u32(1, 2, 3) + PAD * 4
    )  # fmt: skip
    layout = mini_block(
        "2.2",
        rep_compression=flat(16),
        def_compression=flat(16),
        value_compression=flat(32),
        layers=[ITEM, NULL_AND_EMPTY],
        num_items=3,
        repetition_index_depth=1,
    )
    page = Page(4, layout, [bytes.fromhex("70000000"), chunk, u64(4, 0)])
    assert listed("2.2", page) == [[1, 2], None, [], [3]]


def test_levels_of_lists_of_lists() -> None:
    rep = u16(2, 0, 1, 1, 2, 2, 2, 1)
    definition = u16(0, 0, 2, 0, 4, 3, 1, 0)
    header = u16(8, 16, 16) + u32(16) + PAD * 6
    chunk = header + rep + definition + u32(1, 2, 3, 4)
    layout = mini_block(
        "2.2",
        rep_compression=flat(16),
        def_compression=flat(16),
        value_compression=flat(32),
        layers=[ITEM, NULL_AND_EMPTY, NULL_AND_EMPTY],
        num_items=4,
        repetition_index_depth=1,
    )
    word = u32((len(chunk) // 8 - 1) << 4)
    fields = [Column("x", "list"), Column("item", "list", 0), Column("item", "int32", 1)]
    page = Page(4, layout, [word, chunk, u64(4, 0)])
    found = column(data_file("2.2", fields, [[page]], 4))
    assert found.to_pylist() == [[[1, 2], [], [3]], [], None, [None, [4]]]


def test_full_zip_of_strings() -> None:
    zipped = bytes.fromhex("00 02000000 61 62 01 00 00000000 00 03000000 63 64 65")
    layout = Layout(
        full_zip_layout={
            "bits_def": 1,
            "bits_per_offset": 32,
            "num_items": 4,
            "num_visible_items": 4,
            "value_compression": variable(),
            "layers": [NULLABLE_ITEM],
        }
    )
    page = Page(4, layout, [zipped, bytes.fromhex("00 07 08 0D 15")])
    assert single("2.1", "string", page).to_pylist() == ["ab", None, "", "cde"]


def test_full_zip_of_int32() -> None:
    layout = Layout(
        full_zip_layout={
            "bits_def": 1,
            "bits_per_value": 32,
            "num_items": 3,
            "num_visible_items": 3,
            "value_compression": flat(32),
            "layers": [NULLABLE_ITEM],
        }
    )
    page = Page(3, layout, [bytes.fromhex("00 07000000 01 00000000 00 09000000")])
    assert single("2.1", "int32", page).to_pylist() == [7, None, 9]


def test_full_zip_of_lists() -> None:
    layout = Layout(
        full_zip_layout={
            "bits_rep": 1,
            "bits_def": 2,
            "bits_per_value": 32,
            "num_items": 5,
            "num_visible_items": 3,
            "value_compression": flat(32),
            "layers": [ITEM, NULL_AND_EMPTY],
        }
    )
    zipped = bytes.fromhex("04 01000000 00 02000000 05 06 04 03000000")
    page = Page(4, layout, [zipped, bytes.fromhex("00 0A 0B 0C 11")])
    assert listed("2.1", page) == [[1, 2], None, [], [3]]


def test_constant_pages() -> None:
    nothing = Page(3, Layout(constant_layout={"layers": [NULLABLE_ITEM]}))
    assert single("2.1", "int32", nothing).to_pylist() == [None, None, None]
    inline = Layout(constant_layout={"layers": [ITEM], "inline_value": u32(7)})
    assert single("2.2", "int32", Page(3, inline)).to_pylist() == [7, 7, 7]
    value = bytes.fromhex("02000000 08000000 05000000 00000000 05000000 68656C6C6F")
    text = Page(2, Layout(constant_layout={"layers": [ITEM]}), [value])
    assert single("2.2", "string", text).to_pylist() == ["hello", "hello"]


def test_constant_page_with_levels() -> None:
    layout = Layout(constant_layout={"layers": [NULLABLE_ITEM], "inline_value": u32(7)})
    page = Page(4, layout, [b"", u16(0, 1, 0, 1)])
    assert single("2.2", "int32", page).to_pylist() == [7, None, 7, None]


def test_variable_mini_block() -> None:
    stored = bytes.fromhex("14000000 15000000 15000000 15000000 17000000 61 64 64 48")
    chunk = u16(4, 8, len(stored)) + PAD * 2 + u16(0, 1, 0, 0) + stored
    layout = mini_block(
        "2.1",
        def_compression=flat(16),
        value_compression=variable(),
        layers=[NULLABLE_ITEM],
        num_items=4,
    )
    word = u16((len(chunk) // 8 - 1) << 4)
    found = single("2.1", "string", Page(4, layout, [word, chunk]))
    assert found.to_pylist() == ["a", None, "", "dd"]


@pytest.mark.parametrize(("bits", "make"), [(32, u32), (64, u64)])
def test_variable_block_as_dictionary(bits: int, make) -> None:
    size = bits // 8
    dictionary = make(bits, 2 * size + 4 * size, 0, 1, 1, 3) + b"add"
    chunk = u16(0, 4) + PAD * 4 + bytes([2, 0, 1, 2]) + PAD * 4
    layout = mini_block(
        "2.1",
        value_compression=flat(8),
        dictionary=variable(bits),
        num_dictionary_items=3,
        layers=[ITEM],
        num_items=4,
    )
    page = Page(4, layout, [u16((len(chunk) // 8 - 1) << 4), chunk, dictionary])
    assert single("2.1", "string", page).to_pylist() == ["dd", "a", "", "dd"]


def test_runs_in_a_mini_block() -> None:
    values, lengths = u32(7, 7, 9, 7), bytes.fromhex("FF 2D 05 01")
    chunk = u16(0, 16, 4) + PAD * 2 + values + lengths + PAD * 4
    runs = Compression(rle={"values": flat(32), "run_lengths": flat(8)})
    layout = mini_block("2.1", value_compression=runs, layers=[ITEM], num_items=306, num_buffers=2)
    page = Page(306, layout, [u16((len(chunk) // 8 - 1) << 4), chunk])
    assert single("2.1", "int32", page).to_pylist() == [7] * 300 + [9] * 5 + [7]


def test_runs_as_levels() -> None:
    levels = u64(4) + u16(1, 0) + bytes([2, 3])
    chunk = u16(5, len(levels)) + u32(20) + levels + PAD * 2 + u32(0, 0, 5, 6, 7) + PAD * 4
    runs = Compression(rle={"values": flat(16), "run_lengths": flat(8)})
    layout = mini_block(
        "2.2",
        def_compression=runs,
        value_compression=flat(32),
        layers=[NULLABLE_ITEM],
        num_items=5,
    )
    page = Page(5, layout, [u32((len(chunk) // 8 - 1) << 4), chunk])
    assert single("2.2", "int32", page).to_pylist() == [None, None, 5, 6, 7]


def test_fixed_size_list_with_missing_items() -> None:
    items = bytes.fromhex("0100 0000 0000 0000 0300 0400")
    chunk = (
        u16(3, 6, 1, 12)
        + u16(0, 1, 0) + PAD * 2
        + b"\x31" + PAD * 7
        + items + PAD * 4
    )  # fmt: skip
    inner = {"items_per_value": 2, "values": flat(16), "has_validity": True}
    layout = mini_block(
        "2.1",
        def_compression=flat(16),
        value_compression=Compression(fixed_size_list=inner),
        layers=[NULLABLE_ITEM],
        num_items=3,
        num_buffers=2,
    )
    page = Page(3, layout, [u16((len(chunk) // 8 - 1) << 4), chunk])
    found = single("2.1", "fixed_size_list:int16:2", page)
    assert found.to_pylist() == [[1, None], None, [3, 4]]


def test_fixed_size_list_of_nothing_but_nulls() -> None:
    empty = Compression(constant={})
    inner = {"items_per_value": 2, "values": empty, "has_validity": True}
    layout = Layout(
        full_zip_layout={
            "bits_def": 1,
            "bits_per_value": 8,
            "num_items": 3,
            "num_visible_items": 3,
            "value_compression": Compression(fixed_size_list=inner),
            "layers": [NULLABLE_ITEM],
        }
    )
    page = Page(3, layout, [bytes.fromhex("00 00 01 00 00 00")])
    found = single("2.1", "fixed_size_list:int16:2", page)
    assert found.to_pylist() == [[None, None], None, [None, None]]


def test_binary_of_2_0() -> None:
    encoding = encodings20_pb2.ArrayEncoding(
        binary={
            "indices": {
                "nullable": {
                    "no_nulls": {
                        "values": {"flat": {"bits_per_value": 64, "buffer": {"buffer_index": 0}}}
                    }
                }
            },
            "bytes": {"flat": {"bits_per_value": 8, "buffer": {"buffer_index": 1}}},
            "null_adjustment": 4,
        }
    )
    page = Page(4, encoding, [u64(1, 5, 1, 3), b"add"])
    assert single("2.0", "string", page).to_pylist() == ["a", None, "", "dd"]


def test_bit_packing_check_values() -> None:
    values = np.zeros((1, 1024), np.uint16)
    values[0, 200] = 1
    packed = bitpack.pack(values, 1)
    assert packed[0, 8] == 0x0200
    assert np.count_nonzero(packed) == 1
    assert np.array_equal(bitpack.unpack(packed, 1), values)
    eights = (np.arange(1024, dtype=np.uint32) % 8).reshape(1, 1024)
    packed = bitpack.pack(eights, 3)
    assert packed.shape == (1, 96)
    assert [f"{word:08X}" for word in packed[0, :4]] == [
        "00000000",
        "49249249",
        "92492492",
        "DB6DB6DB",
    ]
