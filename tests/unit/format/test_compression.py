"""Buffers under zstd and lz4: framing, limits, damage."""

import pyarrow as pa
import pytest
import zstandard

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.kernels.compression import decompress

TEXT = b"the quick brown fox " * 400
LIMIT = len(TEXT)


def zstd(content: bytes, *, with_size: bool = True, length: int | None = None) -> bytes:
    frame = zstandard.ZstdCompressor(write_content_size=with_size).compress(content)
    return (len(content) if length is None else length).to_bytes(8, "little") + frame


def lz4(content: bytes, *, length: int | None = None) -> bytes:
    block: bytes = pa.Codec("lz4_raw").compress(content, asbytes=True)
    return (len(content) if length is None else length).to_bytes(4, "little") + block


@pytest.mark.parametrize("content", [TEXT, b"x", b""])
@pytest.mark.parametrize(
    ("scheme", "stored"),
    [
        ("zstd", zstd),
        ("zstd", lambda content: zstd(content, with_size=False)),
        ("zstd", lambda content: zstd(content)[8:]),
        ("zstd", lambda content: zstd(content, with_size=False)[8:]),
        ("lz4", lz4),
        ("none", bytes),
    ],
    ids=["zstd", "zstd-streamed", "zstd-bare", "zstd-bare-streamed", "lz4", "none"],
)
def test_content_comes_back(scheme, stored, content: bytes) -> None:
    assert decompress(scheme, memoryview(stored(content)), LIMIT) == content


@pytest.mark.parametrize("scheme", ["zstd", "lz4", "none"])
def test_an_empty_buffer_is_empty_content(scheme: str) -> None:
    assert decompress(scheme, memoryview(b""), 0) == b""


@pytest.mark.parametrize(
    ("scheme", "data"),
    [
        ("zstd", zstd(TEXT)),
        ("zstd", zstd(TEXT, with_size=False)[8:]),
        ("zstd", zstd(b"x", length=1 << 62)),
        ("lz4", lz4(TEXT)),
        ("lz4", lz4(b"x", length=(1 << 32) - 1)),
        ("none", TEXT),
    ],
)
def test_content_beyond_the_limit_is_refused(scheme: str, data: bytes) -> None:
    with pytest.raises(CorruptError):
        decompress(scheme, memoryview(data), LIMIT - 1)


@pytest.mark.parametrize(
    ("scheme", "data"),
    [
        ("zstd", zstd(TEXT, length=len(TEXT) - 1)),
        ("zstd", zstd(TEXT, length=len(TEXT) + 1)),
        ("zstd", zstd(TEXT, with_size=False, length=len(TEXT) + 1)),
        ("zstd", zstd(TEXT)[:-5]),
        ("zstd", zstd(TEXT, with_size=False)[:-5]),
        ("zstd", b"\x10" + bytes(40)),
        ("zstd", b"abc"),
        ("lz4", lz4(TEXT, length=len(TEXT) - 1)),
        ("lz4", lz4(TEXT, length=len(TEXT) + 1)),
        ("lz4", lz4(TEXT)[:-3]),
        ("lz4", b"\x01\x00"),
    ],
)
def test_damage_is_refused(scheme: str, data: bytes) -> None:
    with pytest.raises(CorruptError):
        decompress(scheme, memoryview(data), 1 << 20)


def test_a_claim_that_no_compression_can_reach_is_refused_before_allocating() -> None:
    with pytest.raises(CorruptError, match="at most"):
        decompress("zstd", memoryview(zstd(b"x", length=1 << 50)), 1 << 60)


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(UnsupportedError, match="brotli"):
        decompress("brotli", memoryview(b"abc"), 10)
