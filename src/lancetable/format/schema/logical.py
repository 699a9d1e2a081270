"""Translate between logical type texts and Arrow types, and read metadata of extension types.

=====================================  ==============================================
text                                   type
=====================================  ==============================================
``int32``, ``string``, …               the table ``SIMPLE`` below
``decimal:128:10:-2``                  bits, precision, scale
``timestamp:us:+02:00``                unit and zone; ``-`` is no zone
``fixed_size_binary:16``               bytes per value
``fixed_size_list:{element}:128``      element of any childless type; the size comes last
``dict:{values}:{indices}:{ordered}``  dictionary
``list``, ``struct``, ``map``, …       described by child fields, not here
=====================================  ==============================================

Extension types written in Python return their metadata. Those that are built into Arrow, such as
tensors of a fixed shape, export it only through the C data interface:

=============  ========================================================
metadata       content
=============  ========================================================
i32            number of pairs
per pair       i32 length of the key, key, i32 length of the value, value
=============  ========================================================
"""

import ctypes
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from lancetable.errors import CorruptError, SchemaError, UnsupportedError
from lancetable.format.schema.model import BFLOAT16, EXTENSION_METADATA, EXTENSION_NAME

MAX_SIZE = 2**31 - 1
MAX_NESTING = 64
MAX_TEXT = 2048
_UNITS = ("s", "ms", "us", "ns")

SIMPLE = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
    "json": pa.string(),
    "blob": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "time:s": pa.time32("s"),
    "time:ms": pa.time32("ms"),
    "time:us": pa.time64("us"),
    "time:ns": pa.time64("ns"),
    **{f"duration:{unit}": pa.duration(unit) for unit in _UNITS},
    # Before zones were recorded a timestamp ended with its unit.
    **{f"timestamp:{unit}": pa.timestamp(unit) for unit in _UNITS},
    BFLOAT16: pa.binary(2),
}

_READ_ONLY = {"json", "blob", BFLOAT16, *(key for key in SIMPLE if key.startswith("time:"))} | {
    f"timestamp:{unit}" for unit in _UNITS
}
_TEXTS = {arrow: text for text, arrow in SIMPLE.items() if text not in _READ_ONLY} | {
    pa.string_view(): "string",
    pa.binary_view(): "binary",
}

_NO_FIXED_SIZE = {
    *("list", "list.struct", "large_list", "large_list.struct", "map", "null"),
    *("string", "binary", "large_string", "large_binary"),
}

BFLOAT16_ITEM = pa.field(
    "item", pa.binary(2), metadata={EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""}
)


def childless_type(text: str, name: str) -> pa.DataType:
    """Return the Arrow type of a field without child fields.

    Raises:
        UnsupportedError: the text names a type that is not known; ``name`` is the field's.
        CorruptError: the text names a known type with impossible parameters.
    """
    try:
        found = _parse(text)
    except CorruptError as cause:
        raise CorruptError(f"field {name!r}: {cause.message}") from None
    if found is None:
        raise UnsupportedError(
            f"field {name!r} has the logical type {text!r}, which this release does not know; "
            "leave the column out or use a newer release"
        )
    return found


@lru_cache(maxsize=512)
def _parse(text: str) -> pa.DataType | None:
    """Return the type, or None when nothing is known about the text."""
    simple = SIMPLE.get(text)
    if simple is not None:
        return simple
    if len(text) > MAX_TEXT:
        raise CorruptError(f"{text[:40]!r}… is too long for a logical type")
    head, _, rest = text.partition(":")
    parse = _PARAMETRIC.get(head)
    return None if parse is None else parse(text, rest)


def _decimal(text: str, rest: str) -> pa.DataType:
    parts = rest.split(":")
    if len(parts) == 2:  # the oldest writers knew one width
        parts.insert(0, "128")
    try:
        bits, precision, scale = (int(part) for part in parts)
    except ValueError:
        raise CorruptError(f"{text!r} is not decimal:bits:precision:scale") from None
    most = {128: 38, 256: 76}.get(bits)
    if most is None or not 1 <= precision <= most or not -128 <= scale <= 127:
        raise CorruptError(f"{text!r} is not a decimal of 128 or 256 bits within their digits")
    return pa.decimal128(precision, scale) if bits == 128 else pa.decimal256(precision, scale)


def _timestamp(text: str, rest: str) -> pa.DataType:
    unit, _, zone = rest.partition(":")
    if unit not in _UNITS or not zone or "\0" in zone:
        raise CorruptError(f"{text!r} is not timestamp:unit:zone with unit s, ms, us or ns")
    return pa.timestamp(unit, tz=None if zone == "-" else zone)


def _fixed_size_binary(text: str, rest: str) -> pa.DataType:
    return pa.binary(_size(text, rest))


