"""Find the rows of a table that have the keys of a source.

The source is indexed, the table is scanned: a table of bits over the low digits of all keys rejects
most rows at once, a binary search finds the others, and keys that are only hashed are compared
again. The keys of the source are also recorded in transactions and shown in messages.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import InputError
from lancetable.expression import And, Column, Expression, In
from lancetable.expression.tree import Literals
from lancetable.format.arrays import Offsets
from lancetable.format.encoding.kernels.ordering import ascending_order
from lancetable.format.encoding.kernels.probing import Marks, marks_of, probe
from lancetable.format.encoding.kernels.xxhash import Hashes
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import resolve
from lancetable.fragment.readers import Readers
from lancetable.operations.keys.keys import (
    InsertedKeys,
    KeyCodes,
    are_equal,
    codes_of,
    comparable,
    has_repeats,
    key_hashes,
)
from lancetable.operations.keys.spill import RowBuffer
from lancetable.operations.rows.parts import RowSet, cut_offsets, part_windows, read_rows
from lancetable.scan.columns import bound_predicate
from lancetable.scan.plan import ScanPlan, Window, plan
from lancetable.scan.request import ScanRequest
from lancetable.scan.result import Piece
from lancetable.scan.row_size import measured
from lancetable.scan.small_fragments import live_rows, read_together, small_groups
from lancetable.scan.window import read_parts

_FEWEST_DIGITS = 16
_MOST_DIGITS = 26
_SPARSENESS = 5
LOOKED_UP = 64 * 1024
"""The keys of a source with more rows are not looked up in indices."""


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The keys of some rows of a source, ready to be looked up."""

    codes: npt.NDArray[np.uint64]
    """Ascending, one for each row whose key has no null."""
    rows: Offsets
    """The row of the source that each code belongs to."""
    marks: Marks
    """The low digits of every code."""
    is_unique: bool
    keys: tuple[pa.Array, ...] | None
    """The keys in comparable form, row by row; ``None`` when codes distinguish them."""

    def find_equal(self, columns: Sequence[pa.Array]) -> tuple[Offsets, Offsets]:
        """Return pairs of places in keys, in comparable form, and rows with the same key."""
        places, rows = self.find(codes_of(columns))
        if self.keys is not None and len(places):
            theirs = [column.take(pa.array(places)) for column in columns]
            own = [key.take(pa.array(rows)) for key in self.keys]
            same = are_equal(theirs, own)
            places, rows = places[same], rows[same]
        return places, rows

    def find(self, codes: KeyCodes) -> tuple[Offsets, Offsets]:
        """Return pairs of places in the codes and rows of the source; keys may still differ."""
        places = probe(codes.values, self.marks)
        if codes.is_valid is not None:
            places = places[codes.is_valid[places]]
        if not len(places) or not len(self.codes):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        wanted = codes.values[places]
        left = np.searchsorted(self.codes, wanted)
        if self.is_unique:
            left[left == len(self.codes)] = 0
            same = self.codes[left] == wanted
            return places[same], self.rows[left[same]]
        counts = np.searchsorted(self.codes, wanted, side="right") - left
        ends = np.cumsum(counts)
        within = np.arange(int(ends[-1])) - np.repeat(ends - counts, counts)
        return np.repeat(places, counts), self.rows[np.repeat(left, counts) + within]


def index_keys(columns: Sequence[pa.Array]) -> KeyIndex:
    """Index the keys of all rows of a source, in comparable form."""
    codes = codes_of(columns)
    rows = np.arange(len(codes.values))
    if codes.is_valid is not None:
        rows = rows[codes.is_valid]
    values = codes.values[rows]
    order = ascending_order(values)
    values, rows = values[order], rows[order]
    size = max(len(values), 1).bit_length() + _SPARSENESS
    marks = marks_of(values, min(max(size, _FEWEST_DIGITS), _MOST_DIGITS))
    is_unique = not has_repeats(values)
    keys = None if codes.is_exact else tuple(columns)
    return KeyIndex(values, rows, marks, is_unique, keys)


class Pairs(NamedTuple):
    """Rows of one fragment, ascending, and the rows of the source with the same key."""

    offsets: Offsets
    rows: Offsets


def join_part(
    readers: Readers, on: tuple[str, ...], index: KeyIndex, named: Mapping[int, RowSet]
) -> Iterator[tuple[int, Pairs]]:
    """Yield the live rows of a part that have a key of the source, by the fragment's position.

    Of fragments in ``named`` only these rows are compared.
    """
    planned = plan(readers.source.manifest.schema, ScanRequest(on))
    fragments = readers.source.manifest.fragments
    without = {position for position, one in enumerate(fragments) if one.id in named}
    every = chain(
        _join_named(planned, readers, on, index, named),
        _join_windows(planned, readers, on, index, without),
    )
    for position, parts in groupby(every, lambda one: one[0]):
        found = [pairs for _, pairs in parts]
        yield (
            position,
            Pairs(
                np.concatenate([pairs.offsets for pairs in found]),
                np.concatenate([pairs.rows for pairs in found]),
            ),
        )


def _join_named(
    planned: ScanPlan,
    readers: Readers,
    on: tuple[str, ...],
    index: KeyIndex,
    named: Mapping[int, RowSet],
) -> Iterator[tuple[int, Pairs]]:
    """Yield what was found among the rows that indices name."""
    for position, fragment in enumerate(readers.source.manifest.fragments):
        if fragment.id in named:
            reader = readers[position]
            for offsets in cut_offsets(
                planned, readers, reader.live_among(named[fragment.id].offsets())
            ):
                places, found = _equal(read_rows(planned, reader, offsets), on, index)
                if len(places):
                    yield position, Pairs(offsets[places], found)


