"""Bind an expression to a schema.

Binding resolves the columns, converts the operands of every operation to one type, replaces
functions such as ``now`` by one moment and folds constants. Constants are converted to the column's
type, not the reverse, as long as that keeps the meaning (:mod:`lancetable.expression.binding.fit`).
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression import coerce
from lancetable.expression.binding.arguments import Bound, convert, match_arguments, one_type
from lancetable.expression.binding.fit import fit_comparison, fit_value, fit_values, fits_kind
from lancetable.expression.binding.plain import bind_plain
from lancetable.expression.binding.resolve import resolve
from lancetable.expression.evaluate import compute, evaluate
from lancetable.expression.functions.table import FUNCTIONS
from lancetable.expression.operators.arithmetic import operand_types
from lancetable.expression.operators.compare import choices_of
from lancetable.expression.render import to_sql
from lancetable.expression.simplify import NULL_BOOLEAN, negate, simplify
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
    Literals,
    Negate,
    Not,
    Opaque,
    Operation,
    Or,
    columns,
    literal,
)

_BOOL = pa.bool_()
_ORDERED = {Comparison.LT, Comparison.LE, Comparison.GT, Comparison.GE}


def bind(expression: Expression, schema: pa.Schema) -> Expression:
    """Bind an expression to a schema.

    Raises:
        ExpressionError: A name is unknown, or types do not fit each other.
    """
    made = _Binding(schema).bind(expression).expression
    if isinstance(expression, Cast) and isinstance(made, Cast) and made.type != expression.type:
        # The result itself keeps a type without arithmetic, such as float16.
        made = made.operand
    return simplify(made, compute)


def bind_predicate(expression: Expression, schema: pa.Schema) -> Expression:
    """Bind an expression that must be true or false.

    Raises:
        ExpressionError: It is of another type, or cannot be bound.
    """
    return bind_plain(expression, schema) or bind_any(expression, schema)


def bind_any(expression: Expression, schema: pa.Schema) -> Expression:
    """Bind a predicate of any shape, like :func:`bind_predicate`."""
    bound = _Binding(schema).boolean(expression)
    return simplify(bound, compute)


def type_of(expression: Expression, schema: pa.Schema) -> pa.DataType:
    """Return the type of a bound expression."""
    names = sorted({path[0] for path in columns(expression)})
    fields = [schema.field(name) for name in names]
    empty = pa.RecordBatch.from_arrays(
        [pa.nulls(0, field.type) for field in fields], schema=pa.schema(fields)
    )
    return evaluate(expression, empty).type


class _Clock(NamedTuple):
    now: Literal
    today: Literal


def _read_clock() -> _Clock:
    now = dt.datetime.now(dt.UTC)
    moment = pa.scalar(now.replace(tzinfo=None), pa.timestamp("us")).cast(pa.timestamp("ns"))
    return _Clock(Literal(moment), literal(now.date(), pa.date32()))


class _Binding:
    """Binds one expression to a schema, node by node."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._read: _Clock | None = None
        self._rules: Mapping[type, Callable[..., Bound]] = {
            Column: self._column,
            Literal: lambda node: Bound(node, node.type),
            Compare: self._compare,
            And: self._logic,
            Or: self._logic,
            Not: lambda node: Bound(negate(self.boolean(node.operand)), _BOOL),
            In: self._in,
            Like: self._like,
            IsNull: lambda node: Bound(
                replace(node, operand=self.bind(node.operand).expression), _BOOL
            ),
            IsTrue: lambda node: Bound(replace(node, operand=self.boolean(node.operand)), _BOOL),
            Arithmetic: self._arithmetic,
            Negate: self._negate,
            Cast: self._cast,
            Case: self._case,
            Call: self._call,
            Item: self._item,
            Opaque: self._opaque,
        }

    def _clock(self) -> _Clock:
        self._read = self._read or _read_clock()
        return self._read

    def bind(self, expression: Expression) -> Bound:
        rule = self._rules.get(type(expression))
        if rule is None:
            raise ExpressionError(f"{expression!r} is not an expression; pass SQL text")
        return rule(expression)

    def boolean(self, expression: Expression) -> Expression:
        bound = self.bind(expression)
        if pt.is_null(bound.type):
            return NULL_BOOLEAN
        # pylance treats regexp_match as regexp_like where a truth value is needed.
        if isinstance(bound.expression, Call) and bound.expression.name == "regexp_match":
            return IsNull(bound.expression, negated=True)
        if not pt.is_boolean(bound.type):
            message = f"{to_sql(expression)} is of type {bound.type}, expected true or false"
            raise ExpressionError(message)
        return bound.expression

    def _column(self, node: Column) -> Bound:
        column, type_ = resolve(node, self._schema)
        plain = coerce.plain(type_)
        decoded = not _same_layout(type_, plain)
        return Bound(Cast(column, plain) if decoded else column, plain)

    def _logic(self, node: And | Or) -> Bound:
        return Bound(type(node)(tuple(self.boolean(part) for part in node.operands)), _BOOL)

    def _compare(self, node: Compare) -> Bound:
        left, right = self.bind(node.left), self.bind(node.right)
        return Bound(_compare(node.op, _folded(left), _folded(right)), _BOOL)

    def _in(self, node: In) -> Bound:
        operand = _folded(self.bind(node.operand))
        if isinstance(node.items, Literals):
            fitted = fit_values(node.items.array, operand.type)
            if fitted is not None:
                choices = choices_of(fitted)
                found = In(operand.expression, Literals(fitted), node.negated, choices)
                return Bound(found, _BOOL)
        items = [_folded(self.bind(item)) for item in node.items]
        if all(isinstance(item.expression, Literal) for item in items):
            return Bound(_membership(node, operand, items), _BOOL)
        equal = Or(tuple(_compare(Comparison.EQ, operand, item) for item in items))
        return Bound(negate(equal) if node.negated else equal, _BOOL)

    def _like(self, node: Like) -> Bound:
        operand, pattern = self.bind(node.operand), self.bind(node.pattern)
        for part in (operand, pattern):
            if not (coerce.is_text(part.type) or pt.is_null(part.type)):
                message = f"LIKE compares text, but {to_sql(part.expression)} is {part.type}"
                raise ExpressionError(message)
        if pt.is_null(operand.type) or pt.is_null(pattern.type):
            return Bound(NULL_BOOLEAN, _BOOL)
        return Bound(replace(node, operand=operand.expression, pattern=pattern.expression), _BOOL)

    def _arithmetic(self, node: Arithmetic) -> Bound:
        left, right = _folded(self.bind(node.left)), _folded(self.bind(node.right))
        if not node.op.is_shift:
            left, right = _adapt(left, right), _adapt(right, left)
        if pt.is_null(left.type) or pt.is_null(right.type):
            known = right.type if pt.is_null(left.type) else left.type
            return Bound(Literal(pa.scalar(None, known)), known)
        wanted = operand_types(node.op, left.type, right.type)
        if wanted is None:
            message = f"{node.op.value} is not defined for {left.type} and {right.type}"
            raise ExpressionError(f"{message} in {to_sql(node)}")
        operands = (convert(left, wanted[0]), convert(right, wanted[1]))
        return self._typed(Arithmetic(node.op, *(each.expression for each in operands)), operands)

    def _negate(self, node: Negate) -> Bound:
        operand = self.bind(node.operand)
        signed = coerce.is_number(operand.type) and not pt.is_unsigned_integer(operand.type)
        if not (signed or pt.is_null(operand.type) or pt.is_duration(operand.type)):
            raise ExpressionError(f"{to_sql(node)}: values of {operand.type} cannot be negated")
        return Bound(Negate(operand.expression), operand.type)

    def _cast(self, node: Cast) -> Bound:
        made = replace(node, operand=self.bind(node.operand).expression)
        plain = coerce.plain(node.type)
        return Bound(made if _same_layout(node.type, plain) else Cast(made, plain), plain)

    def _case(self, node: Case) -> Bound:
        conditions = [self.boolean(when) for when, _ in node.branches]
        values = [self.bind(then) for _, then in node.branches] + [self.bind(node.otherwise)]
        same = one_type("CASE", [_folded(value) for value in values])
        branches = zip(conditions, (each.expression for each in same[:-1]), strict=True)
        return Bound(Case(tuple(branches), same[-1].expression), same[-1].type)

    def _call(self, node: Call) -> Bound:
        if node.name in {"now", "current_timestamp"}:
            return Bound(self._clock().now, pa.timestamp("ns"))
        if node.name == "current_date":
            return Bound(self._clock().today, pa.date32())
        if node.name == "mod":
            return self._arithmetic(Arithmetic(Operation.REMAINDER, *node.arguments))
        if not node.arguments:
            return Bound(literal([], pa.list_(pa.null())), pa.list_(pa.null()))
        function = FUNCTIONS[node.name]
        bound = [_folded(self.bind(argument)) for argument in node.arguments]
        try:
            arguments = match_arguments(node.name, function, bound)
        except ExpressionError as error:
            raise ExpressionError(str(error), position=node.position) from error
        call = replace(node, arguments=tuple(each.expression for each in arguments))
        return self._typed(call, arguments)

    def _item(self, node: Item) -> Bound:
        operand, key = self.bind(node.operand), _folded(self.bind(node.key))
        type_ = operand.type
        if pt.is_struct(type_) and coerce.is_text(key.type) and isinstance(key.expression, Literal):
            inner = Column((str(key.expression.value),))
            name, found = resolve(inner, pa.schema(list(type_)))
            return Bound(Item(operand.expression, literal(name.path[0])), coerce.plain(found))
        if coerce.is_list(type_) and pt.is_integer(key.type):
            return Bound(Item(operand.expression, key.expression), coerce.plain(type_.value_type))
        if pt.is_map(type_) and isinstance(key.expression, Literal):
            wanted = convert(key, type_.key_type)
            return Bound(Item(operand.expression, wanted.expression), type_.item_type)
        message = f"{to_sql(node)}: a value of type {type_} has no element {to_sql(node.key)}"
        raise ExpressionError(message)

    def _opaque(self, node: Opaque) -> Bound:
        for path in node.paths:
            found, _ = resolve(Column(path), self._schema)
            if found.path != path:
                message = f"there is no column {'.'.join(path)!r}; did you mean {found.path[0]}?"
                raise ExpressionError(message)
        return Bound(node, type_of(node, self._schema))

    def _typed(self, expression: Expression, operands: Sequence[Bound]) -> Bound:
        """Determine the type of a result by computing it for no rows."""
        stand_ins = [
            operand.expression
            if isinstance(operand.expression, Literal)
            else Column((str(number),))
            for number, operand in enumerate(operands)
        ]
        batch = pa.RecordBatch.from_arrays(
            [pa.nulls(0, operand.type) for operand in operands],
            schema=pa.schema([(str(n), operand.type) for n, operand in enumerate(operands)]),
        )
        if isinstance(expression, Arithmetic):
            shape: Expression = Arithmetic(expression.op, stand_ins[0], stand_ins[1])
        else:
            assert isinstance(expression, Call)
            shape = replace(expression, arguments=tuple(stand_ins))
        try:
            return Bound(expression, evaluate(shape, batch).type)
        except ExpressionError as error:
            message = str(error).replace(to_sql(shape), to_sql(expression))
            raise ExpressionError(message) from error


