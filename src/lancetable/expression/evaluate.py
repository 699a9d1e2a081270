"""Evaluate a bound expression for the rows of a batch.

Values are Arrow arrays, constants stay scalars until the end. A filter does not need the third
truth value: ``AND`` and ``OR`` of "is true" masks are exact, and the second operand is evaluated
only for the rows the first one left undecided. So a guard like ``n <> 0 AND m / n > 2`` works, and
``column < constant`` is one NumPy comparison.
"""

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression.arrow import run_opaque
from lancetable.expression.functions.list import element
from lancetable.expression.functions.signature import spread
from lancetable.expression.functions.table import FUNCTIONS
from lancetable.expression.operators import compare
from lancetable.expression.operators.arithmetic import calculate, negate_values
from lancetable.expression.operators.cast import cast, try_cast
from lancetable.expression.render import to_sql
from lancetable.expression.scalars import row_numbers
from lancetable.expression.tree import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Item,
    Like,
    Literal,
    Negate,
    Not,
    Opaque,
    Or,
    columns,
    walk,
)

_Mask = npt.NDArray[np.bool_]
_FALLIBLE = Arithmetic | Negate | Cast | Call | Case | Opaque
_WORTH_FILTERING = 4
_FEW = 6


def evaluate(expression: Expression, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """Compute a bound expression: an array for a batch, a chunked array for a table.

    Raises:
        ExpressionError: A value cannot be computed, such as a division by zero.
    """
    if isinstance(batch, pa.Table):
        if not columns(expression):
            value = _guarded(_value, expression, _no_rows())
            return pa.chunked_array([spread(value, batch.num_rows)])
        parts = [evaluate(expression, part) for part in _batches(expression, batch)]
        return pa.chunked_array(parts)
    if isinstance(expression, Column) and len(expression.path) == 1:
        return batch.column(expression.path[0])
    return spread(_guarded(_value, expression, batch), batch.num_rows)


def evaluate_mask(expression: Expression, batch: pa.RecordBatch | pa.Table) -> _Mask:
    """Return the mask of the rows for which a bound predicate is true; unknown counts as false."""
    if not isinstance(batch, pa.Table):
        mask: _Mask = _guarded(_mask, expression, batch)
        return mask
    if not columns(expression):
        holds = bool(evaluate_mask(expression, _one_row())[0])
        return np.full(batch.num_rows, holds, np.bool_)
    masks = [evaluate_mask(expression, part) for part in _batches(expression, batch)]
    return np.concatenate(masks)


def compute(expression: Expression) -> Literal:
    """Evaluate an expression without columns."""
    value = evaluate(expression, _one_row())
    return Literal(value[0])


def _one_row() -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(1)], ["_"])


def _no_rows() -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(0)], ["_"])


def _batches(expression: Expression, table: pa.Table) -> list[pa.RecordBatch]:
    names = sorted({path[0] for path in columns(expression)})
    chosen = table.select(names)
    return list(chosen.to_batches()) or [_empty(chosen.schema)]


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def _guarded(
    rule: Callable[[Expression, pa.RecordBatch], pa.Array],
    expression: Expression,
    batch: pa.RecordBatch,
) -> pa.Array:
    try:
        return rule(expression, batch)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as cause:
        reason = str(cause).splitlines()[0]
        raise ExpressionError(f"cannot evaluate {to_sql(expression)}: {reason}") from cause