def _join_windows(
    planned: ScanPlan,
    readers: Readers,
    on: tuple[str, ...],
    index: KeyIndex,
    without: Container[int],
) -> Iterator[tuple[int, Pairs]]:
    """Yield what was found window by window, small windows together."""
    pace = measured((planned.late,), readers.source)
    every = (one for one in part_windows(planned, readers) if one.fragment not in without)
    for windows in small_groups(every):
        piece = read_together(planned, readers, windows)
        rows = None if piece is None else live_rows(readers, windows)
        if piece is not None and rows is not None:
            places, found = _equal(piece, on, index)
            for position, offsets, matches in rows.at(places).by_fragment(found):
                yield position, Pairs(offsets, matches)
            continue
        parts = (read_parts(planned, readers, window, pace) for window in windows)
        for part, piece in chain.from_iterable(parts):
            places, found = _equal(piece, on, index)
            if len(places):
                offsets = _offsets(readers, part, places, piece.rows)
                yield part.fragment, Pairs(offsets, found)


def _equal(piece: Piece, on: tuple[str, ...], index: KeyIndex) -> tuple[Offsets, Offsets]:
    """Return the places in a piece that have a key of the source, and its rows."""
    if not piece.rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    columns = [
        comparable(chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks), name)
        for chunks, name in zip(piece.columns, on, strict=True)
    ]
    return index.find_equal(columns)


def _offsets(readers: Readers, window: Window, places: Offsets, live: int) -> Offsets:
    """Return the offsets of places among the live rows of a window."""
    if live == window.stop - window.start:
        return places + window.start
    return readers[window.fragment].live_offsets(window.start, window.stop)[places]


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The key columns of a source, each by the steps from the top."""

    paths: tuple[tuple[str, ...], ...]

    @property
    def columns(self) -> list[str]:
        """The top-level columns that the keys are in."""
        return list(dict.fromkeys(path[0] for path in self.paths))

    def of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the keys of a batch in comparable form."""
        return [comparable(_below(batch, path), ".".join(path)) for path in self.paths]

    def index(self, kept: RowBuffer) -> KeyIndex:
        """Index the keys of all rows."""
        pieces = [self.of(batch) for batch in kept.batches(self.columns)]
        if not pieces:
            pieces = [self.of(kept.take(np.empty(0, np.int64), self.columns))]
        return index_keys([pa.concat_arrays(column) for column in zip(*pieces, strict=True)])

    def predicate(self, kept: RowBuffer, schema: Schema) -> Expression | None:
        """Return a bound predicate that is true for all rows of a table with a key of the source.

        None when the source is large, or when its keys are of types whose equal values differ.
        """
        if kept.rows > LOOKED_UP:
            return None
        tests = []
        for path in self.paths:
            chunks = [_below(batch, path) for batch in kept.batches(self.columns)]
            values = pa.chunked_array(chunks).unique().drop_null()
            if _is_exact(values.type):
                tests.append(In(Column(path), Literals(values)))
        return bound_predicate(And(tuple(tests)), schema) if tests else None

    def shown(self, kept: RowBuffer, rows: Offsets) -> str:
        """Return some keys as text."""
        batch = kept.take(rows[: 4 * _SHOWN], self.columns)
        values = zip(*(_below(batch, path).to_pylist() for path in self.paths), strict=True)
        one = len(self.paths) == 1
        distinct = list(dict.fromkeys(value[0] if one else value for value in values))
        return ", ".join(repr(value) for value in distinct[:_SHOWN])

    def record(
        self, kept: RowBuffer, rows: Offsets, keys: InsertedKeys, *, allows_duplicates: bool
    ) -> None:
        """Record the keys of rows that are inserted; one with a null in it equals no other.

        Raises:
            InputError: a key is inserted twice.
        """
        columns = self.of(kept.take(rows, self.columns))
        codes = codes_of(columns)
        values = codes.values
        if codes.is_valid is not None:
            valid = np.flatnonzero(codes.is_valid)
            columns = [column.take(pa.array(valid)) for column in columns]
            rows, values = rows[valid], values[valid]
        if not allows_duplicates:
            again = rows[_repeated(values, columns)]
            if len(again):
                raise InputError(
                    "several rows of the source would be inserted with one key: "
                    f"{self.shown(kept, again)}; keep one row for each key, or allow duplicates"
                )
        keys.add(key_hashes(columns))


def source_keys(schema: Schema, on: Sequence[str]) -> SourceKeys:
    """Return where a source of this schema has its keys."""
    return SourceKeys(tuple(tuple(one.name for one in resolve(schema, name)) for name in on))


def _is_exact(type_: pa.DataType) -> bool:
    """Return whether equal values of a type have the same bytes."""
    is_text = pt.is_string(type_) or pt.is_large_string(type_)
    is_bytes = pt.is_binary(type_) or pt.is_large_binary(type_)
    return bool(is_text or is_bytes or pt.is_integer(type_) or pt.is_date(type_))


def _below(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    array = batch.column(path[0])
    for name in path[1:]:
        array = pc.struct_field(array, [name])
    return array


def _repeated(codes: Hashes, columns: Sequence[pa.Array]) -> Offsets:
    """Return the places of keys that repeat an earlier one."""
    order = ascending_order(codes)
    if not has_repeats(codes[order]):
        return np.empty(0, np.int64)
    same = codes[order][1:] == codes[order][:-1]
    suspects = np.unique(np.concatenate([order[:-1][same], order[1:][same]]))
    seen: set[tuple[object, ...]] = set()
    again = []
    parts = [column.take(pa.array(suspects)).to_pylist() for column in columns]
    for place, key in zip(suspects.tolist(), zip(*parts, strict=True), strict=True):
        if key in seen:
            again.append(place)
        seen.add(key)
    return np.array(again, np.int64)
