"""Constant pages: nulls only, or one value for every valid entry.

| inline value | buffers | meaning |
|---|---|---|
| no | 0 | every row is null |
| no | 2 | nulls and empty lists: repetition levels, definition levels |
| yes | 0 | every value is the inline one |
| yes | 2 | the same with levels |
| no | 1 | every value is the one in the buffer |
| no | 3 | the same with levels |

A buffer of size 0 means that such levels are not stored. Raw levels are u16. A value buffer is
``u32 n``, ``n x u32`` lengths, then n Arrow buffers of an array of length one.
"""

from dataclasses import dataclass

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers, Levels, Page, Reading, Rows
from lancetable.format.encoding.blocks import (
    Block,
    Compression,
    FixedWidth,
    Repeated,
    VariableWidth,
    decode_one,
    fixed_words,
)
from lancetable.format.encoding.layout import Entries
from lancetable.format.encoding.repdef import Layers, check_levels, visible


@dataclass(frozen=True, slots=True)
class ConstantPage:
    """The description of a constant page."""

    layers: Layers
    inline_value: bytes | None
    rep: Compression | None
    def_: Compression | None
    rep_count: int
    def_count: int

    def __str__(self) -> str:
        return "constant" if self.inline_value is None else "constant(inline)"

    def open(self, page: Page, *, is_mapped: bool) -> Reading["OpenConstantPage"]:
        """Read everything there is: a value and the levels."""
        views = yield [buffer.whole() for buffer in page.buffers]
        buffers = [np.frombuffer(view, np.uint8) for view in views]
        value: Block | None = None
        if self.inline_value is not None:
            value = FixedWidth(np.frombuffer(self.inline_value, np.uint8), len(self.inline_value))
        elif len(buffers) in {1, 3}:
            value = _stored_value(buffers.pop(0))
        if len(buffers) not in {0, 2}:
            raise CorruptError(f"a constant page has {len(page.buffers)} buffers")
        rep = def_ = None
        if buffers:
            rep = _levels(buffers[0], self.rep, self.rep_count)
            def_ = _levels(buffers[1], self.def_, self.def_count)
        check_levels(rep, def_, self.layers)
        return OpenConstantPage(self.layers, value, rep, def_, page.rows)


class OpenConstantPage:
    """A constant page whose levels are known."""

    def __init__(
        self,
        layers: Layers,
        value: Block | None,
        rep: Levels | None,
        def_: Levels | None,
        rows: int,
    ) -> None:
        self._layers = layers
        self._value = value
        self._rep = rep
        self._def = def_
        self._starts = None
        self.plain_value = _bytes_of(value) if rep is None and def_ is None else None
        """The bytes of the value of a page without levels."""
        if rep is not None:
            self._starts = np.append(np.flatnonzero(rep == layers.max_rep), len(rep))
            if len(self._starts) - 1 != rows or (rows and self._starts[0] != 0):
                raise CorruptError(f"a page of {rows} rows holds levels for others")
        elif def_ is not None and len(def_) != rows:
            raise CorruptError(f"a page of {rows} rows holds {len(def_)} levels")

    def read(self, rows: Rows) -> Reading[Entries]:
        """Read rows of the page; no bytes are needed."""
        yield []
        rep, def_ = self._rep, self._def
        if self._starts is None:
            count = len(rows)
            if def_ is not None:
                def_ = def_[rows.start : rows.stop] if isinstance(rows, range) else def_[rows]
        else:
            picked = self._entries(rows)
            count = len(picked)
            rep = None if rep is None else rep[picked]
            def_ = None if def_ is None else def_[picked]
        shown = visible(def_, self._layers)
        values = count if shown is None else int(shown.sum())
        return Entries(Repeated(self._value, values), rep, def_, slice(0, count))

    def _entries(self, rows: Rows) -> Integers:
        starts = np.asarray(self._starts)
        if isinstance(rows, range):
            return np.arange(int(starts[rows.start]), int(starts[rows.stop]))
        return np.concatenate(
            [np.arange(a, b) for a, b in zip(starts[rows], starts[rows + 1], strict=True)]
        )


def _bytes_of(value: Block | None) -> bytes | None:
    if isinstance(value, FixedWidth):
        return value.data.tobytes()
    if isinstance(value, VariableWidth):
        return value.data[int(value.offsets[0]) : int(value.offsets[1])].tobytes()
    return None


def _levels(data: Bytes, compression: Compression | None, count: int) -> Levels | None:
    if len(data) == 0:
        return None
    if compression is None:
        if len(data) % 2:
            raise CorruptError("the levels of a page have an odd size")
        return data.view("<u2")
    words = fixed_words(decode_one(compression, data, count), "levels")
    if words.dtype.itemsize != 2 or len(words) != count:
        raise CorruptError("the levels of a page are not 16 bits each")
    return words


def _stored_value(data: Bytes) -> Block:
    count = int.from_bytes(data[:4].tobytes(), "little")
    if count not in {1, 2} or len(data) < 4 + 4 * count:
        raise CorruptError("the value of a constant page is cut off")
    sizes = data[4 : 4 + 4 * count].view("<u4").astype(np.int64).tolist()
    first = 4 + 4 * count
    if len(data) < first + sum(sizes):
        raise CorruptError("the value of a constant page is cut off")
    if count == 1:
        return FixedWidth(data[first : first + sizes[0]], sizes[0])
    if sizes[0] not in {8, 16}:
        raise CorruptError("the value of a constant page has no offsets")
    offsets = data[first : first + sizes[0]].copy().view(f"<i{sizes[0] // 2}").astype(np.int64)
    content = data[first + sizes[0] : first + sum(sizes)]
    if not 0 <= offsets[0] <= offsets[1] <= len(content):
        raise CorruptError("the offsets of a constant value point outside its bytes")
    return VariableWidth(offsets, content)
