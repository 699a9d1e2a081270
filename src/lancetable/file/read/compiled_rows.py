"""Single rows of mapped data files through the compiled gather, of one file or of many at once.

Pages are opened when the first of their rows is asked for. A page that the gather cannot read, or
that is damaged, makes its column unreadable this way; the file's own reader then reads it, or says
what is wrong.
"""

import ctypes
import threading
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias, cast

import pyarrow as pa

from lancetable.errors import LanceTableError
from lancetable.file.drive import run
from lancetable.file.error_context import DECODING_FAILURES
from lancetable.file.leaf_info import LeafInfo, LeafPlan, leaf_infos
from lancetable.file.read.threads import free_threads
from lancetable.format.encoding.assemble import LeafRun, assemble
from lancetable.format.encoding.base import Integers, Page
from lancetable.format.encoding.gather import (
    FlatTake,
    Missing,
    Places,
    Words,
    gather,
    gather_plan,
    is_flat,
    places_of,
)
from lancetable.format.encoding.kernels.addressing import Gather, Values
from lancetable.format.encoding.kernels.records import PageRecord, SlotRecord
from lancetable.format.encoding.layout import Layout, OpenPage
from lancetable.format.encoding.page_records import full_layers, record_of
from lancetable.format.limits import read_limits
from lancetable.format.schema.model import Field
from lancetable.store import ReadableFile, will_need

OpenPages: TypeAlias = dict[tuple[int, int], OpenPage]
"""The open pages of a mapped file by the numbers of their column and of themselves."""

VALUES = 1
"""The buffer with the chunks, of which only a few are needed."""
MOST_ASKED = 4 * 1024 * 1024
_OPENING = threading.Lock()


class LeafRecords:
    """The records of a leaf's pages in one file, completed as pages are asked for."""

    __slots__ = ("_file", "_kept", "_open_pages", "_plan", "records")

    def __init__(self, plan: LeafPlan, file: ReadableFile, open_pages: OpenPages) -> None:
        """Prepare to read; ``open_pages`` is shared with the file's reader, which holds these.

        They do not hold the reader: a circle is freed late, and its file stays mapped.
        """
        self._plan = plan
        self._file = file
        self._open_pages = open_pages
        self._kept: dict[int, object] = {}
        pages = plan.column.pages
        self.records = (PageRecord * len(pages))()
        for record, page in zip(self.records, pages, strict=True):
            record.rows, record.first_row = page.rows, page.first_row

    def ask(self, index: int) -> None:
        """Start reading the page's own tables from the disk."""
        for number, buffer in enumerate(self._plan.column.pages[index].buffers):
            if number != VALUES and buffer.size <= MOST_ASKED:
                will_need(self._file, *buffer.whole())

    def open(self, index: int) -> None:
        """Complete the record of a page, once: compiled code may be reading it from then on."""
        with _OPENING:
            if self.records[index].kind == Values.UNOPENED:
                self._complete(index)

    def _complete(self, index: int) -> None:
        record = self.records[index]
        page = self._plan.column.pages[index]
        layers = self._plan.layers
        try:
            opened = opened_page(self._file, self._open_pages, self._plan.number, index, page)
            made = run(self._file, record_of(page, opened, self._plan.kind))
            is_fit = full_layers(page.description.layers) == layers  # type: ignore[attr-defined]
        except (LanceTableError, *DECODING_FAILURES):
            made, is_fit = None, False
        if made is None or not is_fit:
            record.kind = Values.UNREADABLE
            return
        self._kept[index] = made.kept
        # The code comes last: another thread may be looking.
        kind, made.record.kind = made.record.kind, Values.UNOPENED
        ctypes.pointer(record)[0] = made.record
        record.kind = kind


def opened_page(
    file: ReadableFile, open_pages: OpenPages, number: int, index: int, page: Page
) -> OpenPage:
    """Return a page of a mapped file, opened if it was not."""
    opened = open_pages.get((number, index))
    if opened is None:
        layout = cast("Layout", page.description)
        opened = open_pages[number, index] = run(file, layout.open(page, is_mapped=True))
    return opened


