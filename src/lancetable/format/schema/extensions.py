"""Read the metadata of an extension type.

Types written in Python can be asked. Those that are built into Arrow, such as tensors of a fixed
shape, tell it only when they are handed over by the C data interface:

=============  ========================================================
metadata       content
=============  ========================================================
i32            number of pairs
per pair       i32 length of the key, key, i32 length of the value, value
=============  ========================================================
"""

import ctypes

import pyarrow as pa

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
