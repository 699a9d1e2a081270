"""Compiled kernels of the reading side give what plain Python gives, in large results too."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels import bitpack, fsst
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.kernels.fsst_encode import symbol_table
from lancetable.format.encoding.kernels.ragged import Ragged, join
from lancetable.format.encoding.kernels.texts import TextChunks, decode_texts

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="the compiled kernels are not there")

SYMBOLS = [b"a", b"the", b"\x00", b"eight by", b"ng", b"\xff"]
TABLE = fsst.parse_symbol_table(symbol_table(SYMBOLS))
RUN = 2048
"""Codes that the compiled decoder takes at a time."""

code = st.one_of(
    st.integers(0, len(SYMBOLS) - 1).map(lambda value: bytes([value])),
    st.sampled_from([255, 254, 0, 65]).map(lambda value: bytes([255, value])),
)
value = st.lists(code, max_size=9).map(b"".join)


def chunk_of(values: list[bytes], width: int, gap: int = 0) -> bytes:
    """Return offsets and values as a chunk; unused bytes may lie between them."""
    first = (len(values) + 1) * width + gap
    offsets = np.cumsum([first, *map(len, values)]).astype(f"<u{width}")
    return offsets.tobytes() + bytes(gap) + b"".join(values)


def decoded(chunks: list[bytes], counts: list[int], width: int, table=TABLE) -> list[bytes]:
    # Chunks are aligned to eight bytes in a file.
    padded = [chunk.ljust((len(chunk) + 7) // 8 * 8, b"\xee") for chunk in chunks]
    starts = np.cumsum([0, *map(len, padded)])[:-1].astype(np.int64)
    data = np.frombuffer(b"".join(padded), np.uint8)
    pieces = Ragged(data, starts, np.array([len(chunk) for chunk in chunks], np.int64))
    assert LIBRARY is not None
    edges, text = decode_texts(
        LIBRARY, [TextChunks(pieces, np.array(counts, np.int64), table)], width
    )
    return [text[start:stop].tobytes() for start, stop in pairwise(edges.tolist())]


@given(
    st.lists(st.lists(value, max_size=12), min_size=1, max_size=4),
    st.sampled_from([4, 8]),
    st.sampled_from([0, 8]),
)
def test_coded_text(chunks: list[list[bytes]], width: int, gap: int) -> None:
    made = decoded([chunk_of(one, width, gap) for one in chunks], list(map(len, chunks)), width)
    assert made == [fsst.decode_value(TABLE, one) for chunk in chunks for one in chunk]


@given(
    st.lists(st.lists(st.binary(max_size=30), max_size=12), min_size=1, max_size=4),
    st.sampled_from([4, 8]),
)
def test_plain_text(chunks: list[list[bytes]], width: int) -> None:
    made = decoded([chunk_of(one, width) for one in chunks], list(map(len, chunks)), width, None)
    assert made == [one for chunk in chunks for one in chunk]


@pytest.mark.parametrize("lead", range(RUN - 3, RUN + 3))
@pytest.mark.parametrize("tail", [b"", b"\xff\x41", b"\x03", b"\xff\xff\xff\x01"])
def test_values_and_escapes_across_the_ends_of_runs(lead: int, tail: bytes) -> None:
    values = [bytes([3]) * lead, b"\xff\x41\x01" + tail, b"", bytes([1, 0]) * RUN, tail]
    expected = [fsst.decode_value(TABLE, one) for one in values]
    assert decoded([chunk_of(values, 4)] * 2, [len(values)] * 2, 4) == expected * 2


@pytest.mark.parametrize("lead", [0, 5, RUN - 1, RUN])
def test_an_escape_must_not_end_a_value(lead: int) -> None:
    for values in ([bytes(lead) + b"\xff", b"\x01"], [b"\x01", bytes(lead) + b"\xff"]):
        with pytest.raises(CorruptError, match="ends with an escape"):
            decoded([chunk_of(values, 4)], [2], 4)


@pytest.mark.parametrize("lead", [0, 1, 3, RUN - 1, RUN])
def test_a_code_without_a_symbol(lead: int) -> None:
    with pytest.raises(CorruptError, match="no symbol"):
        decoded([chunk_of([bytes(lead) + b"\x77", b"\x01\x01\x01"], 4)], [2], 4)


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("table", [TABLE, None], ids=["coded", "plain"])
def test_damaged_offsets(width: int, table: fsst.SymbolTable | None) -> None:
    good = np.frombuffer(chunk_of([b"\x01\x01", b"\x02", b"\x03"], width), np.uint8)
    offsets = good[: 4 * width].view(f"<u{width}")
    for place, wrong in [(0, 0), (0, 4 * width - 1), (1, 3), (2, 200), (3, len(good) + 1)]:
        bad = offsets.copy()
        bad[place] = wrong
        with pytest.raises(CorruptError, match="offsets of a chunk"):
            decoded([bad.tobytes() + good[4 * width :].tobytes()], [3], width, table)
    if width == 8:
        bad = offsets.copy()
        bad[3] = 2**63 + 5
        with pytest.raises(CorruptError, match="offsets of a chunk"):
            decoded([bad.tobytes() + good[32:].tobytes()], [3], width, table)
    for count in (4, 1000):
        with pytest.raises(CorruptError):
            decoded([good.tobytes()], [count], width, table)


def test_large_results_are_the_same() -> None:
    """From a few megabytes on results are written past the caches, whatever their alignment."""
    chance = np.random.default_rng(7)
    values = [bytes(chance.integers(0, 6, 40, np.uint8)) for _ in range(37)]
    chunks = 1400
    expected = [fsst.decode_value(TABLE, one) for one in values]
    assert decoded([chunk_of(values, 4)] * chunks, [37] * chunks, 4) == expected * chunks
    plain = [bytes(chance.integers(0, 255, 1001, np.uint8)) for _ in range(9)]
    assert decoded([chunk_of(plain, 4)] * chunks, [9] * chunks, 4, None) == plain * chunks


def test_large_joins_are_the_same() -> None:
    data = np.random.default_rng(7).integers(0, 255, 6 << 20, np.uint8)
    starts = np.arange(0, len(data) - 5000, 4104)
    sizes = np.where(np.arange(len(starts)) % 3, 4101, 77 + np.arange(len(starts)) % 300)
    for count in (len(starts), 11):
        pieces = Ragged(data, starts[:count].astype(np.int64), sizes[:count].astype(np.int64))
        whole = b"".join(data[a : a + n].tobytes() for a, n in zip(*pieces[1:], strict=True))
        assert join(pieces).tobytes() == whole


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_large_blocks_are_the_same(bits: int) -> None:
    chance = np.random.default_rng(bits)
    blocks = (5 << 20) // (128 * bits)
    width = bits - 3
    words = chance.integers(0, 2**width, (blocks, 1024), np.uint64).astype(f"<u{bits // 8}")
    packed = np.concatenate(
        [np.zeros(8, np.uint8), bitpack.pack(words, width).view(np.uint8).ravel()]
    )
    starts = 8 + np.arange(blocks, dtype=np.int64) * 128 * width
    found = bitpack.unpack_blocks(packed, starts, np.full(blocks, width, np.int64), bits)
    assert (found == words).all()