FieldRecords: TypeAlias = Sequence[LeafRecords]
"""The records of all leaves of a field in one file."""


class GatherSlots:
    """Fields of several files: a slot for each file, filled when it is first needed."""

    __slots__ = ("_edges", "_infos", "_leaf_records", "_library", "_plan", "_records", "fields")

    def __init__(self, library: Gather, fields: Sequence[Field], slots: int) -> None:
        self._library = library
        self.fields = [field for field in fields if is_gatherable(field)]
        self._infos = [leaf_infos(field) for field in self.fields]
        leaves = [info.gather for infos in self._infos for info in infos]
        self._edges = list(accumulate(map(len, self._infos), initial=0))
        self._records = [(SlotRecord * slots)() for _ in leaves]
        addresses = [ctypes.addressof(records) for records in self._records]
        known = [leaf for leaf in leaves if leaf is not None]
        self._plan = gather_plan(known, addresses, free_threads)
        self._leaf_records: dict[tuple[int, int], LeafRecords] = {}

    def fill(self, slot: int, number: int, leaf_records: FieldRecords) -> None:
        """Say where a field is in the file of a slot."""
        first = self._edges[number]
        for leaf, made in enumerate(leaf_records, first):
            self._leaf_records[leaf, slot] = made
            record = self._records[leaf][slot]
            record.count = len(made.records)
            record.pages = ctypes.addressof(made.records)

    def read(self, places: Places) -> list[pa.Array | None]:
        """Return for each field its rows; None for a field that must be read another way."""
        runs = gather(self._library, self._plan, places, self._open)
        found: list[pa.Array | None] = []
        first = 0
        for field, infos in zip(self.fields, self._infos, strict=True):
            last = first + len(infos)
            found.append(_joined(field, infos, runs[first:last]))
            first = last
        return found

    def flat(self, starts: Words, ready: Words) -> FlatTake | None:
        """Return what takes rows of all fields at once.

        None when a field has levels of its own, or the size of the result has to be known first.
        """
        if not is_flat(self._plan) or not read_limits().are_sizes_free:
            return None
        return FlatTake(self._library, self._plan, starts, ready)

    def _open(self, missing: Sequence[Missing]) -> None:
        # All are asked for before the first is waited for.
        for leaf, slot, page in missing:
            self._leaf_records[leaf, slot].ask(page)
        for leaf, slot, page in missing:
            self._leaf_records[leaf, slot].open(page)


class FileGather:
    """Single rows of one file."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: dict[tuple[int, ...], tuple[Sequence[Field], GatherSlots]] = {}

    def read(
        self,
        library: Gather,
        fields: Sequence[Field],
        rows: Integers,
        records: Callable[[Field], FieldRecords | None],
    ) -> Sequence[pa.Array | None]:
        """Return the rows of each field; None for a field that must be read another way.

        ``records`` is given each time: a file that held itself would stay mapped when it is let go.
        """
        key = tuple([field.id for field in fields])
        known = self._slots.get(key)
        if known is None or known[0] != fields:
            slots = GatherSlots(library, fields, 1)
            for number, field in enumerate(slots.fields):
                slots.fill(0, number, records(field) or [])
            known = self._slots[key] = (fields, slots)
        found = known[1].read(places_of(rows))
        if len(found) == len(fields):
            return found
        gathered = iter(found)
        return [next(gathered) if is_gatherable(field) else None for field in fields]


def is_gatherable(field: Field) -> bool:
    """Return whether the leaves of a field are of kinds that can be gathered."""
    return all(info.gather is not None for info in leaf_infos(field))


def _joined(
    field: Field, infos: Sequence[LeafInfo], runs: Sequence[LeafRun | None]
) -> pa.Array | None:
    leaves: dict[int, LeafRun] = {}
    for info, found in zip(infos, runs, strict=True):
        if found is None:
            return None
        if info.leaf.depth == 0:
            return found.array
        leaves[info.leaf.field.id] = found
    return assemble(field, leaves)
