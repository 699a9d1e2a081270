"""Neighbouring rows of one column of a mapped data file, through the compiled walk.

Pages are opened when the first of their rows is asked for, and then known as records, as for single
rows (``gathering.py``). None says that the file's own reader has to read the rows.
"""

import ctypes
from collections.abc import Callable, Sequence

import pyarrow as pa

from lancetable.file.gathering import FieldCards, LeafCards
from lancetable.file.sights import LeafPlan
from lancetable.format.encoding.repdef import Mask
from lancetable.format.encoding.stretch import (
    Records,
    Tests,
    is_plain,
    is_stretch,
    match_stretch,
    read_stretch,
)
from lancetable.format.schema.model import Field


class Stretch:
    """One column of one file."""

    __slots__ = ("_cards", "_has_levels", "_is_ready", "_plan", "_records")

    def __init__(self, plan: LeafPlan, cards: LeafCards) -> None:
        self._plan = plan
        self._cards = cards
        self._records = Records(cards.records, ctypes.addressof(cards.records))
        self._is_ready = bytearray(len(cards.records))
        self._has_levels = False

    def read(self, rows: range) -> pa.Array | None:
        """Return rows of the column."""
        if not self._opened(rows):
            return None
        return read_stretch(self._records, rows, self._plan.kind, has_levels=self._has_levels)

    def match(self, rows: range, tests: Tests) -> tuple[Mask, int] | None:
        """Return which rows pass tests of their values, and how many."""
        return match_stretch(self._records, rows, tests) if self._opened(rows) else None

    def _opened(self, rows: range) -> bool:
        """Open the pages that hold rows; say whether all of them can be read this way."""
        column, ready = self._plan.column, self._is_ready
        for index in range(column.page_of(rows.start), column.page_of(rows.stop - 1) + 1):
            if not ready[index]:
                self._cards.open(index)
                record = self._cards.records[index]
                if not is_plain(record):
                    return False
                self._has_levels = self._has_levels or bool(record.def_kind)
                ready[index] = 1
        return True


def stretch_of(
    field: Field,
    plans_of: Callable[[Field], Sequence[LeafPlan]],
    cards_of: Callable[[Field], FieldCards | None],
) -> Stretch | None:
    """Return what reads a field; None for fields of other shapes."""
    plans = plans_of(field)
    if len(plans) != 1 or not plans[0].is_simple or plans[0].layers is None:
        return None
    cards = cards_of(field) if is_stretch(plans[0].kind) else None
    return None if cards is None else Stretch(plans[0], cards[0])
