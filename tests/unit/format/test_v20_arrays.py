"""Pages made by hand: encodings that no golden file has, and what damage does to them."""

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.base import Rows
from lancetable.format.encoding.v20.arrays import read_array
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
    NoNulls,
    PackedStruct,
    SomeNulls,
    Struct,
)
from lancetable.format.encoding.v20.select import together
from tests.unit.format.serve import page_of, serve

SCATTERED = np.array([0, 2, 3], np.int64)


def read(
    encoding: ArrayEncoding, kind: pa.DataType, count: int, rows: Rows, *buffers: bytes
) -> list[object]:
    page, data = page_of(encoding, count, *buffers)
    array = serve(read_array(encoding, page, rows, kind), data)
    array.validate(full=True)
    assert array.type == kind
    values: list[object] = array.to_pylist()
    return values


def ends(*numbers: int) -> bytes:
    return np.array(numbers, "<u8").tobytes()


WORDS = Binary(NoNulls(Flat(64, 0)), Flat(8, 1), 4)
WORD_BUFFERS = (ends(1, 5, 1, 3), b"add")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_ends_and_nulls_of_strings(kind: pa.DataType) -> None:
    expected = pa.array(["a", None, "", "dd"], kind).to_pylist()
    assert read(WORDS, kind, 4, range(4), *WORD_BUFFERS) == expected
    assert read(WORDS, kind, 4, range(2, 4), *WORD_BUFFERS) == expected[2:]
    assert read(WORDS, kind, 4, SCATTERED, *WORD_BUFFERS) == [expected[i] for i in SCATTERED]


def test_compressed_bytes_of_strings() -> None:
    content = (3).to_bytes(8, "little") + zstandard.compress(b"add")
    encoding = Binary(Flat(64, 0), Flat(8, 1, "zstd"), 4)
    assert read(encoding, pa.string(), 4, range(1, 4), ends(1, 5, 1, 3), content) == [
        None,
        "",
        "dd",
    ]


