"""Build Arrow arrays from the wanted rows of a column of a 2.0 file.

Every struct and every list of the schema has a column of its own. That of a struct holds
nothing, since structs cannot be null here. That of a list holds where each list ends, counted in
the items of its page, so that the items of a page begin after those of all pages before it.

The first writers of such files stored strings as lists of bytes: the column of the field holds the
ends, the column behind it, which belongs to no field, the bytes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast, get_args

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.base import Column, Page, Reading, Rows
from lancetable.format.encoding.v20.arrays import read_array, read_packed
from lancetable.format.encoding.v20.fixed import without_nulls
from lancetable.format.encoding.v20.model import ArrayEncoding, ItemList, PackedStruct
from lancetable.format.encoding.v20.select import cover, together
from lancetable.format.encoding.v20.variable import Ends, check_int32, read_extents
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type

_LISTS = frozenset({"list", "list.struct", "large_list", "large_list.struct"})
_ENCODINGS = get_args(ArrayEncoding)

Columns = Mapping[int, Column]


def read_field(
    field: Field,
    columns: Columns,
    rows: Rows,
    packed: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
) -> Reading[list[pa.Array]]:
    """Return the wanted rows of a field, in chunks.

    JSON comes as the binary form that is stored, at any depth.

    Args:
        field: the field, or what is wanted of it: a struct may lack some of its children.
        columns: the columns of the file by field id.
        rows: the wanted rows.
        packed: the ids of the children of packed structs as the file stores them, by field id.
    """
    return (yield from _read(_as_stored(field, packed), columns, rows))


def _as_stored(field: Field, packed: Mapping[int, tuple[int, ...]]) -> Field:
    if field.is_json:
        return field._replace(logical_type="large_binary")
    if not field.children:
        return field
    children = tuple(_as_stored(child, packed) for child in field.children)
    if field.is_packed and field.id in packed:
        children = _with_places(field, children, packed[field.id])
    return field._replace(children=children)


def _with_places(
    field: Field, children: tuple[Field, ...], stored: tuple[int, ...]
) -> tuple[Field, ...]:
    """Return children of a packed struct numbered by their places in it."""
    missing = next((child for child in children if child.id not in stored), None)
    if missing is not None:
        raise CorruptError(
            f"packed struct {field.name!r} has no child with the field id {missing.id}"
        )
    return tuple(child._replace(id=field.id + 1 + stored.index(child.id)) for child in children)


def _read(field: Field, columns: Columns, rows: Rows) -> Reading[list[pa.Array]]:
    if not len(rows):
        return [pa.nulls(0, arrow_type(field))]
    if field.is_blob or field.is_packed:
        return (yield from _read_column(field, columns, rows))
    if field.logical_type == "struct":
        return (yield from _read_struct(field, columns, rows))
    if field.logical_type in _LISTS:
        return (yield from _read_lists(field, columns, rows))
    if field.children and not field.logical_type.startswith("fixed_size_list:"):
        raise UnsupportedError(
            f"field {field.name!r} of type {field.logical_type!r} cannot be in a 2.0 file"
        )
    if stores_bytes_apart(field, columns):
        return (yield from _read_split_strings(field, columns, rows))
    return (yield from _read_column(field, columns, rows))


def bytes_key(field_id: int) -> int:
    """Return the key under which ``columns`` has the bytes of strings that are stored apart."""
    return -1 - field_id


def stores_bytes_apart(field: Field, columns: Columns) -> bool:
    """Return whether the bytes of a string field are in the column behind its own."""
    column = columns.get(field.id)
    if column is None or field.children or not column.pages:
        return False
    return isinstance(column.pages[0].description, ItemList)


def _read_split_strings(field: Field, columns: Columns, rows: Rows) -> Reading[list[pa.Array]]:
    kind = arrow_type(field)
    shapes = {
        pa.string(): "list",
        pa.binary(): "list",
        pa.large_string(): "large_list",
        pa.large_binary(): "large_list",
    }
    if kind not in shapes:
        raise CorruptError(f"field {field.name!r} of type {kind} is stored as lists")
    item = Field("item", bytes_key(field.id), "uint8", nullable=False)
    lists = yield from _read_lists(
        Field(field.name, field.id, shapes[kind], children=(item,)), columns, rows
    )
    return [
        pa.Array.from_buffers(kind, len(chunk), [*chunk.buffers()[:2], chunk.values.buffers()[1]])
        for chunk in lists
    ]


def _column(field: Field, columns: Columns, rows: Rows) -> Column:
    column = columns.get(field.id)
    if column is None:
        raise CorruptError(f"field {field.name!r} has no column in this file")
    stop = cover(rows).stop
    if stop > column.rows:
        raise CorruptError(
            f"the column of field {field.name!r} has {column.rows} rows, {stop} are needed"
        )
    return column


def _encoding(page: Page) -> ArrayEncoding:
    if not isinstance(page.description, _ENCODINGS):
        raise CorruptError("a page of a 2.0 file has no array encoding")
    return cast("ArrayEncoding", page.description)


def _read_column(field: Field, columns: Columns, rows: Rows) -> Reading[list[pa.Array]]:
    column = _column(field, columns, rows)
    picked = column.pick(rows)
    readings = [_read_page(field, column.pages[number], inside) for number, inside in picked]
    return (yield from together(readings))


def _read_page(field: Field, page: Page, rows: Rows) -> Reading[pa.Array]:
    encoding, kind = _encoding(page), arrow_type(field)
    packed = without_nulls(encoding)
    if field.is_packed and isinstance(packed, PackedStruct):
        # The ids of the children were given out in one go, right after that of the struct.
        places = [child.id - field.id - 1 for child in field.children]
        return (yield from read_packed(packed, page, rows, kind, places))
    return (yield from read_array(encoding, page, rows, kind))


def _read_struct(field: Field, columns: Columns, rows: Rows) -> Reading[list[pa.Array]]:
    kind = arrow_type(field)
    if not field.children:
        return [pa.Array.from_buffers(kind, len(rows), [None])]
    columnar = yield from together([_read(child, columns, rows) for child in field.children])
    return [
        pa.Array.from_buffers(kind, len(children[0]), [None], children=children)
        for children in _same_chunks(columnar, len(rows))
    ]


def _same_chunks(columnar: list[list[pa.Array]], rows: int) -> list[list[pa.Array]]:
    """Cut the chunks of several columns at each other's edges; return them piece by piece."""
    if all(len(chunks) == 1 for chunks in columnar):
        return [[chunks[0] for chunks in columnar]]
    edges = {0, rows}
    for chunks in columnar:
        edges.update(np.cumsum([len(chunk) for chunk in chunks]).tolist())
    ordered = sorted(edges)
    pieces: list[list[pa.Array]] = [[] for _ in ordered[1:]]
    for chunks in columnar:
        _cut(chunks, ordered, pieces)
    return pieces


