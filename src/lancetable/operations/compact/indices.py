"""Rewrite index segments after rows moved: replace the addresses in their files.

=======  ===========================================================================================
kind     files of the segment
=======  ===========================================================================================
btree    ``page_data.lance``: ``values`` in order, and the address of each in ``ids``;
         ``page_lookup.lance``: first and last value and number of nulls of each ``batch_size`` rows
bitmap   ``bitmap_page_lookup.lance``: ``keys``, and in ``bitmaps`` the addresses of each: a number
         of entries (u32), each an upper half (u32), a size (u32) and a roaring bitmap of so many
         bytes; size 0 means all rows of the fragment
=======  ===========================================================================================

Segments of other kinds are left as they are and do not describe the new fragments.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import RewriteGroup, RewrittenIndex
from lancetable.errors import CorruptError
from lancetable.file.reader import FileReader
from lancetable.file.writer import FileWriter
from lancetable.format.manifest import IndexFile, IndexSegment
from lancetable.format.manifest.indices.kinds import holds_row_ids, is_known, is_system, kind_of
from lancetable.format.manifest.names import index_folder
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.manifest.roaring import decode_bitmap, encode_bitmap
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.format.schema.model import Schema
from lancetable.fragment.deletions import load_deletions
from lancetable.operations.compact.order import Order
from lancetable.operations.rows.move_rows import has_stable_row_ids

Addresses: TypeAlias = npt.NDArray[np.uint64]
_GONE = np.uint64(2**64 - 1)
_ROWS_AT_A_TIME = 128 * 1024
_USUAL_PAGE = 4096


class MovedRows:
    """The new address of every row of some fragments."""

    def __init__(self, base: Snapshot, reuse: FragmentReuse | None) -> None:
        self._base = base
        self._reuse = reuse
        self._new: dict[int, Addresses] = {}

    def add(self, group: RewriteGroup, order: Order | None) -> None:
        """Take note of a group, whose new fragments have their ids."""
        places = np.concatenate(
            [
                np.arange(one.physical_rows, dtype=np.uint64) + np.uint64(one.id << OFFSET_BITS)
                for one in group.new_fragments
            ]
            or [np.empty(0, np.uint64)]
        )
        if order is not None:
            by_rank = np.empty_like(places)
            by_rank[order] = places
            places = by_rank
        first = 0
        for fragment in group.old_fragments:
            live = np.ones(fragment.physical_rows, np.bool_)
            if fragment.deletion_file is not None:
                gone = load_deletions(
                    self._base, fragment, fragment.deletion_file, fragment.physical_rows
                )
                live[gone.offsets] = False
            rows = int(np.count_nonzero(live))
            new = np.full(fragment.physical_rows, _GONE)
            new[live] = places[first : first + rows]
            self._new[fragment.id] = new
            first += rows

    def translate(self, addresses: Addresses) -> Addresses:
        """Return the new addresses of rows; those that are gone have an address that no row has.

        Raises:
            CorruptError: an address names a row that its fragment does not have.
        """
        if self._reuse is not None:
            addresses, kept = self._reuse.translate(addresses)
            addresses[~kept] = _GONE
        ids = (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64)
        offsets = (addresses & np.uint64(MAX_OFFSET)).astype(np.int64)
        found = addresses.copy()
        for id_ in np.unique(ids).tolist():
            new = self._new.get(id_)
            if new is None:
                continue
            here = ids == id_
            if int(offsets[here].max()) >= new.size:
                raise CorruptError(f"an index names a row that fragment {id_} does not have")
            found[here] = new[offsets[here]]
        return found

    def every_row(self, fragment_id: int) -> Addresses | None:
        """Return the old addresses of all rows of a fragment that moved."""
        new = self._new.get(fragment_id)
        if new is None:
            return None
        return np.arange(new.size, dtype=np.uint64) + np.uint64(fragment_id << OFFSET_BITS)


@dataclass(frozen=True, slots=True)
class Remapped:
    """Rewritten segments, and all their files."""

    indices: tuple[RewrittenIndex, ...] = ()
    paths: tuple[str, ...] = ()


def remap_segments(
    snapshot: Snapshot, groups: Sequence[RewriteGroup], orders: Sequence[Order | None]
) -> Remapped:
    """Rewrite the segments of known kinds that describe moved rows, with new addresses.

    Raises:
        CorruptError: a file of a segment is damaged.
        StoreError: a file cannot be read or written; nothing stays behind.
    """
    segments = snapshot.indices()
    is_stable = has_stable_row_ids(snapshot.manifest)
    reuse = load_reuse(snapshot, segments)
    moved = MovedRows(snapshot, reuse)
    for group, order in zip(groups, orders, strict=True):
        moved.add(group, order)
    ids = frozenset(one.id for group in groups for one in group.old_fragments)
    indices: list[RewrittenIndex] = []
    paths: list[str] = []
    try:
        for segment in segments:
            remap = _remap_of(segment)
            if remap is None or is_system(segment) or (is_stable and holds_row_ids(segment)):
                continue
            covered = segment.fragment_ids or frozenset()
            if ids.isdisjoint(covered if reuse is None else reuse.covered(covered)):
                continue
            work = _Work(snapshot, segment, str(uuid4()), paths)
            files = remap(work, moved)
            version = segment.index_version or 0
            indices.append(
                RewrittenIndex(
                    segment.uuid, work.uuid, segment.type_url, segment.details, version, files
                )
            )
    except BaseException:
        for path in paths:
            snapshot.store.delete(path)
        raise
    return Remapped(tuple(indices), tuple(paths))


def _remap_of(
    segment: IndexSegment,
) -> "Callable[[_Work, MovedRows], tuple[IndexFile, ...]] | None":
    return _REMAPS.get(kind_of(segment).name) if is_known(segment) else None


@dataclass(frozen=True, slots=True)
class _Work:
    """A segment on its way to another folder."""

    snapshot: Snapshot
    segment: IndexSegment
    uuid: str
    paths: list[str]

    def open(self, name: str) -> FileReader:
        """Open one of its files."""
        store, folder = self.snapshot.index_place(self.segment)
        path = f"{folder}/{name}"
        return FileReader.open(store.open(path), path)

    def write(
        self, name: str, reader: FileReader, batches: Iterator[pa.RecordBatch], schema: Schema
    ) -> IndexFile:
        """Write a file in place of an old one."""
        path = f"{index_folder(self.uuid)}/{name}"
        self.paths.append(path)
        writer = FileWriter(self.snapshot.store.create(path), schema, reader.version)
        try:
            for batch in batches:
                writer.write(batch)
            return IndexFile(name, writer.finish().size)
        except BaseException:
            writer.abort()
            raise


def _batches(reader: FileReader) -> Iterator[pa.RecordBatch]:
    fields = reader.schema.fields
    for first in range(0, reader.rows, _ROWS_AT_A_TIME):
        rows = range(first, min(first + _ROWS_AT_A_TIME, reader.rows))
        columns = [pa.concat_arrays(chunks) for chunks in reader.read(fields, rows)]
        yield pa.RecordBatch.from_arrays(columns, [field.name for field in fields])


class _Pages:
    """Rows of a btree, cut into pages; the lookup entry of each is recorded."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._held: list[pa.RecordBatch] = []
        self.least: list[pa.Array] = []
        self.largest: list[pa.Array] = []
        self.nulls: list[int] = []

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add rows and yield the pages that are full."""
        self._held.append(batch)
        if sum(one.num_rows for one in self._held) >= self._rows:
            joined = _joined(self._held)
            full = joined.num_rows // self._rows * self._rows
            self._held = [joined.slice(full)]
            yield from self._noted(joined.slice(0, full))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the last page."""
        if self._held:
            yield from self._noted(_joined(self._held))

    def _noted(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        values = batch.column(0)
        for first in range(0, batch.num_rows, self._rows):
            page = values.slice(first, self._rows)
            self.least.append(page.slice(0, 1))
            self.largest.append(page.slice(len(page) - 1))
            self.nulls.append(page.null_count)
        if batch.num_rows:
            yield batch


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [
        pa.concat_arrays([one.column(number) for one in batches])
        for number in range(batches[0].num_columns)
    ]
    return pa.RecordBatch.from_arrays(columns, batches[0].schema.names)


def _btree(work: _Work, moved: MovedRows) -> tuple[IndexFile, ...]:
    data, lookup = work.open("page_data.lance"), work.open("page_lookup.lance")
    pages = _Pages(int(_metadata(lookup).get("batch_size", _USUAL_PAGE)))

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in _batches(data):
            new = moved.translate(batch.column(1).to_numpy().astype(np.uint64))
            kept = new != _GONE
            values = batch.column(0).filter(pa.array(kept))
            yield from pages.take(
                pa.RecordBatch.from_arrays([values, pa.array(new[kept])], ["values", "ids"])
            )
        yield from pages.rest()

    made = work.write("page_data.lance", data, rows(), data.schema)
    table = pa.RecordBatch.from_arrays(
        [
            _single_values(pages.least, lookup, 0),
            _single_values(pages.largest, lookup, 1),
            pa.array(pages.nulls, pa.uint32()),
            pa.array(range(len(pages.nulls)), pa.uint32()),
        ],
        ["min", "max", "null_count", "page_idx"],
    )
    return made, work.write("page_lookup.lance", lookup, iter([table]), lookup.schema)


def _single_values(values: Sequence[pa.Array], reader: FileReader, number: int) -> pa.Array:
    (nothing,) = reader.read([reader.schema.fields[number]], range(0))
    return pa.concat_arrays([*nothing, *values])


def _metadata(reader: FileReader) -> Mapping[str, str]:
    found = reader.schema.metadata
    return {_text(key): _text(value) for key, value in found.items()}


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _bitmap(work: _Work, moved: MovedRows) -> tuple[IndexFile, ...]:
    name = "bitmap_page_lookup.lance"
    stored = work.open(name)
    batches = [_remapped_maps(batch, moved) for batch in _batches(stored)]
    count = sum(batch.num_rows for batch in batches)
    metadata = dict(stored.schema.metadata)
    if "lance:index_stats" in metadata:
        metadata["lance:index_stats"] = json.dumps({"num_bitmaps": count}, separators=(",", ":"))
    schema = stored.schema._replace(metadata=metadata)
    return (work.write(name, stored, iter(batches), schema),)


def _remapped_maps(batch: pa.RecordBatch, moved: MovedRows) -> pa.RecordBatch:
    maps = [_remapped_map(one, moved) for one in batch.column(1).to_pylist()]
    kept = pa.array([one is not None for one in maps], pa.bool_())
    bitmaps = pa.array([one for one in maps if one is not None], batch.column(1).type)
    return pa.RecordBatch.from_arrays([batch.column(0).filter(kept), bitmaps], batch.schema.names)


def _remapped_map(data: bytes | None, moved: MovedRows) -> bytes | None:
    """Return the addresses of one key after rows moved; ``None`` when none is left."""
    whole: list[bytes] = []
    parts: list[Addresses] = []
    for upper, content in _entries(data or b""):
        every = moved.every_row(upper) if not content else None
        if not content and every is None:
            whole.append(upper.to_bytes(4, "little") + bytes(4))
            continue
        if every is None:
            low = decode_bitmap(content, most=1 << OFFSET_BITS).astype(np.uint64)
            every = low | np.uint64(upper << OFFSET_BITS)
        parts.append(every)
    new = moved.translate(np.concatenate(parts)) if parts else np.empty(0, np.uint64)
    new = np.sort(new[new != _GONE])
    entries = list(whole)
    for upper in np.unique(new >> np.uint64(OFFSET_BITS)).tolist():
        here = new[new >> np.uint64(OFFSET_BITS) == upper] & np.uint64(MAX_OFFSET)
        bitmap = encode_bitmap(here.astype(np.uint32))
        entries.append(upper.to_bytes(4, "little") + len(bitmap).to_bytes(4, "little") + bitmap)
    entries.sort(key=lambda entry: int.from_bytes(entry[:4], "little"))
    return len(entries).to_bytes(4, "little") + b"".join(entries) if entries else None


def _entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    at, count = 4, int.from_bytes(data[:4], "little")
    for _ in range(count):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if at + 8 + size > len(data):
            raise CorruptError("the addresses of a key in a bitmap index are cut off")
        yield int.from_bytes(data[at : at + 4], "little"), data[at + 8 : at + 8 + size]
        at += 8 + size


_REMAPS: dict[str, Callable[[_Work, MovedRows], tuple[IndexFile, ...]]] = {
    "btree": _btree,
    "bitmap": _bitmap,
}
"""How segments of each kind are rewritten; those of other kinds are left as they are."""
