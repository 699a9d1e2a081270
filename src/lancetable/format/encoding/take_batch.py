"""Single rows of flat columns as one batch, made by a single compiled call (``kernels/c/batch.c``).

For a few rows nearly all time goes into what surrounds the finding of values: records, buffers, an
object for every array. Compiled code does all of it here, and Arrow takes the batch over as one.
"""

import ctypes
from array import array
from typing import TypeAlias

import pyarrow as pa

from lancetable.format.encoding.gather import SAMPLES, GatherPlan, Places
from lancetable.format.encoding.kernels.addressing import Gather
from lancetable.format.encoding.kernels.records import ArrowArrayRecord, TakeRecord
from lancetable.format.encoding.leaf import check_text

Words: TypeAlias = "array[int]"

ARROW_ARRAY = bytes(ctypes.sizeof(ArrowArrayRecord))
"""The room of an array in Arrow's C data interface."""


class FlatTake:
    """Takes rows; ``starts`` counts the rows before each fragment, and all of them."""

    __slots__ = ("_at", "_kept", "_many", "_take", "_texts", "_threads", "types")

    def __init__(self, library: Gather, plan: GatherPlan, starts: Words, ready: Words) -> None:
        columns = plan.records.from_buffer_copy(plan.template)
        record = TakeRecord(
            columns=ctypes.addressof(columns),
            count=len(columns),
            starts=starts.buffer_info()[0],
            fragments=len(starts) - 1,
            ready=ready.buffer_info()[0],
            samples=SAMPLES,
        )
        self.types = [leaf.kind.type for leaf in plan.leaves]
        self._texts = [number for number, leaf in enumerate(plan.leaves) if leaf.kind.is_text]
        self._many, self._threads = plan.many_rows(), plan.threads
        self._take = library.take
        self._at = ctypes.addressof(record)
        self._kept = (record, columns, starts, ready)

    def numbered(self, rows: Words, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return rows by number; None when they have to be read another way.

        That way may find that there is no such row.
        """
        place, count = rows.buffer_info()
        return self._batch(None, place, count, schema)

    def placed(self, places: Places, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return rows by the positions of their fragments and their offsets in them, likewise."""
        return self._batch(places.positions, places.offsets, places.rows, schema)

    def _batch(
        self, positions: int | None, offsets: int, count: int, schema: pa.Schema
    ) -> pa.RecordBatch | None:
        room = array("q", ARROW_ARRAY)
        at = room.buffer_info()[0]
        threads = 1 if count < self._many else self._threads()
        outcome = self._take(self._at, positions, offsets, count, threads, at)
        if outcome < 0:
            return None
        batch = pa.RecordBatch._import_from_c(at, schema)  # noqa: SLF001 - documented, not listed
        for number in self._texts if outcome else ():
            check_text(batch.column(number))
        return batch


def is_flat(plan: GatherPlan) -> bool:
    """Return whether the leaves of a plan are columns of their own, without levels of lists."""
    return bool(plan.leaves) and all(len(leaf.layers.items) == 1 for leaf in plan.leaves)
