"""One small page for each compression, made by hand: what every compression is held to."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import zstandard

from lancetable.format.encoding.kernels import bitpack
from tests.handmade import Column, Compression, Layout, Page, flat, variable

ITEM, NULLABLE_ITEM = 1, 3
NUMBERS = list(range(40))
WORDS = ["", "a", "bcd", "bcd", "efghij", "klm"]


class Example(NamedTuple):
    """A page of one column and the values it stands for."""

    name: str
    version: str
    type: str
    page: Page
    expected: Sequence[object]
    metadata: Mapping[str, bytes] = MappingProxyType({})
    children: Sequence[Column] = ()

    def fields(self) -> list[Column]:
        """Return the schema."""
        return [Column("x", self.type, metadata=self.metadata), *self.children]


def _padded(data: bytes) -> bytes:
    return data + b"\xfe" * (-len(data) % 8)


def _mini_block(rows: int, compression: Compression, buffers: Sequence[bytes], **more: Any) -> Page:
    """Return a page of one chunk without levels, 2.2."""
    sizes = b"".join(len(buffer).to_bytes(4, "little") for buffer in buffers)
    chunk = _padded(b"\0\0" + sizes) + b"".join(map(_padded, buffers))
    extra = more.pop("extra", [])
    layout = Layout(
        mini_block_layout={
            "value_compression": compression,
            "layers": [ITEM],
            "num_items": rows,
            "num_buffers": len(buffers),
            "has_large_chunk": True,
            **more,
        }
    )
    word = ((len(chunk) // 8 - 1) << 4).to_bytes(4, "little")
    return Page(rows, layout, [word, chunk, *extra])


def _numbers(kind: str = "<i4") -> bytes:
    return np.array(NUMBERS, kind).tobytes()


def _inline_bitpacked() -> bytes:
    block = np.zeros((1, 1024), np.uint32)
    block[0, : len(NUMBERS)] = NUMBERS
    return (6).to_bytes(4, "little") + bitpack.pack(block, 6).tobytes()


def _texts(words: Sequence[bytes]) -> bytes:
    start = 4 * (len(words) + 1)
    ends = start + np.cumsum([0, *map(len, words)])
    return ends.astype("<u4").tobytes() + b"".join(words)


def _symbol_table() -> bytes:
    """Three symbols: ``bcd``, ``efgh`` and ``k``."""
    symbols = [b"bcd", b"efgh", b"k"]
    header = (0x46535354 << 32 | 1 << 24 | len(symbols)).to_bytes(8, "little")
    body = b"".join(symbol.ljust(8, b"\0") for symbol in symbols)
    return (header + body + bytes(map(len, symbols))).ljust(2312, b"\0")


def _fsst() -> Page:
    codes = [b"", b"\xffa", b"\x00", b"\x00", b"\x01\xffi\xffj", b"\x02\xffl\xffm"]
    coded = Compression(fsst={"symbol_table": _symbol_table(), "values": variable()})
    return _mini_block(len(WORDS), coded, [_texts(codes)])


def _general(scheme: int) -> Compression:
    return Compression(general={"compression": {"scheme": scheme}, "values": flat(32)})


def _zstd() -> Page:
    packed = (160).to_bytes(8, "little") + zstandard.compress(_numbers())
    return _mini_block(40, _general(2), [packed])


def _lz4() -> Page:
    packed = (160).to_bytes(4, "little") + pa.Codec("lz4_raw").compress(_numbers(), asbytes=True)
    return _mini_block(40, _general(1), [packed])


def _split() -> Page:
    rows = np.frombuffer(_numbers(), np.uint8).reshape(40, 4)
    stream = np.ascontiguousarray(rows.T).tobytes()
    return _mini_block(40, Compression(byte_stream_split={"values": flat(32)}), [stream])


def _levels() -> Page:
    """Values beside levels that are packed out of line: 1 bit, one block and a raw tail."""
    rows = 1030
    levels = np.arange(rows, dtype=np.uint16) % 2
    packed = bitpack.pack(levels[:1024].reshape(1, 1024), 1).tobytes() + levels[1024:].tobytes()
    outside = Compression(
        out_of_line_bitpacking={"uncompressed_bits_per_value": 16, "values": flat(1)}
    )
    values = np.arange(rows, dtype=np.uint8).tobytes()
    header = rows.to_bytes(2, "little") + len(packed).to_bytes(2, "little")
    chunk = header + len(values).to_bytes(4, "little") + _padded(packed) + _padded(values)
    layout = Layout(
        mini_block_layout={
            "def_compression": outside,
            "value_compression": flat(8),
            "layers": [NULLABLE_ITEM],
            "num_items": rows,
            "num_buffers": 1,
            "has_large_chunk": True,
        }
    )
    return Page(rows, layout, [((len(chunk) // 8 - 1) << 4).to_bytes(4, "little"), chunk])


def _zipped() -> Page:
    rows = [b"\0" + len(word).to_bytes(4, "little") + word.encode() for word in WORDS]
    ends = np.cumsum([0, *map(len, rows)]).astype(np.uint8)
    layout = Layout(
        full_zip_layout={
            "bits_def": 1,
            "bits_per_offset": 32,
            "num_items": len(WORDS),
            "num_visible_items": len(WORDS),
            "value_compression": variable(),
            "layers": [NULLABLE_ITEM],
        }
    )
    return Page(len(WORDS), layout, [b"".join(rows), ends.tobytes()])


def _packed() -> Page:
    rows = np.zeros(40, np.dtype([("a", "<i4"), ("b", "<i8")]))
    rows["a"], rows["b"] = NUMBERS, np.array(NUMBERS) * 3
    packed = Compression(packed_struct={"bits_per_value": [32, 64], "values": flat(96)})
    return _mini_block(40, packed, [rows.tobytes()])


def _variable_packed() -> Page:
    rows = [
        number.to_bytes(4, "little") + len(word).to_bytes(4, "little") + word.encode()
        for number, word in enumerate(WORDS)
    ]
    framed = [len(row).to_bytes(4, "little") + row for row in rows]
    ends = np.cumsum([0, *map(len, framed)]).astype(np.uint8)
    fields = [
        {"value": flat(32), "bits_per_value": 32},
        {"value": variable(), "bits_per_length": 32},
    ]
    layout = Layout(
        full_zip_layout={
            "bits_per_offset": 32,
            "num_items": len(WORDS),
            "num_visible_items": len(WORDS),
            "value_compression": Compression(variable_packed_struct={"fields": fields}),
            "layers": [ITEM],
        }
    )
    return Page(len(WORDS), layout, [b"".join(framed), ends.tobytes()])


def _dictionary() -> Page:
    items = b"".join(n.to_bytes(4, "little") for n in (32, 20, 0, 1, 4)) + b"abcd"
    return _mini_block(
        40,
        flat(8),
        [bytes(number % 2 for number in NUMBERS)],
        dictionary=variable(),
        num_dictionary_items=2,
        extra=[items],
    )


PACKED = {"lance-encoding:packed": b"true"}
_LISTS = Compression(fixed_size_list={"items_per_value": 4, "values": flat(16)})
_RUNS = Compression(rle={"values": flat(32), "run_lengths": flat(8)})
_INLINE = Compression(inline_bitpacking={"uncompressed_bits_per_value": 32})

EXAMPLES = [
    Example("flat", "2.2", "int32", _mini_block(40, flat(32), [_numbers()]), NUMBERS),
    Example(
        "flat bits",
        "2.2",
        "bool",
        _mini_block(12, flat(1), [b"\x55\x05"]),
        [True, False] * 6,
    ),
    Example(
        "variable",
        "2.2",
        "string",
        _mini_block(len(WORDS), variable(), [_texts([word.encode() for word in WORDS])]),
        WORDS,
    ),
    Example(
        "inline bitpacking",
        "2.2",
        "int32",
        _mini_block(40, _INLINE, [_inline_bitpacked()]),
        NUMBERS,
    ),
    Example(
        "out-of-line bitpacking",
        "2.2",
        "uint8",
        _levels(),
        [None if number % 2 else number % 256 for number in range(1030)],
    ),
    Example(
        "rle",
        "2.2",
        "int32",
        _mini_block(306, _RUNS, [np.array([7, 7, 9, 7], "<u4").tobytes(), b"\xff\x2d\x05\x01"]),
        [7] * 300 + [9] * 5 + [7],
    ),
    Example("byte stream split", "2.2", "int32", _split(), NUMBERS),
    Example("fsst", "2.2", "string", _fsst(), WORDS),
    Example("general zstd", "2.2", "int32", _zstd(), NUMBERS),
    Example("general lz4", "2.2", "int32", _lz4(), NUMBERS),
    Example("dictionary", "2.2", "string", _dictionary(), ["a", "bcd"] * 20),
    Example(
        "fixed size list",
        "2.2",
        "fixed_size_list:int16:4",
        _mini_block(10, _LISTS, [_numbers("<i2")]),
        [NUMBERS[start : start + 4] for start in range(0, 40, 4)],
    ),
    Example(
        "packed struct",
        "2.2",
        "struct",
        _packed(),
        [{"a": number, "b": number * 3} for number in NUMBERS],
        PACKED,
        [Column("a", "int32", 0), Column("b", "int64", 0)],
    ),
    Example(
        "variable packed struct",
        "2.2",
        "struct",
        _variable_packed(),
        [{"a": number, "b": word} for number, word in enumerate(WORDS)],
        PACKED,
        [Column("a", "int32", 0), Column("b", "string", 0)],
    ),
    Example("full-zip", "2.2", "string", _zipped(), WORDS),
]
