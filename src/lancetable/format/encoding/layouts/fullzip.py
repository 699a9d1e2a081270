"""Full-zip pages: large values, each behind its own levels.

Buffer 0 holds the entries one after the other. An entry is a control word (0, 1, 2 or 4 bytes,
``rep << bits_def | def``), then its value:

| values | what follows the control word |
|---|---|
| fixed width | the value, also for nulls; nothing for a null or empty list |
| any width | a length of 4 or 8 bytes and the value; nothing for nulls and null or empty lists |

Buffer 1 holds where each row starts, and the end: ``rows + 1`` numbers of equal width. It is absent
for fixed-width values outside of lists, whose place is a product.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers, Levels, Page, Reading, Rows, Span
from lancetable.format.encoding.blocks import (
    Block,
    Compression,
    FixedSizeLists,
    FixedWidth,
    Repeated,
    Structs,
    VariableWidth,
    for_values,
)
from lancetable.format.encoding.kernels.ragged import gather_slices
from lancetable.format.encoding.layout import Entries
from lancetable.format.encoding.layouts.zipped import (
    Zipped,
    control_words,
    lengths_at,
    walk_entries,
)
from lancetable.format.encoding.repdef import Layers, Mask, check_levels, visible


@dataclass(frozen=True, slots=True)
class FullZip:
    """The description of a full-zip page."""

    zipped: Zipped
    items: int
    visible_items: int
    values: Compression
    layers: Layers

    def __str__(self) -> str:
        zipped = self.zipped
        text = f"fullzip values={self.values}"
        return f"{text} rep={zipped.bits_rep} def={zipped.bits_def}"

    def open(self, page: Page, *, is_mapped: bool) -> Reading["OpenFullZip"]:
        """Read where the rows start, unless that can be computed."""
        if not self.zipped.is_variable and not self.layers.max_rep:
            yield []
            stride = self.zipped.stride
            if not stride or page.rows != self.items or page.buffer(0).size != page.rows * stride:
                raise CorruptError(
                    f"{page.rows} rows of {stride} bytes do not fill {page.buffer(0).size} bytes"
                )
            return OpenFullZip(self, page, None, is_mapped=is_mapped)
        (view,) = yield [page.buffer(1).whole()]
        starts = _row_starts(np.frombuffer(view, np.uint8), page)
        return OpenFullZip(self, page, starts, is_mapped=is_mapped)


def _row_starts(data: Bytes, page: Page) -> Integers:
    width, rest = divmod(len(data), page.rows + 1)
    if rest or width not in {1, 2, 4, 8}:
        raise CorruptError(f"the row index of {page.rows} rows has {len(data)} bytes")
    if width == 8 and int(data.view("<u8").max()) > page.buffer(0).size:
        raise CorruptError("the row index of a page points outside its bytes")
    starts = data.view(f"<u{width}").astype(np.int64)
    if starts[0] != 0 or (np.diff(starts) < 0).any() or int(starts[-1]) != page.buffer(0).size:
        raise CorruptError("the row index of a page does not cover its bytes")
    return starts


class OpenFullZip:
    """A full-zip page whose row index is known."""

    def __init__(
        self, layout: FullZip, page: Page, starts: Integers | None, *, is_mapped: bool
    ) -> None:
        self.layout = self._layout = layout
        self._zipped = layout.zipped
        self._buffer = page.buffer(0)
        self._starts = starts
        self._is_mapped = is_mapped
        self._data: Bytes | None = None

    def read(self, rows: Rows) -> Reading[Entries]:
        """Read rows of the page."""
        if self._starts is None:
            return self._read_strided(rows)
        return self._read_indexed(rows)

    @property
    def is_strided(self) -> bool:
        """True when the place of a row is a product."""
        return self._starts is None

    def mapped(self) -> Reading[Bytes]:
        """Return the bytes of all entries, which are mapped."""
        return self._whole()

    def _read_strided(self, rows: Rows) -> Reading[Entries]:
        stride = self._zipped.stride
        if isinstance(rows, range):
            (view,) = yield [self._buffer.part(rows.start * stride, rows.stop * stride)]
            data = np.frombuffer(view, np.uint8)
        elif self._is_mapped:
            whole = yield from self._whole()
            data = whole.reshape(-1, stride).take(rows, axis=0).reshape(-1)
        else:
            data = yield from self._fetch(rows * stride, (rows + 1) * stride)
        control = self._zipped.control_bytes
        if control == 0:
            return self._entries(FixedWidth(data, stride), None)
        table = data.reshape(-1, stride)
        words = control_words(table, np.arange(len(table)), control)
        values = np.ascontiguousarray(table[:, control:])
        return self._entries(FixedWidth(values, stride - control), words)

    def _read_indexed(self, rows: Rows) -> Reading[Entries]:
        index = np.asarray(self._starts)
        if isinstance(rows, range):
            edges = index[rows.start : rows.stop + 1]
            first, last = edges[:-1], edges[1:]
        else:
            first, last = index[rows], index[rows + 1]
        if self._is_mapped:
            data = yield from self._whole()
        else:
            data = yield from self._fetch(first, last)
            sizes = last - first
            last = np.cumsum(sizes)
            first = last - sizes
        if self._layout.layers.max_rep:
            places = walk_entries(self._zipped, data, first, last, self._layout.layers)
        else:
            places = first
            if (last - first < self._zipped.control_bytes).any():
                raise CorruptError("a row of a page is shorter than its control word")
        return self._cut(data, places, last)

    def _cut(self, data: Bytes, places: Integers, last: Integers) -> Entries:
        zipped, layers = self._zipped, self._layout.layers
        words = control_words(data.reshape(-1, 1), places, zipped.control_bytes)
        values = places + zipped.control_bytes
        def_ = zipped.definition(words)
        if not zipped.is_variable:
            shown = values if def_ is None else values[def_ <= layers.max_visible]
            if len(shown) and int(shown.max()) + zipped.value_bytes > len(data):
                raise CorruptError("a value of a page reaches beyond its bytes")
            width = zipped.value_bytes
            return self._entries(FixedWidth(data[shown[:, None] + np.arange(width)], width), words)
        is_valid = np.ones(len(places), np.bool_) if def_ is None else def_ == 0
        start, stop = _value_edges(zipped, data, values, is_valid)
        if not layers.max_rep and (stop != last).any():
            raise CorruptError("a value of a page does not fill its row")
        if def_ is not None and layers.max_visible < layers.max_def:
            is_shown = def_ <= layers.max_visible
            start, stop = start[is_shown], stop[is_shown]
        return self._entries(VariableWidth(*gather_slices(data, start, stop)), words)

    def _entries(self, stored: FixedWidth | VariableWidth, words: Integers | None) -> Entries:
        layout, zipped = self._layout, self._zipped
        decode = for_values(layout.values).decode_values
        rep = def_ = None
        if words is not None:
            rep, def_ = zipped.repetition(words), zipped.definition(words)
        if rep is None and layout.layers.max_rep:
            rep = np.full(0 if words is None else len(words), layout.layers.max_rep, np.uint16)
        check_levels(rep, def_, layout.layers)
        count = len(stored) if words is None else len(words)
        if zipped.value_bytes == 0:
            shown = visible(def_, layout.layers)
            nulls = Repeated(None, count if shown is None else int(shown.sum()))
            return Entries(nulls, rep, def_, slice(0, count))
        block = self._decoded(decode, stored, def_)
        return Entries(block, rep, def_, slice(0, count))

    def _decoded(
        self,
        decode: Callable[[FixedWidth | VariableWidth], Block],
        stored: FixedWidth | VariableWidth,
        def_: Levels | None,
    ) -> Block:
        """Decode the values; the empty bytes that stand for nulls are kept from decompressors."""
        if def_ is None or not isinstance(stored, VariableWidth):
            return decode(stored)
        shown = def_[def_ <= self._layout.layers.max_visible] == 0
        if shown.all():
            return decode(stored)
        return spread(decode(_only(stored, shown)), shown)

    def _whole(self) -> Reading[Bytes]:
        if self._data is None:
            (view,) = yield [self._buffer.whole()]
            self._data = np.frombuffer(view, np.uint8)
        return self._data

    def _fetch(self, first: Integers, last: Integers) -> Reading[Bytes]:
        """Ask for byte ranges, neighbouring ones as one."""
        if len(first) == 0:
            return np.empty(0, np.uint8)
        breaks = np.flatnonzero(first[1:] != last[:-1]) + 1
        begins = first[np.append(0, breaks)]
        ends = last[np.append(breaks - 1, len(last) - 1)]
        spans: list[Span] = [
            self._buffer.part(a, b) for a, b in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        views = yield spans
        return np.frombuffer(views[0] if len(views) == 1 else b"".join(views), np.uint8)


def _value_edges(
    zipped: Zipped, data: Bytes, values: Integers, is_valid: Mask
) -> tuple[Integers, Integers]:
    """Return first and last byte of each value; nothing for nulls."""
    start, stop = values.copy(), values.copy()
    behind = values[is_valid] + zipped.length_bytes
    stop[is_valid] = behind + lengths_at(zipped, data, values[is_valid])
    start[is_valid] = behind
    return start, stop


def _only(stored: VariableWidth, shown: Mask) -> VariableWidth:
    return VariableWidth(np.append(stored.offsets[:-1][shown], stored.offsets[-1]), stored.data)


def spread(block: Block, shown: Mask) -> Block:
    """Return a block with one slot per mask entry; slots that are not shown are empty."""
    match block:
        case VariableWidth(offsets, data):
            place = np.zeros(len(shown) + 1, np.int64)
            np.cumsum(shown, out=place[1:])
            return VariableWidth(offsets[place], data)
        case FixedWidth(data, width):
            out = np.zeros((len(shown), width), np.uint8)
            out[shown] = data.reshape(-1).view(np.uint8).reshape(-1, width)
            return FixedWidth(out, width)
        case Structs(children, _):
            return Structs(tuple(spread(child, shown) for child in children), len(shown))
        case FixedSizeLists(dimension, items, validity, _):
            each = np.repeat(shown, dimension)
            spread_validity = None
            if validity is not None:
                spread_validity = np.zeros(len(each), np.bool_)
                spread_validity[each] = validity
            return FixedSizeLists(dimension, spread(items, each), spread_validity, len(shown))
        case _:
            raise CorruptError("values of a page cannot be laid out between nulls")
