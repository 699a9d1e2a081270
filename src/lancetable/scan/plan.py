"""From a request to a plan: which columns are read when, and from which rows of which fragment.

The columns of the predicate are read first; the other columns only for the rows that pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from lancetable.expression import Expression
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.projection import ROW_ADDRESS, ROW_ID, Projection
from lancetable.scan.columns import (
    Needed,
    Output,
    bound_predicate,
    expression_outputs,
    name_outputs,
    needed,
    result_schema,
    same_columns,
    with_payloads,
)
from lancetable.scan.request import ScanRequest


class Source(NamedTuple):
    """Where a result column comes from: a slot of what was read, and the way down from there."""

    slot: int
    path: tuple[int, ...]
    expression: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class ScanPlan:
    """What each fragment must give, and how the result is made of it.

    Slots count the columns of the early projection, then those of the late one.
    """

    schema: pa.Schema
    types: tuple[pa.DataType, ...]
    where: Expression | None
    early: Projection
    early_names: tuple[str, ...]
    late: Projection
    names: tuple[str, ...]
    """The names of all slots."""

    sources: tuple[Source, ...]
    used: frozenset[int]
    """The slots that the result is made of."""

    extended: tuple[int, ...]
    """The result columns that hold an extension type, under which the buffers are shown."""

    is_plain: bool
    """True when the result columns are the slots, one by one."""

    blobs: tuple[tuple[int, Field], ...]
    """Slots whose blobs are to be read, with their fields."""

    limit: int | None
    offset: int


def plan(schema: Schema, request: ScanRequest) -> ScanPlan:
    """Plan a scan.

    Raises:
        SchemaError: a column is unknown or asked for twice.
        ExpressionError: an expression does not fit the columns.
    """
    outputs = _outputs(schema, request)
    where = None if request.where is None else bound_predicate(request.where, schema)
    early = needed(schema, (), where) if where is not None else Needed()
    wanted = needed(schema, outputs)
    at_hand = {field.name: field for field in early.fields}
    shared = [
        field.name
        for field in wanted.fields
        if field.name in at_hand and same_columns(field, at_hand[field.name])
    ]
    shared += [name for name in wanted.system if name in early.system]
    late = wanted.without(shared)
    names = (*early.names(), *late.names())
    slots = {name: number for number, name in enumerate(names)}
    fields: tuple[Field | None, ...] = _slot_fields(early, late)
    sources = tuple(_source(output, slots, fields) for output in outputs)
    shown = outputs
    blobs: tuple[tuple[int, Field], ...] = ()
    if request.blobs == "bytes":
        shown = [_with_payloads(output) for output in outputs]
        blobs = tuple(
            (slot, field)
            for slot, field in enumerate(fields)
            if field is not None and any(part.is_blob for part in field.walk())
        )
    final = result_schema(schema, shown)
    return ScanPlan(
        schema=final,
        types=tuple(final.types),
        where=where,
        early=early.projection(),
        early_names=early.names(),
        late=late.projection(),
        names=names,
        sources=sources,
        used=_used(sources, len(names)),
        extended=tuple(
            number for number, field in enumerate(final) if _holds_extension(field.type)
        ),
        is_plain=_is_plain(sources, len(names)),
        blobs=blobs,
        limit=request.limit,
        offset=request.offset,
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


def _slot_fields(early: Needed, late: Needed) -> tuple[Field | None, ...]:
    return (
        *early.fields,
        *(None for _ in early.system),
        *late.fields,
        *(None for _ in late.system),
    )


def _source(output: Output, slots: dict[str, int], fields: Sequence[Field | None]) -> Source:
    if output.expression is not None:
        return Source(-1, (), output.expression)
    slot = slots[output.column]
    field = fields[slot]
    path = []
    for step in output.path:
        children = () if field is None else field.children
        number = next(index for index, child in enumerate(children) if child.name == step)
        path.append(number)
        field = children[number]
    return Source(slot, tuple(path), None)


def _with_payloads(output: Output) -> Output:
    if output.field is None:
        return output
    return Output(output.name, output.column, output.path, field=with_payloads(output.field))


def _is_plain(sources: Sequence[Source], slots: int) -> bool:
    return len(sources) == slots and all(
        source == Source(number, (), None) for number, source in enumerate(sources)
    )


def _used(sources: Sequence[Source], slots: int) -> frozenset[int]:
    if any(source.expression is not None for source in sources):
        return frozenset(range(slots))
    return frozenset(source.slot for source in sources)


def _holds_extension(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return True
    if pa.types.is_dictionary(type_):
        return _holds_extension(type_.value_type)
    return any(_holds_extension(type_.field(number).type) for number in range(type_.num_fields))


class Window(NamedTuple):
    """A range of rows of one fragment, by its place in the manifest."""

    fragment: int
    start: int
    stop: int


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
