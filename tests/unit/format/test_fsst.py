"""Decoding FSST: tables, single values, and many values by both ways of gathering."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels import fsst

SYMBOLS = [b"a", b"the", b"\x00", b"eight by", b"ng", b"\xff"]


def table_bytes(symbols: list[bytes], *, compressed: bool = True, magic: int = 0x46535354) -> bytes:
    header = magic << 32 | int(compressed) << 24 | len(symbols)
    padded = b"".join(symbol.ljust(8, b"\0") for symbol in symbols)
    lengths = bytes(len(symbol) for symbol in symbols)
    return (header.to_bytes(8, "little") + padded + lengths).ljust(2312, b"\0")


TABLE = fsst.parse_symbol_table(table_bytes(SYMBOLS))


def decode_all(table: fsst.SymbolTable, values: list[bytes], *, junk: bytes = b"") -> list[bytes]:
    """Decode values that lie between bytes which belong to none of them."""
    offsets = np.cumsum([len(junk), *map(len, values)]).astype(np.int64)
    codes = np.frombuffer(junk + b"".join(values) + junk, np.uint8)
    ends, data = fsst.decode(table, offsets, codes)
    assert ends[0] == 0
    assert ends.dtype == np.int64
    return [data[start:stop].tobytes() for start, stop in pairwise(ends.tolist())]


def test_a_value_is_its_symbols_and_escaped_bytes() -> None:
    assert fsst.decode_value(TABLE, bytes([1, 0, 255, 90, 255, 255, 3])) == b"theaZ\xffeight by"


def test_a_table_with_the_switch_off_means_plain_bytes() -> None:
    table = fsst.parse_symbol_table(table_bytes([], compressed=False))
    assert fsst.decode_value(table, b"\xffabc") == b"\xffabc"
    assert decode_all(table, [b"x", b"", b"\xff\xff\xff"], junk=b"??") == [
        b"x",
        b"",
        b"\xff\xff\xff",
    ]


code = st.one_of(
    st.integers(0, len(SYMBOLS) - 1).map(lambda value: bytes([value])),
    st.sampled_from([255, 254, 0, 65]).map(lambda value: bytes([255, value])),
)
value = st.lists(code, max_size=9).map(b"".join)


@pytest.mark.parametrize("pairs_from", [0, 1 << 40], ids=["pairs", "singles"])
@settings(deadline=None)
@given(values=st.lists(value, max_size=12), junk=st.sampled_from([b"", b"\x07", b"\xff\x07"]))
def test_many_values_decode_like_each_alone(
    pairs_from: int, values: list[bytes], junk: bytes
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fsst, "_PAIRS_PAY_FROM", pairs_from)
        expected = [fsst.decode_value(TABLE, value) for value in values]
        assert decode_all(TABLE, values, junk=junk) == expected


def test_large_inputs_go_through_pairs() -> None:
    rng = np.random.default_rng(7)
    codes = rng.integers(0, len(SYMBOLS), 700_001, dtype=np.uint8)
    cuts = np.sort(rng.integers(0, len(codes) + 1, 999))
    offsets = np.concatenate([[0], cuts, [len(codes)]]).astype(np.int64)
    ends, data = fsst.decode(TABLE, offsets, codes)
    lengths = np.array([len(symbol) for symbol in SYMBOLS])
    where = np.concatenate([[0], np.cumsum(lengths[codes])])
    assert np.array_equal(ends, where[offsets])
    assert data.tobytes() == b"".join(SYMBOLS[code] for code in codes.tolist())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (table_bytes(SYMBOLS)[:-1], "2311 bytes"),
        (table_bytes(SYMBOLS, magic=0x46535355), "mark"),
        (table_bytes([b"ab"]).replace(b"\x02", b"\x09"), "1 to 8"),
        (table_bytes([b"ab", b""]), "1 to 8"),
    ],
)
def test_damaged_tables_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(CorruptError, match=message):
        fsst.parse_symbol_table(data)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([b"\x00\x06"], "no symbol"),
        ([b"\x00", b"\xfe", b"\x00"], "no symbol"),
        ([b"\x00\xff", b"\x00"], "ends with an escape"),
        ([b"\xff\xff\xff", b"\xff\x00"], "ends with an escape"),
        ([b"\x00", b"\xff"], "ends with an escape"),
    ],
)
def test_damaged_codes_are_refused(values: list[bytes], message: str) -> None:
    with pytest.raises(CorruptError, match=message):
        decode_all(TABLE, values)
    with pytest.raises(CorruptError, match=message):
        [fsst.decode_value(TABLE, each) for each in values]


@pytest.mark.parametrize("offsets", [[0, 4], [-1, 2], [0, 2, 1, 3], []])
def test_offsets_outside_the_codes_are_refused(offsets: list[int]) -> None:
    with pytest.raises(CorruptError):
        fsst.decode(TABLE, np.array(offsets, np.int64), np.zeros(3, np.uint8))
