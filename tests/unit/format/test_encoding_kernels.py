"""The kernels against slow, obvious versions of themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.kernels import bitpack, compiled, ragged

ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
WIDTHS = [(bits, width) for bits in (8, 16, 32, 64) for width in range(1, bits + 1)]


def slow_unpack(packed: list[int], bits: int, width: int) -> list[int]:
    """Unpack one block as the description of the format does it."""
    lanes = 1024 // bits
    out = [0] * 1024
    for row in range(bits):
        word, shift = divmod(row * width, bits)
        for lane in range(lanes):
            value = packed[word * lanes + lane] >> shift
            if shift + width > bits:
                value |= packed[(word + 1) * lanes + lane] << (bits - shift)
            out[ORDER[row // 8] * 16 + row % 8 * 128 + lane] = value & ((1 << width) - 1)
    return out


@pytest.mark.parametrize(("bits", "width"), WIDTHS)
def test_unpacking_agrees_with_the_slow_version(bits: int, width: int) -> None:
    chance = np.random.default_rng(bits * 100 + width)
    words = chance.integers(0, 256, 3 * 128 * width, np.uint8).view(f"<u{bits // 8}")
    packed = words.reshape(3, -1)
    found = bitpack.unpack(packed, width)
    for block in range(3):
        assert found[block].tolist() == slow_unpack(packed[block].tolist(), bits, width)
    assert np.array_equal(bitpack.pack(found, width), packed)


def inline_chunks(bits: int, shift: int) -> tuple[ragged.Ragged, list[list[int]]]:
    """Return three packed chunks, the first ``shift`` bytes into their memory, and their values."""
    chance = np.random.default_rng(bits)
    word = bits // 8
    pieces, values = [], []
    for width in (0, bits // 2 - 1, bits):
        words = chance.integers(0, 256, 128 * width, np.uint8)
        pieces.append(width.to_bytes(word, "little") + words.tobytes())
        packed = words.view(f"<u{word}").tolist()
        values.append(slow_unpack(packed, bits, width) if width else [0] * 1024)
    sizes = np.array([len(piece) for piece in pieces])
    data = np.frombuffer(bytes(shift) + b"".join(pieces), np.uint8)
    return ragged.Ragged(data, np.cumsum(sizes) - sizes + shift, sizes), values


@pytest.mark.skipif(compiled.LIBRARY is None, reason="the compiled kernels are not there")
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("counts", [(1024, 1024, 1024), (1024, 1024, 7), (3, 0, 1000)])
def test_chunks_with_their_widths_are_unpacked_one_behind_the_other(
    bits: int, shift: int, counts: tuple[int, ...]
) -> None:
    pieces, values = inline_chunks(bits, shift)
    found = bitpack.unpack_inline(pieces, np.array(counts), bits)
    assert found is not None
    wanted = [each for chunk, count in zip(values, counts, strict=True) for each in chunk[:count]]
    assert found.tolist() == wanted


@pytest.mark.skipif(compiled.LIBRARY is None, reason="the compiled kernels are not there")
def test_a_large_result_is_unpacked_to_the_last_value() -> None:
    pieces, values = inline_chunks(64, 0)
    many = pieces.pick(np.tile([1, 2], 300))
    counts = np.full(600, 1024)
    counts[-1] = 5
    found = bitpack.unpack_inline(many, counts, 64)
    assert found is not None
    assert found.tolist() == ((values[1] + values[2]) * 300)[:-1019]


@pytest.mark.skipif(compiled.LIBRARY is None, reason="the compiled kernels are not there")
@pytest.mark.parametrize(
    ("starts", "sizes", "counts", "message"),
    [
        ([0], [3], [1], "no width"),
        ([0], [4], [1025], "more than 1024"),
        ([0, 0], [4, 4], [1025, 1023], "more than 1024"),
        ([0, 0], [4, 4], [-1, 2], "more than 1024"),
        ([-4], [4], [1], "beyond"),
        ([2**62], [4], [1], "beyond"),
        ([10**6], [4], [1], "beyond"),
        ([0], [8], [1], "size of its bit width"),
        ([4], [128 * 15 + 4], [1], "size of its bit width"),
        ([8], [4], [1], "more bits"),
    ],
)
def test_damaged_chunks_are_refused(
    starts: list[int], sizes: list[int], counts: list[int], message: str
) -> None:
    data = np.zeros(4 + 128 * 15 + 4, np.uint8)
    data[4] = 14
    data[11] = 255
    pieces = ragged.Ragged(data, np.array(starts), np.array(sizes))
    with pytest.raises(CorruptError, match=message):
        bitpack.unpack_inline(pieces, np.array(counts), 32)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_single_values_are_picked_without_unpacking(bits: int) -> None:
    chance = np.random.default_rng(bits)
    widths = np.array([1, bits // 2, bits], np.int64)
    blocks: list[bytes] = []
    starts: list[int] = []
    for width in widths.tolist():
        words = chance.integers(0, 256, 128 * width, np.uint8).view(f"<u{bits // 8}")
        starts.append(sum(len(block) for block in blocks))
        blocks.append(words.tobytes())
    data = np.frombuffer(b"".join(blocks), np.uint8)
    which = chance.integers(0, 3, 200)
    inside = chance.integers(0, 1024, 200)
    words = data[: len(data) // (bits // 8) * (bits // 8)].view(bitpack.WORDS[bits])
    firsts = np.array(starts)[which] // (bits // 8)
    found = bitpack.pick(words, firsts, widths[which], inside)
    for number in range(200):
        block, width = blocks[which[number]], int(widths[which[number]])
        words = np.frombuffer(block, f"<u{bits // 8}").tolist()
        assert int(found[number]) == slow_unpack(words, bits, width)[inside[number]]


pieces = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60)), max_size=12)
DATA = np.random.default_rng(0).integers(0, 256, 512, np.uint8)


@given(pieces)
def test_join_is_concatenation(parts: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in parts], np.int64)
    sizes = np.array([size for _, size in parts], np.int64)
    expected = b"".join(DATA[start : start + size].tobytes() for start, size in parts)
    assert ragged.join(ragged.Ragged(DATA, starts, sizes)).tobytes() == expected


@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 24), st.integers(0, 30))
def test_join_of_pieces_equally_far_apart(count: int, size: int, gap: int, first: int) -> None:
    starts = first + np.arange(count) * (size + gap)
    data = np.random.default_rng(1).integers(0, 256, int(starts[-1]) + size, np.uint8)
    sizes = np.full(count, size)
    expected = b"".join(data[start : start + size].tobytes() for start in starts.tolist())
    assert ragged.join(ragged.Ragged(data, starts, sizes)).tobytes() == expected


@given(st.sampled_from([1, 2, 3, 4, 8, 12, 16, 24]), st.lists(st.integers(0, 20), max_size=20))
def test_gather_picks_elements(width: int, numbers: list[int]) -> None:
    positions = np.array(numbers, np.int64) * width
    found = ragged.gather(DATA, positions, width)
    expected = b"".join(DATA[place : place + width].tobytes() for place in positions.tolist())
    assert found.tobytes() == expected


@given(pieces)
def test_gather_slices_is_concatenation_with_offsets(parts: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in parts], np.int64)
    stops = starts + np.array([size for _, size in parts], np.int64)
    offsets, joined = ragged.gather_slices(DATA, starts, stops)
    for number, (start, size) in enumerate(parts):
        found = joined[offsets[number] : offsets[number + 1]]
        assert found.tobytes() == DATA[start : start + size].tobytes()


@pytest.mark.skipif(compiled.LIBRARY is None, reason="the compiled kernels are not there")
def test_a_library_of_other_sources_is_not_used_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "ABI", compiled.ABI + 1)
    monkeypatch.delenv("LANCETABLE_KERNELS", raising=False)
    with pytest.warns(RuntimeWarning, match="of another release"):
        assert compiled._load() is None
    monkeypatch.setenv("LANCETABLE_KERNELS", "c")
    with pytest.raises(UnsupportedError, match="of another release"):
        compiled._load()
