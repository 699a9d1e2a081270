"""Write the payloads of blob columns when a data file is written.

Payloads leave the rows before pages are made: the file, or a side file, gets the bytes, the column
keeps a descriptor. In the first generation every payload goes into the data file itself. In the
second the size decides:

==========================  ======================================================
size                        place
==========================  ======================================================
up to 64 KiB                the data file, each payload on a 64-byte boundary
up to 4 MiB                 a side file shared by many payloads
more                        a side file of its own
``uri`` instead of bytes    nowhere: only the reference is stored
==========================  ======================================================

Metadata of the field moves these limits.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import InputError, SchemaError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.build.blocks import VariableValues, variable_values
from lancetable.format.encoding.build.shred import valid_mask
from lancetable.format.schema.model import BLOB_KEY, BLOB_V2, EXTENSION_NAME, Field
from lancetable.format.schema.types import BLOB_V1_TYPE, BLOB_V2_TYPE, arrow_field, arrow_type
from lancetable.store import Bytes, WritableFile

INLINE, PACKED, DEDICATED, EXTERNAL = range(4)
INLINE_BYTES = 64 * 1024
DEDICATED_BYTES = 4 * 1024 * 1024
PACK_FILE_BYTES = 1024 * 1024 * 1024
_BINARY = (pa.large_binary(), pa.binary(), pa.large_string(), pa.string())
_PARTS = ("data", "uri", "position", "size")

PutInline = Callable[[Sequence[Bytes]], list[int]]
CreateSidecar = Callable[[int], WritableFile]
Mask = npt.NDArray[np.bool_]


class BlobLimits(NamedTuple):
    """Up to which size a payload is stored inline, shares a file, and how large such files get."""

    inline: int = INLINE_BYTES
    dedicated: int = DEDICATED_BYTES
    pack_file: int = PACK_FILE_BYTES


def limits_of(field: Field) -> BlobLimits:
    """Read the limits of a blob column.

    Raises:
        InputError: one of them is no number of bytes.
    """
    found = BlobLimits()
    for name, key in (("inline", "inline"), ("dedicated", "dedicated"), ("pack_file", "pack-file")):
        option = f"lance-encoding:blob-{key}-size-threshold"
        text = field.metadata.get(option)
        if text is None:
            continue
        if not (text.isascii() and text.isdigit()):
            raise InputError(f"column {field.name!r}: {option} is {text!r}; use a number of bytes")
        found = found._replace(**{name: int(text)})
    return found


def second_generation(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which marked binary columns are blobs of the second generation.

    Files of version 2.2 have no others.
    """
    return pa.schema([_second(field) for field in schema], schema.metadata)


def _is_true(value: bytes | None) -> bool:
    return value is not None and value.strip().lower() == b"true"


def _second(field: pa.Field) -> pa.Field:
    metadata = dict(field.metadata or {})
    if field.type in _BINARY[:2] and _is_true(metadata.get(BLOB_KEY.encode())):
        del metadata[BLOB_KEY.encode()]
        metadata[EXTENSION_NAME.encode()] = BLOB_V2.encode()
        parts = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])
        return pa.field(field.name, parts, field.nullable, metadata)
    type_ = field.type
    if pa.types.is_struct(type_):
        return field.with_type(pa.struct([_second(child) for child in type_]))
    if pa.types.is_list(type_):
        return field.with_type(pa.list_(_second(type_.value_field)))
    if pa.types.is_large_list(type_):
        return field.with_type(pa.large_list(_second(type_.value_field)))
    return field


@lru_cache(maxsize=4096)
def has_blobs(field: Field) -> bool:
    """Return whether there are payloads at or below a field."""
    return any(part.is_blob for part in field.walk())


def written_type(field: Field, found: pa.DataType) -> pa.DataType:
    """Return the type in which the rows of a field are taken, given the type they have.

    It is the storage type, except that blobs come as bytes or as references.
    """
    found = found.storage_type if isinstance(found, pa.BaseExtensionType) else found
    if field.is_blob:
        _check_input(field, found)
        return found
    if not has_blobs(field) or found.num_fields != len(field.children):
        return arrow_type(field)
    children = [
        arrow_field(child).with_type(written_type(child, found.field(number).type))
        for number, child in enumerate(field.children)
    ]
    if field.logical_type == "struct":
        return pa.struct(children)
    return pa.large_list(children[0]) if pa.types.is_large_list(found) else pa.list_(children[0])


