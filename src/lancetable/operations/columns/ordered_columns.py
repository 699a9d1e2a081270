"""Write values that arrive in the order of row addresses as new columns of a fragment.

The values are a stream, and only those for the current rows are kept; so neither the fragment nor
the values have to fit into memory.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import InputError
from lancetable.format.schema.model import Field
from lancetable.fragment.projection import ROW_ADDRESS
from lancetable.operations.input.assign import assigned

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
                f"several rows of the data have one key, such as {some}; keep one row for each key"
            )


def _as_addresses(addresses: Addresses) -> str:
    return "; ".join(f"{ROW_ADDRESS} = {one}" for one in addresses.tolist())


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
