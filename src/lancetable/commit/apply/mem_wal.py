"""How far has the write-ahead log been merged: the part of its record that a commit changes.

The record is a message of which field 9 alone matters here: per shard ``{1: {1: 16 bytes},
2: generation}``. Everything else in it is kept byte by byte.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from lancetable.commit.transaction import CompactedSsTable
from lancetable.errors import CorruptError, InputError

_MERGED = 9
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


def with_generations(details: bytes, tables: Sequence[CompactedSsTable]) -> bytes:
    """Return the record after generations were merged.

    Raises:
        InputError: a generation is not newer than the one on record.
        CorruptError: the record is damaged.
    """
    merged: dict[bytes, int] = {}
    kept = bytearray()
    for number, payload, whole in _fields(details):
        if number == _MERGED and payload is not None:
            shard, generation = _entry(payload)
            merged[shard] = generation
        else:
            kept += whole
    for table in tables:
        shard = UUID(table.shard_id).bytes
        if table.generation <= merged.get(shard, 0):
            raise InputError(
                f"generation {table.generation} of shard {table.shard_id} is not newer than "
                f"generation {merged[shard]}, which was merged before"
            )
        merged[shard] = table.generation
    for shard, generation in merged.items():
        entry = _tagged(1, _tagged(1, shard)) + _varint(2 << 3 | _VARINT) + _varint(generation)
        kept += _tagged(_MERGED, entry)
    return bytes(kept)


def _entry(payload: bytes) -> tuple[bytes, int]:
    shard, generation = b"", 0
    for number, inner, whole in _fields(payload):
        if number == 1 and inner is not None:
            shard = next((id_ for at, id_, _ in _fields(inner) if at == 1 and id_), b"")
        elif number == 2 and inner is None:
            generation, _ = _read_varint(whole, 1)
    return shard, generation


def _fields(data: bytes) -> Iterator[tuple[int, bytes | None, bytes]]:
    """Yield number, payload of one with a length, and all bytes of each field."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        payload = None
        if kind == _VARINT:
            _, at = _read_varint(data, at)
        elif kind == _BYTES:
            size, at = _read_varint(data, at)
            payload = data[at : at + size]
            at += size
        elif kind in _FIXED_SIZES:
            at += _FIXED_SIZES[kind]
        else:
            raise CorruptError("the record of the write-ahead log is damaged")
        if at > len(data):
            raise CorruptError("the record of the write-ahead log is cut off")
        yield number, payload, data[start:at]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise CorruptError("the record of the write-ahead log is cut off")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tagged(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(payload)) + payload