def _same_layout(type_: pa.DataType, plain: pa.DataType) -> bool:
    while isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    return bool(type_.equals(plain))


def _folded(bound: Bound) -> Bound:
    simple = simplify(bound.expression, compute)
    return Bound(simple, simple.type if isinstance(simple, Literal) else bound.type)


def _adapt(bound: Bound, other: Bound) -> Bound:
    """Convert a constant number to the type of the other operand if it can hold it."""
    if not isinstance(bound.expression, Literal) or isinstance(other.expression, Literal):
        return bound
    if not (coerce.is_number(bound.type) and coerce.is_number(other.type)):
        return bound
    if pt.is_floating(bound.type) and pt.is_integer(other.type):
        return bound
    fitted = fit_value(bound.expression.scalar, other.type)
    return bound if fitted is None else Bound(Literal(fitted), other.type)


def _compare(op: Comparison, left: Bound, right: Bound) -> Expression:
    if isinstance(left.expression, Literal) and not isinstance(right.expression, Literal):
        return _compare(op.mirrored, right, left)
    if pt.is_null(left.type) or pt.is_null(right.type):
        return _compare_null(op, left, right)
    if isinstance(right.expression, Literal) and not isinstance(left.expression, Literal):
        fitted = fit_comparison(op, left.expression, right.expression.scalar, left.type)
        if fitted is not None:
            return fitted
    elif isinstance(right.expression, Literal) and isinstance(left.expression, Literal):
        left, right = _read_text(left, right.type), _read_text(right, left.type)
    shared = coerce.common_type(left.type, right.type)
    if shared is None:
        sides = f"{to_sql(left.expression)} ({left.type}) and {to_sql(right.expression)}"
        raise ExpressionError(f"cannot compare {sides} ({right.type}): cast one of them")
    if op in _ORDERED and (coerce.is_list(shared) or pt.is_struct(shared)):
        raise ExpressionError(f"values of type {shared} have no order; use = or <>")
    return Compare(op, convert(left, shared).expression, convert(right, shared).expression)


