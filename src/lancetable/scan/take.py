"""Take single rows by number, address or row id, in any order, any of them more than once."""

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import InputError
from lancetable.format.limits import read_limits
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.format.schema.model import Field
from lancetable.fragment.blobs import BlobFile, blob_files, read_payloads
from lancetable.fragment.projection import ROW_ADDRESS, Projection
from lancetable.fragment.random_access import Gathered, TableGather
from lancetable.fragment.readers import Readers
from lancetable.fragment.select import Columns, reorder
from lancetable.scan.nulls import check_required
from lancetable.scan.plan import ScanPlan
from lancetable.scan.result import Piece, finish, table_of
from lancetable.store import spread

Integers: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]] | pa.Array | pa.ChunkedArray

Addresses: TypeAlias = npt.NDArray[np.uint64]

SHOWN = 5


class Taker:
    """Single rows of one plan: what can be prepared before any of them is named."""

    __slots__ = ("_batches", "_numbered", "_plan", "_readers")

    def __init__(self, plan: ScanPlan, readers: Readers) -> None:
        """Prepare to take.

        Raises:
            LimitError: one row exceeds the limit on a row.
        """
        read_limits().check_row(plan.late_bytes)
        self._plan = plan
        self._readers = readers
        self._batches = _whole_batches(plan, readers)
        # With deletions the number of a row does not tell its place.
        self._numbered = None if readers.has_deletions else self._batches

    def by_offset(self, offsets: Numbers) -> pa.Table:
        """Return rows by their running number among the live rows of the table.

        Raises:
            InputError: there is no row with such a number.
        """
        gather = self._numbered
        if gather is not None and type(offsets) is list:
            rows = _plain_numbers(offsets)
            batch = None if rows is None else gather.numbered_batch(rows, self._plan.schema)
            if batch is not None:
                return _checked(self._plan, pa.Table.from_batches((batch,)))
        return self._by_offset(offsets)

    def _by_offset(self, offsets: Numbers) -> pa.Table:
        plan, readers = self._plan, self._readers
        read_limits().check_batch(len(offsets) * self._plan.late_bytes, len(offsets))
        gathered = _by_number(plan, readers, offsets)
        if gathered is not None:
            return gathered
        if len(offsets) == 1 and type(offsets[0]) is int:
            return self._one(offsets[0])
        numbers = _integers(offsets, "offset", np.int64)
        _check_offsets(numbers, readers.starts[-1])
        return self.placed(*_places(readers, numbers))

    def _one(self, row: int) -> pa.Table:
        """Return one row, found without the detour over arrays of all fragments."""
        plan, readers = self._plan, self._readers
        if not 0 <= row < readers.starts[-1]:
            _check_offsets(np.array([row], object), readers.starts[-1])
        position, offset = readers.locate(row)
        if self._batches is not None:
            return self.placed(np.array([position]), np.array([offset]))
        reader = readers[position]
        columns = reader.read(plan.late, range(offset, offset + 1))
        for slot, field in plan.blobs:
            columns[slot] = read_payloads(reader.opened, field, columns[slot])
        return table_of(plan, finish(plan, 1, columns))

    def by_address(self, addresses: Numbers) -> pa.Table:
        """Return rows by their address.

        Raises:
            InputError: an address belongs to no live row.
        """
        wanted = _integers(addresses, "row address", np.uint64)
        return self._at(wanted, wanted, "row address")

    def by_row_id(self, row_ids: Numbers) -> pa.Table:
        """Return rows by their row id.

        Raises:
            InputError: a row id belongs to no live row.
        """
        wanted = _integers(row_ids, "row id", np.uint64)
        index = self._readers.row_id_index
        if index is None:
            return self._at(wanted, wanted, "row id")
        addresses, is_known = index.find(wanted)
        if not is_known.all():
            raise _unknown("row id", wanted[~is_known])
        return self._at(addresses, wanted, "row id")

    def _at(self, addresses: Addresses, named: Addresses, what: str) -> pa.Table:
        return self.placed(*_places_of_addresses(self._readers, addresses, named, what))

    def placed(self, positions: Integers, offsets: Integers) -> pa.Table:
        """Return live rows by the positions of their fragments and their offsets in them."""
        if self._batches is not None and len(positions):
            batch = self._batches.placed_batch(positions, offsets, self._plan.schema)
            if batch is not None:
                return _checked(self._plan, pa.Table.from_batches((batch,)))
        read_limits().check_batch(len(offsets) * self._plan.late_bytes, len(offsets))
        return _table(self._plan, self._readers, positions, offsets)