@given(
    st.integers(1, 16).flatmap(
        lambda width: st.tuples(
            st.just(width), st.lists(st.integers(0, (1 << width) - 1), min_size=1, max_size=30)
        )
    ),
    st.booleans(),
    st.data(),
)
def test_bit_streams(case: tuple[int, list[int]], signed: bool, data: st.DataObject) -> None:
    width, values = case
    stream = sum(value << place * width for place, value in enumerate(values))
    packed = stream.to_bytes(-(-width * len(values) // 8), "little")
    encoding = Bitpacked(width, 16, 0, signed)
    expected = [v - (1 << width) if signed and v >> (width - 1) else v for v in values]
    kind = pa.int16() if signed else pa.uint16()
    start = data.draw(st.integers(0, len(values)))
    assert read(encoding, kind, len(values), range(start, len(values)), packed) == expected[start:]
    chosen = sorted(data.draw(st.sets(st.integers(0, len(values) - 1), min_size=1)))
    rows = np.array(chosen, np.int64)
    assert read(encoding, kind, len(values), rows, packed) == [expected[row] for row in chosen]


def test_blocks_of_1024() -> None:
    # At full width a block in FastLanes order holds its words lane by lane: transposing the
    # order of the specification must give the numbers back.
    order = [0, 4, 2, 6, 1, 5, 3, 7]
    packed = np.empty(2048, "<u4")
    for row in range(32):
        for lane in range(32):
            value = order[row // 8] * 16 + row % 8 * 128 + lane
            packed[row * 32 + lane] = value
            packed[1024 + row * 32 + lane] = 1024 + value
    encoding = BitpackedBlocks(32, 32, 0)
    assert read(encoding, pa.int32(), 1500, range(1500), packed.tobytes()) == list(range(1500))
    assert read(encoding, pa.int32(), 1500, range(1100, 1200), packed.tobytes()) == list(
        range(1100, 1200)
    )
    rows = np.array([3, 1023, 1024, 1499], np.int64)
    assert read(encoding, pa.int32(), 1500, rows, packed.tobytes()) == rows.tolist()


def test_constants() -> None:
    assert read(Constant(b"\x07\x00"), pa.int16(), 5, range(1, 4)) == [7, 7, 7]
    assert read(Constant(b"\x01"), pa.bool_(), 9, range(9)) == [True] * 9
    assert read(Constant(bytes(8)), pa.float64(), 5, SCATTERED) == [0.0] * 3


def test_strings_of_one_length() -> None:
    encoding = FixedSizeBinary(Flat(8, 0), 3)
    assert read(encoding, pa.string(), 3, range(1, 3), b"abcdefghi") == ["def", "ghi"]
    assert read(encoding, pa.binary(3), 3, np.array([0, 2]), b"abcdefghi") == [b"abc", b"ghi"]


@pytest.mark.parametrize("rows", [range(3, 13), np.array([0, 1, 6, 12])])
def test_bits_that_start_inside_a_byte(rows: Rows) -> None:
    bits = [n % 3 == 0 for n in range(13)]
    bitmap = np.packbits(bits, bitorder="little").tobytes()
    assert read(Flat(1, 0), pa.bool_(), 13, rows, bitmap) == [bits[row] for row in rows]
    values = np.arange(13, dtype="<i2").tobytes()
    assert read(SomeNulls(Flat(1, 0), Flat(16, 1)), pa.int16(), 13, rows, bitmap, values) == [
        int(row) if bits[row] else None for row in rows
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pa.null(),
        pa.bool_(),
        pa.int32(),
        pa.string(),
        pa.large_binary(),
        pa.decimal128(5, 2),
        pa.list_(pa.float32(), 3),
        pa.struct([("a", pa.int8())]),
        pa.dictionary(pa.int8(), pa.string()),
    ],
)
def test_pages_without_buffers_are_all_null(kind: pa.DataType) -> None:
    assert read(AllNulls(), kind, 9, range(9)) == [None] * 9


def test_a_dictionary_of_strings_counts_from_one() -> None:
    encoding = Dictionary(NoNulls(Flat(8, 2)), WORDS, 4)
    indices = bytes([4, 0, 1, 2])
    assert read(encoding, pa.string(), 4, range(4), *WORD_BUFFERS, indices) == [
        "dd",
        None,
        "a",
        None,
    ]


def test_a_dictionary_column_counts_from_zero_and_has_null_items() -> None:
    encoding = Dictionary(NoNulls(Flat(16, 2)), WORDS, 4)
    indices = np.array([3, 0, 1, 2], "<i2").tobytes()
    kind = pa.dictionary(pa.int16(), pa.string())
    page, data = page_of(encoding, 4, *WORD_BUFFERS, indices)
    array = serve(read_array(encoding, page, range(4), kind), data)
    assert array.to_pylist() == ["dd", "a", None, ""]
    assert array.indices.null_count == 1


def test_lists_of_fixed_size_with_null_items() -> None:
    encoding = FixedSizeList(2, SomeNulls(Flat(1, 0), Flat(8, 1)))
    kind = pa.list_(pa.uint8(), 2)
    assert read(encoding, kind, 3, np.array([0, 2]), b"\x2d", bytes(range(6))) == [
        [0, None],
        [None, 5],
    ]


def test_packed_structs() -> None:
    encoding = PackedStruct((NoNulls(Flat(16, 0)), FixedSizeList(2, NoNulls(Flat(8, 0)))), 0)
    kind = pa.struct([("a", pa.uint16()), ("v", pa.list_(pa.uint8(), 2))])
    data = bytes([1, 0, 2, 3, 4, 0, 5, 6])
    rows = [{"a": 1, "v": [2, 3]}, {"a": 4, "v": [5, 6]}]
    assert read(encoding, kind, 2, range(2), data) == rows
    assert read(encoding, kind, 2, range(1, 2), data) == rows[1:]
    assert read(encoding, kind, 2, np.array([0, 1]), data) == rows


@pytest.mark.parametrize(
    ("encoding", "kind", "buffers"),
    [
        (Flat(32, 0), pa.int32(), [b"123"]),
        (Flat(32, 1), pa.int32(), [bytes(16)]),
        (Flat(32, 0), pa.int64(), [bytes(64)]),
        (Flat(0, 0), pa.int64(), [bytes(64)]),
        (Flat(64, 0), pa.string(), [bytes(64)]),
        (Flat(32, 0), pa.dictionary(pa.int32(), pa.string()), [bytes(64)]),
        (WORDS, pa.int32(), WORD_BUFFERS),
        (WORDS, pa.string(), [ends(1, 5, 1, 9), b"add"]),
        (WORDS, pa.string(), [ends(3, 2, 1, 0), b"add"]),
        (WORDS, pa.string(), [ends(1, 2**63 + 5, 3, 3), b"add"]),
        (Bitpacked(17, 16, 0, is_signed=False), pa.int16(), [bytes(64)]),
        (Bitpacked(0, 16, 0, is_signed=False), pa.int16(), [bytes(64)]),
        (BitpackedBlocks(3, 16, 0), pa.int16(), [bytes(383)]),
        (Constant(b"abc"), pa.int16(), []),
        (FixedSizeList(3, Flat(8, 0)), pa.list_(pa.uint8(), 2), [bytes(64)]),
        (FixedSizeList(2, Flat(16, 0)), pa.list_(pa.uint8(), 2), [bytes(64)]),
        (Dictionary(Flat(8, 2), WORDS, 4), pa.string(), [*WORD_BUFFERS, bytes([1, 2, 5, 0])]),
        (Dictionary(Flat(8, 0), AllNulls(), 2**32 - 1), pa.string(), [bytes(4)]),
        (PackedStruct((Flat(16, 0),), 0), pa.struct([("a", pa.int8())]), [bytes(64)]),
        (PackedStruct((Flat(16, 0),), 0), pa.int8(), [bytes(64)]),
    ],
)
def test_damage_is_refused(
    encoding: ArrayEncoding, kind: pa.DataType, buffers: list[bytes]
) -> None:
    with pytest.raises(CorruptError):
        read(encoding, kind, 4, range(4), *buffers)


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(UnsupportedError, match="struct"):
        read(Struct(), pa.int32(), 4, range(4))
    with pytest.raises(UnsupportedError, match="brotli"):
        read(Flat(32, 0, "brotli"), pa.int32(), 4, range(4), bytes(16))


def test_readings_side_by_side_share_their_rounds() -> None:
    page, data = page_of(WORDS, 4, *WORD_BUFFERS)
    reading = together(
        [
            read_array(WORDS, page, range(2), pa.string()),
            read_array(AllNulls(), page, range(2), pa.string()),
            read_array(WORDS, page, range(3, 4), pa.string()),
        ]
    )
    rounds: list[int] = []
    arrays = serve(reading, data, rounds)
    assert rounds == [2, 2]
    assert [array.to_pylist() for array in arrays] == [["a", None], [None, None], ["dd"]]
