"""Neighbouring rows of one column of a mapped data file, through the compiled walk.

Pages are opened when the first of their rows is asked for, and then known as records, as for single
rows (``compiled_rows.py``). None says that the file's own reader has to read the rows.
"""

import ctypes
from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from lancetable.file.leaf_info import LeafPlan
from lancetable.file.read.compiled_rows import FieldRecords, LeafRecords, OpenPages
from lancetable.format.encoding.assemble import assemble
from lancetable.format.encoding.compiled_range import (
    Records,
    Tests,
    is_compiled,
    is_plain,
    match_range,
    read_lists,
    read_range,
)
from lancetable.format.encoding.repdef import Layers, Mask, any_layers
from lancetable.format.schema.model import Field
from lancetable.store import ReadableFile


class CompiledRange:
    """One column of plain values in one file."""

    __slots__ = ("_has_levels", "_is_ready", "_plan", "leaf", "records")

    def __init__(self, plan: LeafPlan, leaf: LeafRecords) -> None:
        self.leaf = leaf
        self.records = Records(leaf.records, ctypes.addressof(leaf.records))
        self._plan = plan
        self._is_ready = bytearray(len(leaf.records))
        self._has_levels = False

    def read(self, rows: range) -> pa.Array | None:
        """Return rows of the column."""
        if not self.opened(rows):
            return None
        return read_range(self.records, rows, self._plan.kind, has_levels=self._has_levels)

    def match(self, rows: range, tests: Tests) -> tuple[Mask, int] | None:
        """Return which rows pass tests of their values, and how many."""
        return match_range(self.records, rows, tests) if self.opened(rows) else None

    def opened(self, rows: range) -> bool:
        """Open the pages that hold rows; say whether all of them can be read this way."""
        column, ready = self._plan.column, self._is_ready
        for index in range(column.page_of(rows.start), column.page_of(rows.stop - 1) + 1):
            if not ready[index]:
                self.leaf.open(index)
                record = self.leaf.records[index]
                if not is_plain(record):
                    return False
                self._has_levels = self._has_levels or bool(record.def_kind)
                ready[index] = 1
        return True


class CompiledLists(CompiledRange):
    """One column of lists of plain values."""

    __slots__ = ("_field", "_layers")

    def __init__(self, plan: LeafPlan, leaf: LeafRecords, field: Field, layers: Layers) -> None:
        super().__init__(plan, leaf)
        self._field = field
        self._layers = layers

    def read(self, rows: range) -> pa.Array | None:
        """Return rows of the column."""
        if not self.opened(rows):
            return None
        run = read_lists(self.records, rows, self._plan.kind, self._layers)
        return None if run is None else assemble(self._field, {self._plan.leaf.field.id: run})

    def match(self, rows: range, tests: Tests) -> tuple[Mask, int] | None:
        """Lists are not compared."""
        return None


class OpenField:
    """One field of an open file: the columns of its leaves, and what reads its rows in C.

    It does not hold the reader of the file: a circle is freed late, and the file stays mapped.
    """

    def __init__(
        self,
        field: Field,
        plans: Sequence[LeafPlan],
        file: ReadableFile,
        open_pages: OpenPages,
    ) -> None:
        self.field = field
        self.plans = plans
        self._file = file
        self._open_pages = open_pages

    @cached_property
    def records(self) -> FieldRecords:
        """The records of the pages, for a mapped file."""
        return [LeafRecords(plan, self._file, self._open_pages) for plan in self.plans]

    @cached_property
    def compiled(self) -> CompiledRange | None:
        """What reads neighbouring rows of a mapped file; None for fields of other shapes."""
        plan = self.plans[0]
        if len(self.plans) != 1 or plan.layers is None or not is_compiled(plan.kind):
            return None
        if plan.is_simple:
            return CompiledRange(plan, self.records[0])
        is_list = plan.leaf.depth == 1 and plan.layers == any_layers((False, True))
        return CompiledLists(plan, self.records[0], self.field, plan.layers) if is_list else None