def _cut(chunks: list[pa.Array], edges: list[int], pieces: list[list[pa.Array]]) -> None:
    number = first = 0
    for piece, start, stop in zip(pieces, edges, edges[1:], strict=False):
        while start >= first + len(chunks[number]):
            first += len(chunks[number])
            number += 1
        piece.append(chunks[number].slice(start - first, stop - start))


def _read_lists(field: Field, columns: Columns, rows: Rows) -> Reading[list[pa.Array]]:
    if len(field.children) != 1:
        raise CorruptError(f"list field {field.name!r} has {len(field.children)} children")
    column = _column(field, columns, rows)
    picked = column.pick(rows)
    firsts = _first_items(column)
    readings = [
        _read_list_page(field, columns, column.pages[number], inside, firsts[number])
        for number, inside in picked
    ]
    return (yield from together(readings))


def _first_items(column: Column) -> list[int]:
    """Return the number of the first item of each page."""
    firsts = [0]
    for page in column.pages:
        firsts.append(firsts[-1] + _list_encoding(page).item_count)
    return firsts


def _list_encoding(page: Page) -> ItemList:
    encoding = without_nulls(_encoding(page))
    if not isinstance(encoding, ItemList):
        raise CorruptError(f"a page of lists is encoded as {encoding}")
    return encoding


def _read_list_page(
    field: Field, columns: Columns, page: Page, rows: Rows, first_item: int
) -> Reading[pa.Array]:
    encoding, child = _list_encoding(page), field.children[0]
    ends = Ends(encoding.offsets, encoding.null_adjustment, encoding.item_count)
    extents = yield from read_extents(ends, page, rows)
    _check_items(child, columns, range(first_item + extents.first, first_item + extents.last))
    inside = extents.numbers()
    if isinstance(inside, range):
        wanted: Rows = range(inside.start + first_item, inside.stop + first_item)
    else:
        wanted = inside + first_item
    items = _joined((yield from _read(child, columns, wanted)))
    offsets = extents.offsets()
    kind = arrow_type(field)
    if pa.types.is_list(kind):
        check_int32(int(offsets[-1]), "items")
        buffer = pa.py_buffer(offsets.astype(np.int32))
    else:
        buffer = pa.py_buffer(offsets)
    validity = None
    if extents.valid is not None:
        validity = pa.py_buffer(np.packbits(extents.valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(rows), [validity, buffer], children=[items])


def _check_items(field: Field, columns: Columns, items: range) -> None:
    """Refuse items that no column has, before their numbers are written down one by one."""
    while field.id not in columns and field.logical_type == "struct" and field.children:
        field = field.children[0]
    _column(field, columns, items)


def _joined(chunks: list[pa.Array]) -> pa.Array:
    if len(chunks) == 1:
        return chunks[0]
    try:
        return pa.concat_arrays(chunks)
    except pa.ArrowException:
        raise UnsupportedError(
            "the items of these lists do not fit into one Arrow array; read fewer rows at once"
        ) from None