def _value(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    return _RULES[type(expression)](expression, batch)


def _column(expression: Column, batch: pa.RecordBatch) -> pa.Array:
    values = _stored(batch.column(expression.path[0]))
    for name in expression.path[1:]:
        values = _stored(pc.struct_field(values, [name]))
    return values


def _stored(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values.type, pa.BaseExtensionType) else values


def _compare(expression: Compare, batch: pa.RecordBatch) -> pa.Array:
    left, right = _value(expression.left, batch), _value(expression.right, batch)
    return compare.compare(expression.op, left, right)


def _and(expression: And, batch: pa.RecordBatch) -> pa.Array:
    return reduce(pc.and_kleene, (_value(part, batch) for part in expression.operands))


def _or(expression: Or, batch: pa.RecordBatch) -> pa.Array:
    return reduce(pc.or_kleene, (_value(part, batch) for part in expression.operands))


def _not(expression: Not, batch: pa.RecordBatch) -> pa.Array:
    return pc.invert(_value(expression.operand, batch))


def _in(expression: In, batch: pa.RecordBatch) -> pa.Array:
    values = spread(_value(expression.operand, batch), batch.num_rows)
    return compare.contained(values, expression.values, negated=expression.negated)


def _like(expression: Like, batch: pa.RecordBatch) -> pa.Array:
    values = spread(_value(expression.operand, batch), batch.num_rows)
    pattern = _value(expression.pattern, batch)
    matched = compare.match_like(
        values, pattern, ignore_case=expression.ignore_case, escape=expression.escape
    )
    return pc.invert(matched) if expression.negated else matched


def _is_null(expression: IsNull, batch: pa.RecordBatch) -> pa.Array:
    values = _value(expression.operand, batch)
    return pc.is_valid(values) if expression.negated else pc.is_null(values)


def _is_true(expression: IsTrue, batch: pa.RecordBatch) -> pa.Array:
    values = _value(expression.operand, batch)
    wanted = values if expression.value else pc.invert(values)
    known = pc.coalesce(wanted, pa.scalar(value=False))
    return pc.invert(known) if expression.negated else known


def _arithmetic(expression: Arithmetic, batch: pa.RecordBatch) -> pa.Array:
    left, right = _value(expression.left, batch), _value(expression.right, batch)
    return calculate(expression.op, left, right)


def _negate(expression: Negate, batch: pa.RecordBatch) -> pa.Array:
    return negate_values(_value(expression.operand, batch))


def _cast(expression: Cast, batch: pa.RecordBatch) -> pa.Array:
    values = _value(expression.operand, batch)
    convert = try_cast if expression.or_null else cast
    if isinstance(values, pa.Scalar):
        return convert(pa.repeat(values, 1), expression.type)[0]
    return convert(values, expression.type)


def _call(expression: Call, batch: pa.RecordBatch) -> pa.Array:
    function = FUNCTIONS[expression.name]
    arguments = [_value(argument, batch) for argument in expression.arguments]
    constant = all(isinstance(argument, pa.Scalar) for argument in arguments)
    subject = function.subject
    rows = 1 if constant else batch.num_rows
    arguments[subject] = spread(arguments[subject], rows)
    answer = function.kernel(arguments)
    return answer[0] if constant else answer


def _case(expression: Case, batch: pa.RecordBatch) -> pa.Array:
    """Compute each branch only for the rows that take it, so that conditions can guard."""
    open_rows = np.arange(batch.num_rows)
    parts, places = [], []
    names = sorted({path[0] for path in columns(expression)})
    rest = batch.select(names) if names else batch
    for when, then in expression.branches:
        taken = _mask(when, rest)
        parts.append(spread(_value(then, rest.filter(pa.array(taken))), int(taken.sum())))
        places.append(open_rows[taken])
        open_rows, rest = open_rows[~taken], rest.filter(pa.array(~taken))
    parts.append(spread(_value(expression.otherwise, rest), len(open_rows)))
    places.append(open_rows)
    order = np.empty(batch.num_rows, np.int64)
    order[np.concatenate(places)] = np.arange(batch.num_rows)
    return pa.concat_arrays(parts).take(pa.array(order))


def _item(expression: Item, batch: pa.RecordBatch) -> pa.Array:
    values = _value(expression.operand, batch)
    key = _value(expression.key, batch)
    values = spread(values, batch.num_rows)
    if pt.is_struct(values.type):
        return _stored(pc.struct_field(values, [key.as_py()]))
    if pt.is_map(values.type):
        return pc.map_lookup(values, query_key=key, occurrence="first")
    return element(values, key)


def _opaque(expression: Opaque, batch: pa.RecordBatch) -> pa.Array:
    return run_opaque(expression, batch)


_RULES: Mapping[type, Callable[..., pa.Array]] = {
    Column: _column,
    Literal: lambda expression, _: expression.scalar,
    Compare: _compare,
    And: _and,
    Or: _or,
    Not: _not,
    In: _in,
    Like: _like,
    IsNull: _is_null,
    IsTrue: _is_true,
    Arithmetic: _arithmetic,
    Negate: _negate,
    Cast: _cast,
    Call: _call,
    Case: _case,
    Item: _item,
    Opaque: _opaque,
}


def _mask(expression: Expression, batch: pa.RecordBatch) -> _Mask:
    match expression:
        case And(operands):
            mask = _mask(operands[0], batch)
            for operand in operands[1:]:
                mask = _narrow(operand, batch, mask)
            return mask
        case Or(operands):
            mask = _mask(operands[0], batch)
            for operand in operands[1:]:
                mask = mask | _narrow(operand, batch, ~mask)
            return mask
        case Compare(op, Column() as column, Literal(scalar)):
            direct = _direct(op, _column(column, batch), scalar)
            return (
                _truths(_compare(expression, batch), batch.num_rows) if direct is None else direct
            )
        case In(Column() as column):
            few = _few(expression, _column(column, batch))
            return _truths(_in(expression, batch), batch.num_rows) if few is None else few
        case _:
            return _truths(_value(expression, batch), batch.num_rows)


def _narrow(expression: Expression, batch: pa.RecordBatch, rows: _Mask) -> _Mask:
    """Return those of the given rows for which the expression is true."""
    count = int(np.count_nonzero(rows))
    if count == 0:
        return rows
    fallible = any(isinstance(node, _FALLIBLE) for node in walk(expression))
    if count == len(rows) or (not fallible and count * _WORTH_FILTERING > len(rows)):
        return rows & _mask(expression, batch)
    names = sorted({path[0] for path in columns(expression)})
    chosen = batch.select(names) if names else batch
    places = np.flatnonzero(rows)
    found = np.zeros(len(rows), np.bool_)
    found[places] = _mask(expression, chosen.take(row_numbers(places)))
    return found


def _few(expression: In, values: pa.Array) -> _Mask | None:
    """Look for a few constants by comparing with each, which is faster than hashing."""
    choices: pa.Array = expression.values
    if len(choices) > _FEW:
        return None
    found = np.zeros(len(values), np.bool_)
    for choice in choices.drop_null():
        mask = _direct(Comparison.EQ, values, choice)
        if mask is None:
            return None
        found |= mask
    if not expression.negated:
        return found
    if choices.null_count:
        return np.zeros(len(values), np.bool_)
    if values.null_count:
        found |= ~_bits(values.buffers()[0], values.offset, len(values))
    return ~found


def _direct(op: Comparison, values: pa.Array, scalar: pa.Scalar) -> _Mask | None:
    test = compare.number_test(op, values.type, scalar)
    if test is None:
        return None
    op, constant = test
    validity, data = values.buffers()
    if data is None:
        return np.zeros(len(values), np.bool_)
    offset = values.offset * constant.itemsize
    numbers = np.frombuffer(data, constant.dtype, len(values), offset)
    mask = compare.compare_numbers(op, numbers, constant)
    if values.null_count:
        mask &= _bits(validity, values.offset, len(values))
    return mask


def _truths(value: pa.Array, rows: int) -> _Mask:
    if isinstance(value, pa.Scalar):
        return np.full(rows, value.as_py() is True, np.bool_)
    if pt.is_null(value.type):
        return np.zeros(rows, np.bool_)
    validity, data = value.buffers()
    if data is None:
        return np.zeros(rows, np.bool_)
    mask = _bits(data, value.offset, len(value))
    return mask & _bits(validity, value.offset, len(value)) if value.null_count else mask


def _bits(buffer: pa.Buffer, offset: int, count: int) -> _Mask:
    first = offset // 8
    packed = np.frombuffer(buffer, np.uint8)[first : (offset + count + 7) // 8]
    bits = np.unpackbits(packed, bitorder="little")[offset - first * 8 :]
    return bits[:count].view(np.bool_)
