"""Single rows of any fragments at once, through the compiled gather.

Files are opened when the first of their rows is asked for, and stay open while not too many are.
What cannot be read this way is left out: other readers do that, fragment by fragment.
"""

import threading
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lancetable.file import FileReader
from lancetable.file.gathering import GatherSlots
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.gather import Places, places_of
from lancetable.format.encoding.kernels.addressing import Gather
from lancetable.fragment.files import BUDGET, MAPPED_WEIGHT
from lancetable.fragment.opened import OpenFragment
from lancetable.fragment.projection import FileFields, Projection

Gathered: TypeAlias = Sequence[pa.Array | None]
"""The columns of a projection's fields; None for those that must be read another way."""

_Sight: TypeAlias = tuple[OpenFragment, Sequence[FileFields]]
"""A fragment, and what is read of its files."""


class _Filled:
    """Slots of which some are filled."""

    __slots__ = ("flat", "kept", "ready", "ready_at", "slots", "weight")

    def __init__(self, library: Gather, projection: Projection, starts: "array[int]") -> None:
        fragments = len(starts) - 1
        self.slots = GatherSlots(library, projection.fields, fragments)
        self.ready = array("B", bytes(fragments + 1))
        is_whole = len(self.slots.fields) == len(projection.fields)
        self.flat = self.slots.flat(starts, self.ready) if is_whole else None
        self.ready_at = self.ready.buffer_info()[0]
        self.kept: list[FileReader] = []
        self.weight = 0


class TableGather:
    """Single rows of one projection of a table."""

    __slots__ = (
        "_filled",
        "_library",
        "_lock",
        "_numbers",
        "_opened",
        "_starts",
        "flat",
        "projection",
    )

    def __init__(
        self,
        library: Gather,
        projection: Projection,
        starts: Sequence[int],
        opened: Callable[[int], OpenFragment],
    ) -> None:
        """Prepare to read; ``starts`` counts the rows before each fragment, and all of them."""
        self._library = library
        self._opened = opened
        self.projection = projection
        self._lock = threading.Lock()
        self._starts = array("q", starts)
        self._filled = _Filled(library, projection, self._starts)
        # What takes rows of files that are open by now as whole batches, if anything does.
        self.flat = self._filled.flat
        fields = {id(field): place for place, field in enumerate(projection.fields)}
        self._numbers = [fields[id(field)] for field in self._filled.slots.fields]

    def gives_batches(self, types: Sequence[pa.DataType]) -> bool:
        """Say whether there is a ``flat``, and its columns are of these types."""
        return self.flat is not None and self.flat.types == list(types)

    def by_number(self, rows: "array[int]") -> Gathered | None:
        """Return rows by their running number in a table without deletions.

        None when one of them is not there.
        """
        count = len(rows)
        places = array("q", bytes(16 * count))
        positions = places.buffer_info()[0]
        offsets = positions + 8 * count
        filled = self._filled
        missing = self._library.places(
            rows.buffer_info()[0],
            count,
            self._starts.buffer_info()[0],
            len(self._starts) - 1,
            filled.ready_at,
            positions,
            offsets,
        )
        if missing < 0:
            return None
        if missing:
            filled = self._fill(set(places[:count]))
        return self._read(filled, Places(positions, offsets, count, places))

    def by_place(self, positions: Integers, offsets: Integers) -> Gathered:
        """Return rows by the places of their fragments and their offsets in them."""
        filled = self._fill(np.unique(positions).tolist())
        return self._read(filled, places_of(offsets, positions))

    def _read(self, filled: _Filled, places: Places) -> Gathered:
        found = filled.slots.read(places)
        if len(found) == len(self.projection.fields):
            return found
        columns: list[pa.Array | None] = [None] * len(self.projection.fields)
        for place, column in zip(self._numbers, found, strict=True):
            columns[place] = column
        return columns

    def _fill(self, positions: Iterable[int]) -> _Filled:
        with self._lock:
            filled = self._filled
            wanted = [position for position in positions if not filled.ready[position]]
            if filled.weight > BUDGET:
                filled = _Filled(self._library, self.projection, self._starts)
                wanted = list(positions)
                self._filled, self.flat = filled, filled.flat
            found = [self._sight(position) for position in wanted]
            # The metadata of all files is asked for before the first of them is waited for.
            for opened, reads in found if len(found) > 1 else ():
                for read in reads:
                    opened.data_files.ask(opened.files[read.file])
            numbers = {id(field): number for number, field in enumerate(filled.slots.fields)}
            for position, sight in zip(wanted, found, strict=True):
                _fill_one(filled, numbers, position, sight)
            return filled

    def _sight(self, position: int) -> _Sight:
        opened = self._opened(position)
        return opened, self.projection.plan(opened.files).reads


def _fill_one(filled: _Filled, numbers: dict[int, int], position: int, sight: _Sight) -> None:
    opened, reads = sight
    for read in reads:
        reader = opened.file(read.file)
        if not isinstance(reader, FileReader):
            continue
        for field in read.fields:
            cards = reader.cards(field) if id(field) in numbers else None
            if cards is not None:
                filled.slots.fill(position, numbers[id(field)], cards)
        filled.kept.append(reader)
        filled.weight += min(opened.files[read.file].size or MAPPED_WEIGHT, MAPPED_WEIGHT)
    filled.ready[position] = 1
