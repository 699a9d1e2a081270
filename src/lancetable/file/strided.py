"""Columns whose values lie at computed places: fixed width, no levels, one buffer per page.

Vectors are stored like that. Single rows of many pages are then one list of byte ranges of the
file, and no page has to be opened.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.format.encoding.base import Column, Integers, Page
from lancetable.format.encoding.blocks import FixedWidth, VariableWidth
from lancetable.format.encoding.layouts.fullzip import FullZip
from lancetable.format.encoding.leaf import Kind, leaf_array
from lancetable.store import ByteRange, ReadableFile


class Strided(NamedTuple):
    """Where the pages of such a column start, in rows and in bytes."""

    layout: FullZip
    first_rows: Integers
    positions: Integers

    def read(self, file: ReadableFile, rows: Integers, kind: Kind) -> pa.Array:
        """Read single rows."""
        stride = self.layout.zipped.stride
        page = np.searchsorted(self.first_rows, rows, side="right") - 1
        starts = self.positions[page] + (rows - self.first_rows[page]) * stride
        views = file.read_ranges([ByteRange(start, start + stride) for start in starts.tolist()])
        data = np.frombuffer(b"".join(views), np.uint8)
        stored: FixedWidth | VariableWidth = FixedWidth(data, stride)
        decode = getattr(self.layout.values, "decode_values", None)
        block = stored if decode is None else decode(stored)
        return leaf_array(block, kind, None)


def strided(column: Column) -> Strided | None:
    """Look whether a column is such a one."""
    first = column.pages[0].description if column.pages else None
    if not isinstance(first, FullZip) or not _is_computed(first):
        return None
    if not all(_fits(page, first) for page in column.pages):
        return None
    return Strided(
        first,
        np.array([page.first_row for page in column.pages], np.int64),
        np.array([page.buffers[0].position for page in column.pages], np.int64),
    )


def _is_computed(layout: FullZip) -> bool:
    zipped, layers = layout.zipped, layout.layers
    has_levels = zipped.control_bytes or layers.max_def or layers.max_rep
    return not (has_levels or zipped.is_variable or zipped.stride == 0)


def _fits(page: Page, first: FullZip) -> bool:
    layout = page.description
    return (
        isinstance(layout, FullZip)
        and (layout.zipped, layout.values, layout.layers)
        == (first.zipped, first.values, first.layers)
        and len(page.buffers) == 1
        and page.buffers[0].size == page.rows * first.zipped.stride
    )
