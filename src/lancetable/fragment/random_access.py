"""Single rows of any fragments at once, through the compiled gather.

Files are opened when the first of their rows is asked for, and stay open while not too many are.
The sizes of the mapped files that hold wanted rows are checked before each read.
What cannot be read this way is left out: other readers do that, fragment by fragment.
"""

import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lancetable.file import FileReader
from lancetable.file.read.compiled_rows import GatherSlots, is_gatherable
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.gather import Places, places_of
from lancetable.format.encoding.kernels.addressing import Gather
from lancetable.format.schema.model import Field
from lancetable.fragment.files import BUDGET, MAPPED_WEIGHT
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import FileFields, Projection
from lancetable.store import MemoryFile, mapped_file

Gathered: TypeAlias = Sequence[pa.Array | None]
"""The columns of a projection's fields; None for those that must be read another way."""

_Wanted: TypeAlias = tuple[OpenFragment, Sequence[FileFields]]
"""A fragment, and what is read of its files."""

FEW_ROWS = 256
"""Up to so many rows a set of their fragments is made faster than an array of flags."""


class _Filled:
    """Slots of which some are filled."""

    __slots__ = ("flat", "kept", "mapped", "ready", "ready_at", "slots", "weight")

    def __init__(self, library: Gather, projection: Projection, starts: "array[int]") -> None:
        fragments = len(starts) - 1
        self.slots = GatherSlots(library, projection.fields, fragments)
        self.ready = array("B", bytes(fragments + 1))
        is_whole = len(self.slots.fields) == len(projection.fields)
        self.flat = self.slots.flat(starts, self.ready) if is_whole else None
        self.ready_at = self.ready.buffer_info()[0]
        self.kept: list[FileReader] = []
        self.mapped: dict[int, list[MemoryFile]] = {}
        self.weight = 0

    def check_sizes(self, positions: Iterable[int]) -> None:
        """Check that the mapped files of fragments still have all their bytes.

        Raises:
            CorruptError: one was cut, and reading it would end the process.
        """
        for position in positions:
            for file in self.mapped.get(position, ()):
                file.check_size()


class TableGather:
    """Single rows of one projection of a table."""

    __slots__ = (
        "_filled",
        "_library",
        "_lock",
        "_numbers",
        "_opened",
        "_starts",
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
        places = enumerate(projection.fields)
        self._numbers = [place for place, field in places if is_gatherable(field)]

    def gives_batches(self, types: Sequence[pa.DataType]) -> bool:
        """Return whether whole batches can be made, with columns of these types."""
        flat = self._filled.flat
        return flat is not None and flat.types == list(types)

    def numbered_batch(self, rows: "array[int]", schema: pa.Schema) -> pa.RecordBatch | None:
        """Return rows by their running number in a table without deletions, in one batch.

        None when they have to be read another way. That way may find that there is no such row.
        """
        filled = self._filled
        if filled.flat is None:
            return None
        if filled.mapped:
            if len(rows) > 1 and len(self._starts) > 2:
                missing, positions, places = self._located(filled, rows)
                if missing:
                    return None
                filled.check_sizes(self._distinct(positions))
                return filled.flat.placed(places, schema)
            filled.check_sizes((bisect_right(self._starts, rows[0]) - 1,))
        return filled.flat.numbered(rows, schema)

    def placed_batch(
        self, positions: Integers, offsets: Integers, schema: pa.Schema
    ) -> pa.RecordBatch | None:
        """Return rows by the places of their fragments and their offsets in them, likewise."""
        filled = self._filled
        if filled.flat is None:
            return None
        if filled.mapped:
            filled.check_sizes(self._distinct(positions))
        return filled.flat.placed(places_of(offsets, positions), schema)

    def by_number(self, rows: "array[int]") -> Gathered | None:
        """Return rows by their running number in a table without deletions.

        None when one of them is not there.
        """
        filled = self._filled
        missing, positions, places = self._located(filled, rows)
        if missing < 0:
            return None
        if missing or filled.mapped:
            distinct = self._distinct(positions)
            filled = self._fill(distinct) if missing else filled
            filled.check_sizes(distinct)
        return self._read(filled, places)

    def by_place(self, positions: Integers, offsets: Integers) -> Gathered:
        """Return rows by the places of their fragments and their offsets in them."""
        distinct = self._distinct(positions)
        filled = self._fill(distinct)
        filled.check_sizes(distinct)
        return self._read(filled, places_of(offsets, positions))

    def _located(self, filled: _Filled, rows: "array[int]") -> tuple[int, Integers, Places]:
        """Return how many rows are in fragments that are not filled, and the places of all.

        The number is negative when one of the rows is not there.
        """
        count = len(rows)
        places = array("q", bytes(16 * count))
        positions = places.buffer_info()[0]
        offsets = positions + 8 * count
        missing = self._library.places(
            rows.buffer_info()[0],
            count,
            self._starts.buffer_info()[0],
            len(self._starts) - 1,
            filled.ready_at,
            positions,
            offsets,
        )
        found = np.frombuffer(places, np.int64, count)
        return missing, found, Places(positions, offsets, count, places)

    def _distinct(self, positions: Integers) -> Collection[int]:
        """Return each position once."""
        if len(positions) <= FEW_ROWS:
            return set(positions.tolist())
        is_named = np.zeros(len(self._starts), np.bool_)
        is_named[positions] = True
        named: list[int] = np.flatnonzero(is_named).tolist()
        return named

    def _read(self, filled: _Filled, places: Places) -> Gathered:
        found = filled.slots.read(places)
        if len(found) == len(self.projection.fields):
            return found
        columns: list[pa.Array | None] = [None] * len(self.projection.fields)
        for place, column in zip(self._numbers, found, strict=True):
            columns[place] = column
        return columns

    def _fill(self, positions: Collection[int]) -> _Filled:
        with self._lock:
            filled = self._filled
            wanted = [position for position in positions if not filled.ready[position]]
            if filled.weight > BUDGET:
                filled = _Filled(self._library, self.projection, self._starts)
                wanted = [*positions]
                self._filled = filled
            found = [self._wanted(position) for position in wanted]
            # The metadata of all files is asked for before the first of them is waited for.
            for opened, reads in found if len(found) > 1 else ():
                for read in reads:
                    opened.data_files.ask(opened.files[read.file])
            numbers = {field: number for number, field in enumerate(filled.slots.fields)}
            for position, one in zip(wanted, found, strict=True):
                _fill_one(filled, numbers, position, one)
            return filled

    def _wanted(self, position: int) -> _Wanted:
        opened = self._opened(position)
        return opened, self.projection.plan(opened.files).reads


def _fill_one(filled: _Filled, numbers: dict[Field, int], position: int, wanted: _Wanted) -> None:
    opened, reads = wanted
    for read in reads:
        reader = opened.file(read.file)
        if not isinstance(reader, FileReader):
            continue
        for field in read.fields:
            number = numbers.get(field)
            records = None if number is None else reader.records(field)
            if number is not None and records is not None:
                filled.slots.fill(position, number, records)
        filled.kept.append(reader)
        mapped = mapped_file(reader.file)
        if mapped is not None:
            filled.mapped.setdefault(position, []).append(mapped)
        filled.weight += min(opened.files[read.file].size or MAPPED_WEIGHT, MAPPED_WEIGHT)
    filled.ready[position] = 1
