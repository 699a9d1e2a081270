"""Describe pages for the compiled gather, where it can read them.

A mapped page is its record for ``kernels/c/gather.c`` and what keeps the addresses in it valid.
Pages of other shapes have none; they are read by the NumPy kernels.

Pages of one column may differ in which nulls they know. All records of a column therefore speak of
the same definition levels: those of a page in which every value and list may be missing, and every
list empty (``full_layers``).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lancetable.format.encoding.base import Bytes, Levels, Page, Reading
from lancetable.format.encoding.blocks import Block, Compression, FixedWidth, VariableWidth
from lancetable.format.encoding.compressions.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lancetable.format.encoding.compressions.fixed_size_list import FixedSizeList
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.fsst import Fsst
from lancetable.format.encoding.compressions.rle import Rle
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.kernels.addressing import LevelCode, Values
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.fsst import parse_symbol_table
from lancetable.format.encoding.kernels.records import PageRecord
from lancetable.format.encoding.layout import OpenPage
from lancetable.format.encoding.layouts.constant import OpenConstantPage
from lancetable.format.encoding.layouts.fullzip import OpenFullZip
from lancetable.format.encoding.layouts.miniblock import MiniBlockPage
from lancetable.format.encoding.leaf import Kind, Shape
from lancetable.format.encoding.repdef import Layer, Layers, any_layers

LEVEL_BITS = 16
WORD_BYTES = 8


class MappedPage(NamedTuple):
    """The record of a page, and the arrays it points into."""

    record: PageRecord
    kept: tuple[object, ...]


class _Stored(NamedTuple):
    """The storage of values: the code, the bytes of a value or offset, a symbol table."""

    code: Values
    width: int
    symbols: bytes | None = None


def full_layers(layers: Layers) -> Layers:
    """Return the layers of a page of the same column in which anything may be null or empty."""
    return any_layers(tuple([layer.is_list for layer in layers.items]))


@lru_cache(maxsize=256)
def _level_map(items: tuple[Layer, ...]) -> Levels:
    """Return what each definition level of a page is called in its full layers."""
    names, full = [0], 1
    for layer in items:
        if layer is Layer.NULL_AND_EMPTY_LIST:
            names += [full, full + 1]
        elif layer is Layer.EMPTYABLE_LIST:
            names.append(full + 1)
        elif layer.levels:
            names.append(full)
        full += 2 if layer.is_list else 1
    return np.array(names, np.uint16)


def record_of(page: Page, opened: OpenPage, kind: Kind) -> Reading[MappedPage | None]:
    """Return the record of a mapped page, None when it has a shape of its own."""
    yield []
    match opened:
        case MiniBlockPage():
            data = yield from opened.mapped()
            return _mini_block(page, opened, data, kind)
        case OpenFullZip():
            data = yield from opened.mapped()
            return _strided(page, opened, data, kind)
        case OpenConstantPage():
            return _constant(page, opened, kind)
    return None


def _mini_block(page: Page, opened: MiniBlockPage, data: Bytes, kind: Kind) -> MappedPage | None:
    layout, tables = opened.layout, opened.tables
    shape, layers = layout.shape, layout.layers
    stored = _stored(layout.values, kind, is_dictionary=tables.items is not None)
    rep, def_ = _levels(shape.rep), _levels(shape.def_)
    if stored is None or rep is None or def_ is None:
        return None
    if shape.buffer_count != (2 if stored.code is Values.RUNS else 1):
        return None
    if (layers.max_rep > 0) != (tables.row_index is not None) or (layers.max_rep > 0) != bool(rep):
        return None
    chunks = tables.chunks
    names = _level_map(layers.items)
    record = PageRecord(
        data=address(data),
        size=len(data),
        starts=address(chunks.starts),
        firsts=address(chunks.firsts),
        chunks=len(chunks.counts),
        shift=opened.shift,
        rows=page.rows,
        first_row=page.first_row,
        kind=stored.code,
        width=stored.width,
        header=shape.header_bytes,
        is_large=shape.is_large,
        rep_kind=rep.code,
        rep_width=rep.width,
        def_kind=def_.code,
        def_width=def_.width,
        level_map=address(names),
        max_rep=layers.max_rep,
        max_def=layers.max_def,
        max_visible=layers.max_visible,
    )
    kept: list[object] = [data, chunks, names]
    if tables.row_index is not None:
        record.row_firsts = address(tables.row_index.firsts)
        kept.append(tables.row_index.firsts)
    if stored.symbols is not None:
        table = parse_symbol_table(stored.symbols)
        if table.is_compressed:
            record.symbols, record.lengths = address(table.words), address(table.lengths)
            kept.append(table)
    if tables.items is not None and not _with_items(record, tables.items, kind, kept):
        return None
    return MappedPage(record, tuple(kept))


def _with_items(record: PageRecord, items: Block, kind: Kind, kept: list[object]) -> bool:
    """Add the items of a dictionary; say whether they are of the right kind."""
    data = (
        np.ascontiguousarray(items.data) if isinstance(items, FixedWidth | VariableWidth) else None
    )
    if data is None:
        return False
    if isinstance(items, VariableWidth):
        edges = np.ascontiguousarray(items.offsets, np.int64)
        record.item_edges = address(edges)
        kept.append(edges)
    elif isinstance(items, FixedWidth) and items.width == kind.width:
        record.item_width = items.width
    else:
        return False
    if isinstance(items, VariableWidth) != (kind.shape is Shape.VARIABLE):
        return False
    record.items, record.item_count = address(data), len(items)
    kept.append(data)
    return True


def _strided(page: Page, opened: OpenFullZip, data: Bytes, kind: Kind) -> MappedPage | None:
    zipped = opened.layout.zipped
    if not opened.is_strided or zipped.control_bytes or zipped.stride != _width(kind):
        return None
    values = opened.layout.values
    if not isinstance(values, Flat) and not (
        isinstance(values, FixedSizeList) and not values.has_validity
    ):
        return None
    record = PageRecord(
        data=address(data),
        size=len(data),
        rows=page.rows,
        first_row=page.first_row,
        kind=Values.STRIDED,
        width=zipped.stride,
    )
    return MappedPage(record, (data,))


def _constant(page: Page, opened: OpenConstantPage, kind: Kind) -> MappedPage | None:
    value = opened.plain_value
    if value is None or kind.shape not in {Shape.FIXED, Shape.VARIABLE, Shape.BOOL}:
        return None
    if kind.shape is not Shape.VARIABLE and len(value) != _width(kind):
        return None
    data = np.frombuffer(value or b"\0", np.uint8)
    record = PageRecord(
        data=address(data),
        size=len(value),
        rows=page.rows,
        first_row=page.first_row,
        kind=Values.CONSTANT,
    )
    return MappedPage(record, (data,))


def _stored(values: Compression, kind: Kind, *, is_dictionary: bool) -> _Stored | None:
    found = _plain(values, kind)
    if found is None:
        return None
    if is_dictionary:
        is_index = (
            found.code in {Values.FLAT, Values.PACKED, Values.RUNS} and found.width <= WORD_BYTES
        )
        return found if is_index and kind.shape in {Shape.FIXED, Shape.VARIABLE} else None
    if found.code in {Values.TEXT, Values.BITS}:
        shape = Shape.VARIABLE if found.code is Values.TEXT else Shape.BOOL
        return found if kind.shape is shape else None
    return found if kind.shape is not Shape.BOOL and found.width == _width(kind) else None


def _plain(values: Compression, kind: Kind) -> _Stored | None:
    stored = None
    match values:
        case Fsst(symbol_table=symbols, inner=Variable(bits=bits)):
            stored = _Stored(Values.TEXT, bits // 8, symbols)
        case Variable(bits=bits):
            stored = _Stored(Values.TEXT, bits // 8)
        case FixedSizeList():
            stored = _wide(values, kind)
        case InlineBitpacking(bits=bits):
            stored = _Stored(Values.PACKED, bits // 8)
        case Rle(bits=bits):
            stored = _Stored(Values.RUNS, bits // 8)
        case Flat(bits=bits):
            stored = _Stored(Values.BITS if bits == 1 else Values.FLAT, bits // 8)
    return stored


def _wide(values: FixedSizeList, kind: Kind) -> _Stored | None:
    """See whole lists of plain items as single wide values."""
    inner = values.inner
    if values.has_validity or not isinstance(inner, Flat) or inner.bits % 8:
        return None
    width = values.dimension * inner.bits // 8
    return _Stored(Values.FLAT, width) if width == _width(kind) else None


def _width(kind: Kind) -> int:
    """Return the bytes of a value; -1 when values have none of their own."""
    if kind.shape is Shape.FIXED:
        return kind.width
    if kind.shape is Shape.BOOL:
        return 1
    if kind.shape is Shape.LIST and kind.children[0].shape is Shape.FIXED:
        return kind.children[0].width * kind.size
    return -1


class _LevelShape(NamedTuple):
    code: LevelCode
    width: int = 0

    def __bool__(self) -> bool:
        return self.code is not LevelCode.NONE


def _levels(compression: Compression | None) -> _LevelShape | None:
    match compression:
        case None:
            return _LevelShape(LevelCode.NONE)
        case OutOfLineBitpacking(bits=16, width=width) if 0 < width <= LEVEL_BITS:
            return _LevelShape(LevelCode.PACKED, width)
        case InlineBitpacking(bits=16):
            return _LevelShape(LevelCode.INLINE)
        case Flat(bits=16):
            return _LevelShape(LevelCode.RAW)
        case Rle(bits=16):
            return _LevelShape(LevelCode.RUNS)
    return None
