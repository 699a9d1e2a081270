"""Match rows of other data to the rows of a table by key columns, row address or row id.

Data with keys is indexed in memory. Values that arrive in the order of row addresses are a stream,
of which only those for the current rows are kept; so neither the fragment nor the values have to
fit into memory.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import ConflictError, InputError, SchemaError
from lancetable.format.schema.model import Field
from lancetable.format.schema.project import resolve
from lancetable.fragment.projection import ROW_ADDRESS, ROW_ID
from lancetable.operations.columns.column_values import JoinMaker
from lancetable.operations.input.assign import assigned, exact_cast
from lancetable.operations.input.fit import read_rows, write_type
from lancetable.operations.input.sources import RowSource
from lancetable.operations.keys.join import index_keys
from lancetable.operations.keys.keys import comparable
from lancetable.operations.keys.spill import RowBuffer, keep, kept_step, kept_type
from lancetable.operations.rows.move_rows import has_stable_row_ids

SYSTEM_KEYS = (ROW_ADDRESS, ROW_ID)
MEMORY_LIMIT = 1024**3


def joined(
    snapshot: Snapshot, data: object, on: Sequence[str], *, is_complete: bool = False
) -> tuple[JoinMaker, list[pa.Field]]:
    """Return a maker of the columns that data has beside its key, and those columns.

    Raises:
        SchemaError: a key column is missing on one of the sides.
        InputError: no key is named.
    """
    schema = snapshot.manifest.schema
    source = read_rows(data, schema)
    fields = new_fields(source.schema, on)
    (kept,) = keep(*keepable(source), MEMORY_LIMIT)
    keys = [
        comparable(exact_cast(name, _column(kept, name), key_type(snapshot, name)), name)
        for name in on
    ]
    names = tuple(one.name for one in fields)
    return JoinMaker(tuple(on), index_keys(keys), kept, names, is_complete), fields


def new_fields(source: pa.Schema, on: Sequence[str]) -> list[pa.Field]:
    """Return the columns that data has beside its key.

    Raises:
        SchemaError: a key column is missing, or there is no other.
        InputError: no key is named.
    """
    if isinstance(on, str) or not on:
        raise InputError("give the columns to match rows on as a list, such as on=['id']")
    for name in on:
        if name not in source.names:
            raise SchemaError(f"the data has no column {name!r}, which rows are matched on")
    fields = [one for one in source if one.name not in on]
    if not fields:
        raise SchemaError("the data has no column beside its key")
    return fields


def names_addresses(snapshot: Snapshot, on: Sequence[str]) -> bool:
    """Say whether rows are known by where they are; without stable ids a row id is an address."""
    return ROW_ADDRESS in on or (ROW_ID in on and not has_stable_row_ids(snapshot.manifest))


def refuse_moved_rows(before: Snapshot, latest: Snapshot) -> None:
    """Refuse addresses of a version when rows may have moved since.

    Raises:
        ConflictError: rows went from where they were, and there are new fragments.
    """
    known = {one.id: one for one in before.manifest.fragments}
    now = {one.id: one for one in latest.manifest.fragments}
    went = any(
        id_ not in now or now[id_].deletion_file != one.deletion_file for id_, one in known.items()
    )
    if went and not now.keys() <= known.keys():
        raise ConflictError(
            f"another writer moved rows after version {before.version}, so that row addresses read "
            "before are of no use; read them again"
        )


def keepable(source: RowSource) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the rows of a source under types that can be kept."""
    steps = [kept_step(one.name, one.type) for one in source.schema]
    schema = pa.schema([pa.field(one.name, kept_type(one.type)) for one in source.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches:
            pairs = zip(batch.columns, steps, strict=True)
            arrays = [array if step is None else step(array) for array, step in pairs]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return schema, batches()


def key_type(snapshot: Snapshot, name: str) -> pa.DataType:
    """Return the type in which values of a key column are compared."""
    known = {field.name for field in snapshot.manifest.schema.fields}
    if name in SYSTEM_KEYS and name not in known:
        return pa.uint64()
    return write_type(resolve(snapshot.manifest.schema, name)[-1])


def _column(kept: RowBuffer, name: str) -> pa.Array:
    chunks = [batch.column(0) for batch in kept.batches([name])]
    if not chunks:
        return pa.nulls(0, kept.schema.field(name).type)
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


Addresses = npt.NDArray[np.uint64]


class Addressed(NamedTuple):
    """Values for rows, whose addresses do not descend; nor do those of the batches that follow."""

    addresses: Addresses
    values: pa.RecordBatch

    def cut(self, address: int) -> "tuple[Addressed, Addressed]":
        """Return what is for rows up to an address, and the rest."""
        at = int(np.searchsorted(self.addresses, np.uint64(address), side="right"))
        return (
            Addressed(self.addresses[:at], self.values.slice(0, at)),
            Addressed(self.addresses[at:], self.values.slice(at)),
        )


class OrderedMaker:
    """Gives each row the values that come for its address, or nulls."""

    inputs = (ROW_ADDRESS,)

    def __init__(
        self, values: Iterator[Addressed], shown: Callable[[Addresses], str] | None = None
    ) -> None:
        self._values = values
        self._shown = shown or _as_addresses
        self._next: Addressed | None = None

    def make(self, batch: pa.RecordBatch, fields: Sequence[Field], place: str) -> list[pa.Array]:
        """Take the values for the rows of a batch, which ascend from call to call."""
        del place
        wanted: Addresses = batch.column(0).to_numpy()
        pieces = list(self._up_to(int(wanted[-1])))
        if not pieces:
            return [assigned(one, pa.nulls(len(wanted))) for one in fields]
        addresses = np.concatenate([one.addresses for one in pieces])
        self._refuse_twice(addresses, wanted)
        places = np.searchsorted(addresses, wanted)
        places[places == len(addresses)] = 0
        found = addresses[places] == wanted
        order = pa.array(places, mask=~found)
        values = pa.Table.from_batches([one.values for one in pieces])
        return [
            assigned(one, _whole(values.column(at)).take(order)) for at, one in enumerate(fields)
        ]

    def _up_to(self, address: int) -> Iterator[Addressed]:
        while True:
            held = self._next or next(self._values, None)
            if held is None:
                return
            here, rest = held.cut(address)
            if len(here.addresses):
                yield here
            self._next = rest if len(rest.addresses) else None
            if self._next is not None:
                return

    def _refuse_twice(self, addresses: Addresses, wanted: Addresses) -> None:
        again = addresses[1:][addresses[1:] == addresses[:-1]]
        again = np.intersect1d(again, wanted)
        if len(again):
            some = self._shown(again[:3])
            raise InputError(
                f"several rows of the data have the same key, such as {some}; keep one row for each"
                " key"
            )


def _as_addresses(addresses: Addresses) -> str:
    return "; ".join(f"{ROW_ADDRESS} = {one}" for one in addresses.tolist())


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