def _check_input(field: Field, found: pa.DataType) -> None:
    if found in _BINARY:
        return
    if field.is_blob_v2 and pa.types.is_struct(found):
        names = {part.name for part in found}
        if names <= set(_PARTS) and names & {"data", "uri"}:
            return
    wanted = "binary or a struct of data and uri" if field.is_blob_v2 else "binary"
    raise SchemaError(f"blob column {field.name!r} takes {wanted}, the data has {found}")


class BlobStorage:
    """The payloads of one data file, inline and in side files."""

    def __init__(self, put_inline: PutInline, create: CreateSidecar | None) -> None:
        self._put_inline = put_inline
        self._create = create
        self._sidecars: list[WritableFile] = []
        self._packs: dict[int, _Pack] = {}

    def place(self, field: Field, array: pa.Array) -> pa.Array:
        """Store the payloads of some rows; return the rows with descriptors instead."""
        if field.is_blob:
            place = self._second if field.is_blob_v2 else self._first
            return place(field, array)
        if not has_blobs(field):
            return array
        mask = array.is_null() if array.null_count else None
        if field.logical_type == "struct":
            # Flattening also hides payloads of structs that are null.
            children = [
                self.place(child, values)
                for child, values in zip(field.children, array.flatten(), strict=True)
            ]
            fields = [arrow_field(child) for child in field.children]
            return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
        if not field.logical_type.startswith(("list", "large_list")):
            raise SchemaError(f"column {field.name!r}: blobs cannot be inside a map")
        items = self.place(field.children[0], array.flatten())
        return _lists(arrow_type(field), array, items, mask)

    def finish(self) -> None:
        """Close the side files that are still open."""
        for pack in self._packs.values():
            pack.file.close()
        self._packs.clear()

    def abort(self) -> None:
        """Remove all side files."""
        for sidecar in self._sidecars:
            sidecar.abort()

    def _first(self, _: Field, array: pa.Array) -> pa.Array:
        payloads, valid = _payloads(array)
        table = np.zeros((2, len(array)), np.uint64)
        sizes = np.diff(payloads.offsets)
        stored = np.flatnonzero(sizes)
        table[0, stored] = self._put_inline(_views(payloads, stored))
        table[1] = sizes
        columns = [_numbers(row, pa.uint64()) for row in table]
        return _structs(columns, BLOB_V1_TYPE, valid)

    def _second(self, field: Field, array: pa.Array) -> pa.Array:
        limits = limits_of(field)
        source = _references(field, array)
        payloads = source.payloads
        sizes = np.diff(payloads.offsets)
        kinds = np.full(len(array), INLINE, np.uint8)
        kinds[sizes > limits.inline] = PACKED
        kinds[sizes > limits.dedicated] = DEDICATED
        kinds[source.is_external] = EXTERNAL
        positions, ids = source.positions.copy(), np.zeros(len(array), np.uint32)
        inline = np.flatnonzero((kinds == INLINE) & source.valid)
        positions[inline] = self._put_inline(_views(payloads, inline))
        for row in np.flatnonzero((kinds == PACKED) | (kinds == DEDICATED)).tolist():
            view = next(_views_of(payloads, [row]))
            if kinds[row] == DEDICATED:
                ids[row] = self._put_alone(field, view)
            else:
                ids[row], positions[row] = self._put_packed(field, view, limits)
        sizes = np.where(source.is_external, source.sizes, sizes)
        columns = [
            _numbers(kinds, pa.uint8()),
            _numbers(positions, pa.uint64()),
            _numbers(sizes.astype(np.uint64), pa.uint64()),
            _numbers(ids, pa.uint32()),
            source.uris,
        ]
        return _structs(columns, BLOB_V2_TYPE, None if source.valid.all() else source.valid)

    def _put_alone(self, field: Field, payload: Bytes) -> int:
        blob_id, file = self._new_sidecar(field, len(payload))
        file.write([payload])
        file.close()
        return blob_id

    def _put_packed(self, field: Field, payload: Bytes, limits: BlobLimits) -> tuple[int, int]:
        pack = self._packs.get(field.id)
        if pack is not None and pack.size + len(payload) > limits.pack_file:
            pack.file.close()
            pack = None
        if pack is None:
            pack = _Pack(*self._new_sidecar(field, len(payload)), 0)
        pack.file.write([payload])
        self._packs[field.id] = pack._replace(size=pack.size + len(payload))
        return pack.blob_id, pack.size

    def _new_sidecar(self, field: Field, size: int) -> tuple[int, WritableFile]:
        if self._create is None:
            raise InputError(
                f"column {field.name!r}: a blob of {size} bytes needs a file beside the data file,"
                " which cannot be made here"
            )
        blob_id = len(self._sidecars) + 1
        file = self._create(blob_id)
        self._sidecars.append(file)
        return blob_id, file


