"""Decompress buffers.

==========  ====================================================================
``zstd``    ``u64`` length, then one zstd frame; or the bare frame alone
``lz4``     ``u32`` length, then one raw LZ4 block (not the LZ4 frame format)
``none``    the bytes themselves
==========  ====================================================================

An empty buffer stands for an empty buffer. A claimed length is believed only up to the limit the
caller knows from elsewhere, and only when the decompressor agrees with it.
"""

from collections import deque
from functools import cache

import pyarrow as pa
import zstandard

from lancetable.errors import CorruptError, ShortageError, UnsupportedError
from lancetable.format.limits import read_limits

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UNUSED_DESCRIPTOR_BIT = 0x10
_LZ4_MAX_RATIO = 255
# A block of 128 KiB that repeats one byte takes four bytes.
_ZSTD_MAX_RATIO = 1 << 15
_STREAM_STEP = 1 << 16

# Making a decompressor costs more than using it on a small chunk. Taking one from a deque and
# putting it back are single steps, so no two threads ever hold the same one.
_idle: deque[zstandard.ZstdDecompressor] = deque(maxlen=32)


def decompress(scheme: str, data: memoryview, limit: int) -> bytes:
    """Return the content of a compressed buffer.

    Args:
        scheme: ``zstd``, ``lz4`` or ``none``.
        data: the compressed buffer with its length prefix.
        limit: the most bytes the content may have.

    Raises:
        CorruptError: the buffer is damaged, or its content is larger than the limit.
        LimitError: the content is larger than a page may be.
        UnsupportedError: the scheme is unknown.
    """
    if scheme not in {"zstd", "lz4", "none", ""}:
        raise UnsupportedError(
            f"buffers compressed with {scheme!r} cannot be read, only zstd, lz4 and none"
        )
    if not len(data):
        return b""
    if scheme == "zstd":
        return _zstd(data, limit)
    if scheme == "lz4":
        return _lz4(data, limit)
    _check_limit(len(data), limit)
    return bytes(data)


def _check_limit(length: int, limit: int) -> None:
    if length > limit:
        raise CorruptError(f"a compressed buffer claims {length} bytes, at most {limit} can be")
    read_limits().check_buffer(length)


def _is_bare_frame(data: memoryview) -> bool:
    if len(data) < 8:
        return True
    return bytes(data[:4]) == _ZSTD_MAGIC and not data[4] & _UNUSED_DESCRIPTOR_BIT


def _zstd(data: memoryview, limit: int) -> bytes:
    limit = min(limit, len(data) * _ZSTD_MAX_RATIO)
    if _is_bare_frame(data):
        return _zstd_frame(data, limit)
    length = int.from_bytes(data[:8], "little")
    _check_limit(length, limit)
    content = _zstd_frame(data[8:], length)
    if len(content) != length:
        raise CorruptError(f"a zstd buffer claims {length} bytes and holds {len(content)}")
    return content


def _zstd_frame(frame: memoryview, limit: int) -> bytes:
    try:
        worker = _idle.pop()
    except IndexError:
        worker = zstandard.ZstdDecompressor()
    try:
        claimed = zstandard.frame_content_size(frame)
        if claimed < 0:
            content = _zstd_stream(worker, frame, limit)
        else:
            _check_limit(claimed, limit)
            content = worker.decompress(frame)
    except MemoryError as error:
        raise ShortageError(f"not enough memory to expand a zstd buffer ({error})") from None
    except zstandard.ZstdError as error:
        raise CorruptError(f"a zstd buffer is damaged ({error})") from None
    _idle.append(worker)
    return content


def _zstd_stream(worker: zstandard.ZstdDecompressor, frame: memoryview, limit: int) -> bytes:
    content = bytearray()
    with worker.stream_reader(frame) as reader:
        while piece := reader.read(_STREAM_STEP):
            content += piece
            _check_limit(len(content), limit)
    return bytes(content)


@cache
def _lz4_codec() -> pa.Codec:
    return pa.Codec("lz4_raw")


def _lz4(data: memoryview, limit: int) -> bytes:
    if len(data) < 4:
        raise CorruptError(f"an lz4 buffer of {len(data)} bytes has no room for its length")
    length = int.from_bytes(data[:4], "little")
    _check_limit(length, min(limit, (len(data) - 4) * _LZ4_MAX_RATIO))
    if length == 0:
        return b""
    block = pa.py_buffer(data[4:])
    try:
        content: bytes = _lz4_codec().decompress(block, decompressed_size=length, asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise CorruptError(f"an lz4 buffer is damaged ({error})") from None
    _check_lz4_length(block, length)
    return content


def _check_lz4_length(block: pa.Buffer, length: int) -> None:
    # The codec does not say how much it wrote, and leaves the rest of its output uninitialised
    # when the block is shorter than claimed. Only a block that does not fit into one byte less
    # has the claimed length.
    try:
        _lz4_codec().decompress(block, decompressed_size=length - 1, asbytes=True)
    except (OSError, pa.ArrowException):
        return
    raise CorruptError(f"an lz4 buffer claims {length} bytes and holds fewer")