def _checked(plan: ScanPlan, table: pa.Table) -> pa.Table:
    for number in plan.required:
        check_required(plan.schema.field(number), table.column(number).chunks)
    return table


def _whole_batches(plan: ScanPlan, readers: Readers) -> TableGather | None:
    """Return what gives rows as they are in the result; None when more has to be done to them."""
    is_direct = plan.is_plain and not (plan.extended or plan.blobs or plan.late.system)
    gather = readers.gather(plan.late) if is_direct else None
    return gather if gather is not None and gather.gives_batches(plan.types) else None


def _plain_numbers(offsets: Sequence[int]) -> "array[int] | None":
    """Return numbers as an array; None when the long way round has to tell what is wrong."""
    if not offsets or type(offsets[0]) is not int:
        return None
    try:
        return array("q", offsets)
    except (TypeError, OverflowError):
        return None


def _by_number(plan: ScanPlan, readers: Readers, offsets: Numbers) -> pa.Table | None:
    """Take rows whose places follow from their numbers; None when that is not so."""
    if plan.blobs or readers.has_deletions or not isinstance(offsets, list | tuple | range):
        return None
    gather = readers.gather(plan.late)
    rows = _plain_numbers(offsets)
    if gather is None or rows is None:
        return None
    found = gather.by_number(rows)
    if found is None:
        return None
    if plan.late.system or any(column is None for column in found):
        places = _places(readers, np.frombuffer(rows, np.int64))
        columns = _with_rest(plan, readers, found, *places)
    else:
        columns = [[column] for column in found]
    return table_of(plan, finish(plan, len(rows), columns))


def _with_rest(
    plan: ScanPlan, readers: Readers, found: Gathered, positions: Integers, offsets: Integers
) -> Columns:
    """Read what was not gathered, and put everything in the order of the plan."""
    fields = plan.late.fields
    rest = [field for field, column in zip(fields, found, strict=True) if column is None]
    if not rest and not plan.late.system:
        return [[column] for column in found]
    others = iter(_read(plan, readers, Projection(rest, plan.late.system), positions, offsets))
    columns = [next(others) if column is None else [column] for column in found]
    return [*columns, *others]


