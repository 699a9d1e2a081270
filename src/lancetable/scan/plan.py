"""Plan a scan: which columns are read when, and from which rows of which fragment.

The columns of the predicate are read first; the other columns only for the rows that pass.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.expression import Expression, bind_predicate
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.project import with_payloads
from lancetable.fragment.projection import ROW_ADDRESS, ROW_ID, Projection
from lancetable.scan.columns import (
    Key,
    Output,
    Stored,
    binding_schema,
    expression_outputs,
    key_of,
    name_outputs,
    result_schema,
    stored_for,
)
from lancetable.scan.nulls import has_required
from lancetable.scan.predicate import Predicate, predicate_of
from lancetable.scan.request import ScanRequest
from lancetable.scan.row_size import fixed_row_bytes, is_fixed_width

# Measured: below these shares single values cost less than whole pages.
GATHER_BELOW = 0.1
GATHER_FIXED_BELOW = 0.25


class Source(NamedTuple):
    """Where a result column comes from: a slot, without the outer structs; or an expression."""

    slot: int
    depth: int
    expression: Expression | None


class Survivors(NamedTuple):
    """What is read of the rows that pass tests made while columns are decoded."""

    projection: Projection
    slots: tuple[int, ...]
    """The slots of the plan that its columns are for."""

    gather_below: float


NO_SURVIVORS = Survivors(Projection(()), (), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ScanPlan:
    """What each fragment must give, and how the result is made of it.

    Slots count the columns of the early projection, then those of the late one.
    """

    schema: pa.Schema
    types: tuple[pa.DataType, ...]
    predicate: Predicate | None
    early: Projection
    late: Projection
    alone: Mapping[str, Projection]
    """Each stored column of the predicate by itself."""

    survivors: Survivors
    gather_below: float
    """When a smaller part of the rows passes, the late columns are fetched row by row."""

    late_bytes: int
    """The bytes of the late columns in one row, without those whose values differ in size."""

    names: tuple[str, ...]
    """The names of all slots."""

    sources: tuple[Source, ...]
    expression_slots: tuple[tuple[str, int], ...]
    """The slots that expressions of the result may name."""

    used: frozenset[int]
    """The slots that the result is made of."""

    required: tuple[int, ...]
    """The result columns that must have no nulls, or parts that must not."""

    extended: tuple[int, ...]
    """The result columns that hold an extension type, under which the buffers are shown."""

    is_plain: bool
    """True when the result columns are the slots, one by one."""

    blobs: tuple[tuple[int, Field], ...]
    """Slots whose blobs are to be read, with their fields."""

    limit: int | None
    offset: int

    @property
    def where(self) -> Expression | None:
        """The bound predicate."""
        return None if self.predicate is None else self.predicate.expression

    def asking(self, where: Expression, schema: pa.Schema) -> "ScanPlan":
        """Return the plan of the same scan with another predicate on the same columns."""
        predicate = predicate_of(where, self.early, self.alone, schema)
        return replace(self, predicate=predicate)

    @property
    def early_names(self) -> tuple[str, ...]:
        """The names of the columns that the predicate reads."""
        return self.names[: len(self.early)]


def plan(schema: Schema, request: ScanRequest) -> ScanPlan:
    """Plan a scan.

    Raises:
        SchemaError: a column is unknown or asked for twice.
        ExpressionError: an expression does not fit the columns.
    """
    names = binding_schema(schema)
    where = None if request.where is None else bind_predicate(request.where, names)
    return plan_bound(schema, request, where, lambda: names)


def plan_bound(
    schema: Schema,
    request: ScanRequest,
    where: Expression | None,
    binding: Callable[[], pa.Schema],
) -> ScanPlan:
    """Plan a scan with a bound predicate in place of that of the request.

    ``binding`` returns what expressions may name.
    """
    outputs = _outputs(schema, request)
    early = stored_for(schema, [] if where is None else [where])
    shared = stored_for(schema, [item.expression for item in outputs if item.expression])
    wanted = [item.stored for item in outputs if item.stored is not None] + shared
    late = _missing(wanted, early)
    after = _projection(late)
    names = tuple([_name(stored) for stored in (*early, *late)])
    slots = {key_of(stored): number for number, stored in enumerate([*early, *late])}
    sources = tuple([_source(output, slots) for output in outputs])
    if request.blobs == "bytes":
        outputs = [_with_payloads(output) for output in outputs]
    final = result_schema(schema, outputs)
    used = frozenset([slots[key_of(stored)] for stored in wanted])
    before = _projection(early)
    alone = {field.name: Projection([field]) for field in before.fields}
    predicate = None if where is None else predicate_of(where, before, alone, binding())
    return ScanPlan(
        schema=final,
        types=tuple(final.types),
        predicate=predicate,
        early=before,
        late=after,
        alone=alone,
        survivors=NO_SURVIVORS if where is None else _survivors([*early, *late], used),
        gather_below=_gather_below(after),
        late_bytes=int(fixed_row_bytes((after,))),
        names=names,
        sources=sources,
        expression_slots=tuple([(_name(stored), slots[key_of(stored)]) for stored in shared]),
        used=used,
        required=tuple([number for number, field in enumerate(final) if has_required(field)]),
        extended=tuple(
            [number for number, field in enumerate(final) if _holds_extension(field.type)]
        ),
        is_plain=_is_plain(sources, len(slots)),
        blobs=_blob_slots([*early, *late]) if request.blobs == "bytes" else (),
        limit=request.limit,
        offset=request.offset,
    )


def _gather_below(projection: Projection) -> float:
    return GATHER_FIXED_BELOW if is_fixed_width(projection) else GATHER_BELOW


def _survivors(columns: Sequence[Stored], used: frozenset[int]) -> Survivors:
    # A projection reads its fields first, then its system columns.
    slots = [slot for slot in range(len(columns)) if slot in used]
    slots.sort(key=[isinstance(column, str) for column in columns].__getitem__)
    projection = _projection([columns[slot] for slot in slots])
    return Survivors(projection, tuple(slots), _gather_below(projection))


def _missing(wanted: Sequence[Stored], at_hand: Sequence[Stored]) -> list[Stored]:
    """Return what is not at hand, each once, system columns last as projections read them."""
    known = {key_of(stored) for stored in at_hand}
    found: dict[Key, Stored] = {}
    for stored in wanted:
        key = key_of(stored)
        if key not in known:
            found[key] = stored
    every = list(found.values())
    system = [stored for stored in every if isinstance(stored, str)]
    return [stored for stored in every if not isinstance(stored, str)] + system if system else every


def _projection(columns: Sequence[Stored]) -> Projection:
    fields = [stored for stored in columns if not isinstance(stored, str)]
    return Projection(fields, [stored for stored in columns if isinstance(stored, str)])


def _name(stored: Stored) -> str:
    return stored if isinstance(stored, str) else stored.name


def _blob_slots(columns: Sequence[Stored]) -> tuple[tuple[int, Field], ...]:
    return tuple(
        (slot, stored)
        for slot, stored in enumerate(columns)
        if not isinstance(stored, str) and any(part.is_blob for part in stored.walk())
    )


def _outputs(schema: Schema, request: ScanRequest) -> list[Output]:
    if request.expressions is not None:
        outputs = expression_outputs(schema, request.expressions)
    else:
        outputs = name_outputs(schema, request.columns)
    for name, is_wanted in ((ROW_ID, request.with_row_id), (ROW_ADDRESS, request.with_row_address)):
        if is_wanted:
            outputs = [output for output in outputs if output.name != name]
            outputs.append(Output(name, name))
    return outputs


def _source(output: Output, slots: Mapping[Key, int]) -> Source:
    if output.stored is None:
        return Source(-1, 0, output.expression)
    return Source(slots[key_of(output.stored)], output.depth, None)


def _with_payloads(output: Output) -> Output:
    if output.shown is None:
        return output
    return replace(output, shown=with_payloads(output.shown))


def _is_plain(sources: Sequence[Source], slots: int) -> bool:
    return list(sources) == [Source(number, 0, None) for number in range(slots)]


def _holds_extension(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return True
    if pa.types.is_dictionary(type_):
        return _holds_extension(type_.value_type)
    return any(_holds_extension(type_.field(number).type) for number in range(type_.num_fields))


class Window(NamedTuple):
    """A range of rows of one fragment, by its place in the manifest.

    With ``plan`` it is read by this plan in place of that of the scan, and with ``offsets`` only
    these rows of it are.
    """

    fragment: int
    start: int
    stop: int
    offsets: npt.NDArray[np.int64] | None = None
    plan: ScanPlan | None = None

    @property
    def rows(self) -> int:
        """The number of rows, deleted ones included."""
        return self.stop - self.start if self.offsets is None else len(self.offsets)

    def parts(self, step: int) -> "Iterator[Window]":
        """Yield windows of at most ``step`` of the rows."""
        if self.offsets is None:
            for part in windows(self.fragment, self.start, self.stop, step):
                yield part._replace(plan=self.plan)
            return
        for first in range(0, len(self.offsets), step):
            some = self.offsets[first : first + step]
            yield Window(self.fragment, int(some[0]), int(some[-1]) + 1, some, self.plan)


def windows(fragment: int, start: int, stop: int, step: int) -> Iterator[Window]:
    """Cut a range of rows into windows of about equal size, none larger than ``step``."""
    rows = stop - start
    if rows <= step:
        if rows > 0:
            yield Window(fragment, start, stop)
        return
    pieces = -(-rows // step)
    size = -(-rows // pieces)
    size = min(step, -(-size // ALIGNED_ROWS) * ALIGNED_ROWS)
    for first in range(start, stop, size):
        yield Window(fragment, first, min(first + size, stop))


ALIGNED_ROWS = 4096
"""Windows end on multiples of this, so that few chunks are decoded for two of them."""
