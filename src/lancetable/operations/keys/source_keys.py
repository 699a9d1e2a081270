"""Keys of the rows of a source: to look up, to record and to show in messages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError
from lancetable.format.arrays import Offsets
from lancetable.format.encoding.kernels.ordering import ascending_order
from lancetable.format.encoding.kernels.xxhash import Hashes
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import resolve
from lancetable.operations.keys.join import KeyIndex, index_keys
from lancetable.operations.keys.keys import (
    InsertedKeys,
    codes_of,
    comparable,
    has_repeats,
    key_hashes,
)
from lancetable.operations.keys.row_buffer import RowBuffer

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