def _size(text: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or int(digits) > MAX_SIZE:
        raise CorruptError(f"{text!r} does not end in a size from 0 to {MAX_SIZE}")
    return int(digits)


def split_fixed_size_list(text: str) -> tuple[str, int]:
    """Split ``fixed_size_list:{element}:{size}`` into element text and size.

    Raises:
        CorruptError: the text is not of that form.
    """
    element, _, digits = text.partition(":")[2].rpartition(":")
    if not element:
        raise CorruptError(f"{text!r} is not fixed_size_list:element:size")
    return element, _size(text, digits)


def _fixed_size_list(text: str, _: str) -> pa.DataType | None:
    """Build from the inside out, so that a hostile text cannot exhaust the stack."""
    sizes: list[int] = []
    element, total = text, 1
    while element.startswith("fixed_size_list:"):
        element, size = split_fixed_size_list(element)
        sizes.append(size)
        total *= max(size, 1)
        if total > MAX_SIZE or len(sizes) > MAX_NESTING:
            raise CorruptError(f"{text[:80]!r} asks for more than {MAX_SIZE} values in one row")
    if element == BFLOAT16:
        return _nest(BFLOAT16_ITEM, sizes)
    inner = _parse(element)
    return None if inner is None else _nest(pa.field("item", inner), sizes)


def _nest(item: pa.Field, sizes: list[int]) -> pa.DataType:
    for size in reversed(sizes[1:]):
        item = pa.field("item", pa.list_(item, size))
    return pa.list_(item, sizes[0])


def _dictionary(text: str, rest: str) -> pa.DataType | None:
    parts = rest.rsplit(":", 2)
    if len(parts) != 3 or parts[0].startswith("dict") or parts[2] not in {"true", "false"}:
        raise CorruptError(f"{text!r} is not dict:values:indices:ordered")
    values, indices = _parse(parts[0]), SIMPLE.get(parts[1])
    if indices is None or not pa.types.is_integer(indices):
        raise CorruptError(f"{text!r} does not name an integer type for its indices")
    return None if values is None else pa.dictionary(indices, values, ordered=parts[2] == "true")


_PARAMETRIC: dict[str, Callable[[str, str], pa.DataType | None]] = {
    "decimal": _decimal,
    "timestamp": _timestamp,
    "fixed_size_binary": _fixed_size_binary,
    "fixed_size_list": _fixed_size_list,
    "dict": _dictionary,
}


def logical_type(arrow: pa.DataType, name: str) -> str:
    """Return the text of an Arrow type; ``name`` is the field's, for the message.

    Raises:
        SchemaError: the format has no such type.
    """
    text = None
    if not isinstance(arrow, pa.BaseExtensionType):  # which may have no hash
        text = _TEXTS.get(arrow) or _container_text(arrow) or _parametric_text(arrow, name)
    if text is None:
        raise SchemaError(
            f"column {name!r} has type {arrow}, which the format cannot store; cast it first"
        )
    return text


def _container_text(arrow: pa.DataType) -> str | None:
    types = pa.types
    if types.is_struct(arrow):
        return "struct"
    if types.is_map(arrow):
        return None if arrow.keys_sorted else "map"
    if types.is_list(arrow) or types.is_large_list(arrow):
        head = "list" if types.is_list(arrow) else "large_list"
        return f"{head}.struct" if types.is_struct(arrow.value_type) else head
    return None


def _parametric_text(arrow: pa.DataType, name: str) -> str | None:
    types = pa.types
    if types.is_decimal128(arrow) or types.is_decimal256(arrow):
        return f"decimal:{arrow.bit_width}:{arrow.precision}:{arrow.scale}"
    if types.is_timestamp(arrow):
        return f"timestamp:{arrow.unit}:{arrow.tz or '-'}"
    if types.is_fixed_size_binary(arrow):
        return f"fixed_size_binary:{arrow.byte_width}"
    if types.is_dictionary(arrow):
        ordered = str(arrow.ordered).lower()
        values, indices = logical_type(arrow.value_type, name), _TEXTS[arrow.index_type]
        return f"dict:{values}:{indices}:{ordered}"
    if types.is_fixed_size_list(arrow):
        return _fixed_size_list_text(arrow, name)
    return None


def _extension_name(field: pa.Field) -> str:
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    return str((field.metadata or {}).get(EXTENSION_NAME.encode(), b"").decode("utf-8", "replace"))


def _fixed_size_list_text(arrow: pa.DataType, name: str) -> str | None:
    item = arrow.value_field
    if _extension_name(item) == BFLOAT16:
        return f"fixed_size_list:{BFLOAT16}:{arrow.list_size}"
    element = logical_type(item.type, name)
    if element in _NO_FIXED_SIZE or element.startswith(("dict:", "fixed_size_list:struct:")):
        return None
    return f"fixed_size_list:{element}:{arrow.list_size}"


_SIZE = 4


class _ArrowSchema(ctypes.Structure):
    """The struct of the C data interface; it frees itself through its last but one member."""


_ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_ArrowSchema))),
    ("private_data", ctypes.c_void_p),
]


def extension_metadata(extension: pa.BaseExtensionType) -> bytes:
    """Return what an extension type needs, beside its name and storage, to be made again."""
    if hasattr(extension, "__arrow_ext_serialize__"):
        return bytes(extension.__arrow_ext_serialize__())
    exported = _ArrowSchema()
    extension._export_to_c(ctypes.addressof(exported))  # noqa: SLF001 - its only way out
    try:
        return _pairs(exported.metadata).get(b"ARROW:extension:metadata", b"")
    finally:
        exported.release(ctypes.byref(exported))


def _pairs(address: int | None) -> dict[bytes, bytes]:
    if not address:
        return {}
    count = ctypes.c_int32.from_address(address).value
    address += _SIZE
    texts = []
    for _ in range(2 * count):
        length = ctypes.c_int32.from_address(address).value
        texts.append(ctypes.string_at(address + _SIZE, length))
        address += _SIZE + length
    return dict(zip(texts[::2], texts[1::2], strict=True))