def _read_text(bound: Bound, type_: pa.DataType) -> Bound:
    """Read a constant text as the date or time it is compared with."""
    if not (isinstance(bound.expression, Literal) and coerce.is_text(bound.type)):
        return bound
    if not fits_kind(bound.expression.scalar, type_):
        return bound
    return _folded(Bound(Cast(bound.expression, type_), type_))


def _compare_null(op: Comparison, left: Bound, right: Bound) -> Expression:
    known = right if pt.is_null(left.type) else left
    if op is Comparison.NOT_DISTINCT:
        return IsNull(known.expression)
    if op is Comparison.DISTINCT:
        return IsNull(known.expression, negated=True)
    return NULL_BOOLEAN


def _membership(node: In, operand: Bound, items: Sequence[Bound]) -> Expression:
    if pt.is_null(operand.type):
        return NULL_BOOLEAN
    scalars = [item.expression.scalar for item in items if isinstance(item.expression, Literal)]
    type_ = operand.type
    fitted: list[pa.Scalar] = []
    for scalar in scalars:
        value = fit_value(scalar, type_)
        if value is not None:
            fitted.append(value)
        elif not _never_equal(scalar, type_):
            equal = Or(tuple(_compare(Comparison.EQ, operand, item) for item in items))
            return negate(equal) if node.negated else equal
    literals = tuple(Literal(scalar) for scalar in fitted)
    choices = pa.array([scalar.as_py() for scalar in fitted], type_)
    return In(operand.expression, literals, node.negated, choices_of(choices))


def _never_equal(scalar: pa.Scalar, type_: pa.DataType) -> bool:
    """Return whether a constant the type cannot hold is comparable, so never equal."""
    return fits_kind(scalar, type_) and not pt.is_floating(type_)