def _integers(numbers: Numbers, what: str, dtype: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Turn what the caller gave into an array, minding the sign."""
    if isinstance(numbers, pa.Array | pa.ChunkedArray):
        numbers = numbers.to_numpy()
    found = np.asarray(numbers)
    if found.size == 0:
        return np.empty(0, dtype)
    if found.ndim == 1 and found.dtype.kind in "iu":
        if found.dtype.kind == "i" and int(found.min()) < 0:
            raise InputError(f"{what} {int(found.min())} is negative; count from 0")
        if int(found.max()) <= np.iinfo(dtype).max:
            return found.astype(dtype)
    raise InputError(f"{what} must be a list of whole numbers below {np.iinfo(dtype).max}")


def _check_offsets(numbers: npt.NDArray[Any], rows: int) -> None:
    if not len(numbers):
        return
    if int(numbers.min()) < 0:
        raise InputError(f"offset {int(numbers.min())} is negative; count from 0")
    beyond = numbers[numbers >= rows]
    if len(beyond):
        raise InputError(f"there is no row {_some(beyond)}; the table has {rows} rows")


def _unknown(what: str, wanted: npt.NDArray[Any]) -> InputError:
    return InputError(f"no live row has the {what} {_some(wanted)}")


def _some(wanted: npt.NDArray[Any]) -> str:
    shown = ", ".join(str(int(number)) for number in wanted[:SHOWN])
    more = len(wanted) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _places(readers: Readers, numbers: Integers) -> tuple[Integers, Integers]:
    """Return the fragment's position and the offset within it for each live row number."""
    starts = np.array(readers.starts)
    positions = np.searchsorted(starts, numbers, side="right") - 1
    offsets = numbers - starts[positions]
    if not readers.has_deletions:
        return positions, offsets
    for position in readers.with_deletions(np.unique(positions).tolist()):
        deletions = readers[position].opened.deletions
        if deletions is not None:
            of_fragment = positions == position
            offsets[of_fragment] = deletions.physical(offsets[of_fragment])
    return positions, offsets


def _places_of_addresses(
    readers: Readers, addresses: Addresses, named: Addresses, what: str
) -> tuple[Integers, Integers]:
    """Return the place of each address; ``named`` is what the caller calls the rows."""
    offsets = (addresses & np.uint64(MAX_OFFSET)).astype(np.int64)
    fragments = (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64)
    positions = np.empty(len(offsets), np.int64)
    is_live = np.ones(len(offsets), np.bool_)
    named_ids = np.unique(fragments).tolist()
    known = readers.positions
    readers.with_deletions(known[one] for one in named_ids if one in known)
    for fragment_id in named_ids:
        of_fragment = fragments == fragment_id
        position = readers.positions.get(fragment_id)
        if position is None:
            is_live[of_fragment] = False
            continue
        positions[of_fragment] = position
        opened = readers[position].opened
        is_live[of_fragment] = offsets[of_fragment] < opened.rows
        if opened.deletions is not None:
            is_live[of_fragment] &= ~opened.deletions.are(offsets[of_fragment])
    if not is_live.all():
        raise _unknown(what, named[~is_live])
    return positions, offsets


def _table(plan: ScanPlan, readers: Readers, positions: Integers, offsets: Integers) -> pa.Table:
    if not len(positions):
        return table_of(plan, _nothing(plan))
    gather = None if plan.blobs else readers.gather(plan.late)
    if gather is None:
        columns = _read(plan, readers, plan.late, positions, offsets)
    else:
        found = gather.by_place(positions, offsets)
        columns = _with_rest(plan, readers, found, positions, offsets)
    return table_of(plan, finish(plan, len(positions), columns))


def _read(
    plan: ScanPlan,
    readers: Readers,
    projection: Projection,
    positions: Integers,
    offsets: Integers,
) -> Columns:
    """Read rows fragment by fragment, and bring them into their order."""
    keys = positions << OFFSET_BITS | offsets
    if bool((keys[1:] > keys[:-1]).all()):
        return _gather(plan, readers, projection, keys)
    keys, places = _distinct(keys)
    return reorder(_gather(plan, readers, projection, keys), places)


def _distinct(keys: Integers) -> tuple[Integers, Integers]:
    """Return the keys ascending, each once, and where in them each of the given ones stands."""
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    is_first = np.empty(len(keys), np.bool_)
    is_first[0] = True
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    places = np.empty(len(keys), np.int64)
    places[order] = np.cumsum(is_first) - 1
    return ascending[is_first], places


def _nothing(plan: ScanPlan) -> Piece:
    return Piece(0, [[] for _ in plan.types])


def _gather(plan: ScanPlan, readers: Readers, projection: Projection, keys: Integers) -> Columns:
    """Read the rows of each fragment; keys are its position and the offset, ascending."""
    positions = keys >> OFFSET_BITS
    offsets = keys & MAX_OFFSET
    edges = [0, *(np.flatnonzero(positions[1:] != positions[:-1]) + 1).tolist(), len(keys)]
    columns: Columns = [[] for _ in range(len(projection))]

    def read(part: tuple[int, int]) -> Columns:
        start, stop = part
        reader = readers[int(positions[start])]
        found = reader.read(projection, offsets[start:stop])
        if projection is plan.late:
            for slot, field in plan.blobs:
                found[slot] = read_payloads(reader.opened, field, found[slot])
        return found

    for found in spread(read, pairwise(edges), readers.source.store.width):
        for column, chunks in zip(columns, found, strict=True):
            column.extend(chunks)
    return columns


def open_blobs(
    readers: Readers, field: Field, rows: pa.Table, *, allow_external: bool
) -> list[BlobFile | None]:
    """Return one file per row of a table that holds descriptors, then row addresses.

    Raises:
        CorruptError: a descriptor points outside its file.
        InputError: a blob lies outside the table, and that was not allowed.
    """
    descriptors = rows.column(0).combine_chunks()
    addresses = rows.column(ROW_ADDRESS).to_numpy()
    fragments = (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64)
    found: list[BlobFile | None] = [None] * len(descriptors)
    for fragment_id in np.unique(fragments).tolist():
        places = np.flatnonzero(fragments == fragment_id)
        opened = readers[readers.positions[fragment_id]].opened
        files = blob_files(
            opened, field, descriptors.take(pa.array(places)), allow_external=allow_external
        )
        for place, file in zip(places.tolist(), files, strict=True):
            found[place] = file
    return found