class _Pack(NamedTuple):
    """A side file that takes more payloads."""

    blob_id: int
    file: WritableFile
    size: int


class _References(NamedTuple):
    """Blobs as they are given: bytes, or where to find them."""

    payloads: VariableValues
    uris: pa.Array
    positions: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint64]
    is_external: Mask
    valid: Mask


def _payloads(array: pa.Array) -> tuple[VariableValues, Mask | None]:
    valid = valid_mask(array)
    if valid is None:
        return variable_values(array), None
    # Bytes under nulls would be stored for nothing.
    return variable_values(array.fill_null("" if "string" in str(array.type) else b"")), valid


def _references(field: Field, array: pa.Array) -> _References:
    rows = len(array)
    if not pa.types.is_struct(array.type):
        array = pa.StructArray.from_arrays([array], names=["data"], mask=None)
        valid = valid_mask(array.field(0))
    else:
        valid = valid_mask(array)
    parts = dict(zip([part.name for part in array.type], array.flatten(), strict=True))
    data = parts.get("data", pa.nulls(rows, pa.large_binary()))
    uris = parts.get("uri", pa.nulls(rows, pa.string())).cast(pa.string())
    payloads, has_data = _payloads(data)
    is_external = np.asarray(uris.is_valid().to_numpy(zero_copy_only=False))
    given = np.ones(rows, np.bool_) if has_data is None else has_data
    is_valid = np.ones(rows, np.bool_) if valid is None else valid
    if (is_valid & (given == is_external)).any():
        row = int(np.argmax(is_valid & (given == is_external)))
        raise InputError(
            f"blob column {field.name!r} needs either data or a uri, row {row} has"
            f" {'both' if given[row] else 'neither'}"
        )
    numbers = [
        parts.get(name, pa.nulls(rows, pa.uint64())).fill_null(0).cast(pa.uint64())
        for name in ("position", "size")
    ]
    positions, sizes = (np.asarray(part.to_numpy(zero_copy_only=False)) for part in numbers)
    return _References(payloads, uris.fill_null(""), positions, sizes, is_external, is_valid)


def _views(payloads: VariableValues, rows: Integers) -> list[Bytes]:
    return list(_views_of(payloads, rows.tolist()))


def _views_of(payloads: VariableValues, rows: list[int]) -> Iterator[Bytes]:
    view = payloads.data.data
    for row in rows:
        yield view[int(payloads.offsets[row]) : int(payloads.offsets[row + 1])]


def _numbers(values: npt.NDArray[Any], type_: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(
        type_, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))]
    )


def _structs(columns: list[pa.Array], type_: pa.DataType, valid: Mask | None) -> pa.Array:
    validity = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(type_, len(columns[0]), [validity], children=columns)


def _lists(type_: pa.DataType, array: pa.Array, items: pa.Array, mask: pa.Array | None) -> pa.Array:
    """Return lists of the same lengths around other items."""
    lengths = np.diff(array.offsets.to_numpy(zero_copy_only=False))
    if mask is not None:
        lengths[mask.to_numpy(zero_copy_only=False)] = 0
    is_large = pa.types.is_large_list(type_)
    offsets = np.zeros(len(array) + 1, np.int64 if is_large else np.int32)
    np.cumsum(lengths, out=offsets[1:])
    valid = valid_mask(array)
    validity = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(type_, len(array), buffers, children=[items])
