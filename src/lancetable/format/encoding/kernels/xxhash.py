"""XXH64 of many byte strings at once, for filters of keys and of values.

Without the compiled functions, strings of one length are hashed together, step by step, with the
arithmetic of arrays.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

Hashes = npt.NDArray[np.uint64]
_Bytes = npt.NDArray[np.uint8]

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_WORD = 2**64
_STRIPE = 32
_BYTES_AT_A_TIME = 1 << 22


def hash_binary(array: pa.LargeBinaryArray, seed: int = 0) -> Hashes:
    """Return the hash of each string; null counts as empty."""
    if not len(array):
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset :][: len(array) + 1]
    data = array.buffers()[2]
    if DLL is not None:
        found = np.empty(len(array), np.uint64)
        start = 0 if data is None else data.address
        DLL.lt_hash_texts(start, address(offsets), len(array), seed % _WORD, address(found))
        return found
    content = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    result = np.empty(len(array), np.uint64)
    order = np.argsort(lengths, kind="stable")
    edges = np.flatnonzero(np.diff(lengths[order], prepend=-1))
    for first, end in zip(edges.tolist(), [*edges[1:].tolist(), len(order)], strict=True):
        length = int(lengths[order[first]])
        step = max(_BYTES_AT_A_TIME // max(length, 1), 1)
        for at in range(first, end, step):
            rows = order[at : min(at + step, end)]
            matrix = content[starts[rows][:, None] + np.arange(length)]
            result[rows] = hash_matrix(matrix, seed)
    return result


def hash_words(words: Hashes, seed: int = 0) -> Hashes:
    """Return the hash of each number as eight bytes, the lowest first."""
    if DLL is not None:
        return _hash_wide(np.ascontiguousarray(words), 8, seed)
    start = np.uint64((seed + int(_P5) + 8) % _WORD)
    hashes = np.full(len(words), start, np.uint64)
    return _finish(_add_word(hashes, words))


def hash_matrix(matrix: _Bytes, seed: int = 0) -> Hashes:
    """Return the hash of each row of bytes."""
    count, length = matrix.shape
    if DLL is not None:
        return _hash_wide(np.ascontiguousarray(matrix), length, seed)
    at = 0
    if length >= _STRIPE:
        hashes, at = _stripes(matrix, seed)
    else:
        hashes = np.full(count, np.uint64((seed + int(_P5)) % _WORD), np.uint64)
    hashes = hashes + np.uint64(length)
    while at + 8 <= length:
        hashes = _add_word(hashes, _words(matrix, at, 8))
        at += 8
    if at + 4 <= length:
        hashes = _rotated(hashes ^ (_words(matrix, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    for place in range(at, length):
        hashes = _rotated(hashes ^ (matrix[:, place].astype(np.uint64) * _P5), 11) * _P1
    return _finish(hashes)


def _hash_wide(values: Hashes | _Bytes, width: int, seed: int) -> Hashes:
    found = np.empty(len(values), np.uint64)
    DLL.lt_hash_wide(address(values), width, len(values), seed % _WORD, address(found))
    return found


def _words(matrix: _Bytes, at: int, width: int) -> Hashes:
    part = np.ascontiguousarray(matrix[:, at : at + width])
    return part.view(f"<u{width}")[:, 0].astype(np.uint64)


def _stripes(matrix: _Bytes, seed: int) -> tuple[Hashes, int]:
    count, length = matrix.shape
    starts = (seed + int(_P1) + int(_P2), seed + int(_P2), seed, seed - int(_P1))
    lanes = [np.full(count, np.uint64(start % _WORD), np.uint64) for start in starts]
    at = 0
    while at + _STRIPE <= length:
        for number in range(4):
            lanes[number] = _round(lanes[number], _words(matrix, at + 8 * number, 8))
        at += _STRIPE
    hashes = np.zeros(count, np.uint64)
    for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True):
        hashes = hashes + _rotated(lane, turn)
    for lane in lanes:
        hashes = (hashes ^ _round(np.zeros(count, np.uint64), lane)) * _P1 + _P4
    return hashes, at


def _round(lane: Hashes, words: Hashes) -> Hashes:
    return _rotated(lane + words * _P2, 31) * _P1


def _add_word(hashes: Hashes, words: Hashes) -> Hashes:
    return _rotated(hashes ^ _round(np.zeros(len(words), np.uint64), words), 27) * _P1 + _P4


def _rotated(values: Hashes, turn: int) -> Hashes:
    return (values << np.uint64(turn)) | (values >> np.uint64(64 - turn))


def _finish(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))
