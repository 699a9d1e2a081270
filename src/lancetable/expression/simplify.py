"""Simplify expressions without changing their meaning."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pt

from lancetable.expression.tree import (
    And,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    children,
    literal,
    rebuild,
)


def negate(expression: Expression) -> Expression:
    """Return the negation, moved as far inwards as it goes."""
    match expression:
        case Not(operand):
            return operand
        case In() | Like() | IsNull() | IsTrue():
            return replace(expression, negated=not expression.negated)
        case Compare(op, left, right):
            return Compare(op.inverse, left, right)
        case And(operands) | Or(operands):
            dual = Or if isinstance(expression, And) else And
            return dual(tuple(negate(operand) for operand in operands))
        case Literal(scalar) if pt.is_boolean(scalar.type) and scalar.is_valid:
            return literal(not scalar.as_py())
        case _:
            return Not(expression)


def simplify(expression: Expression, compute: Callable[[Expression], Literal]) -> Expression:
    """Fold constants, drop operands without effect, and flatten AND and OR.

    Args:
        expression: A bound expression.
        compute: Evaluates an expression without columns.
    """
    simple = rebuild(expression, lambda part: simplify(part, compute))
    match simple:
        case And():
            return _join(simple, neutral=True)
        case Or():
            return _join(simple, neutral=False)
        case Not(operand):
            return negate(operand)
        case Column() | Literal() | Opaque():
            return simple
        case _ if all(isinstance(part, Literal) for part in children(simple)):
            return compute(simple)
        case _:
            return simple


def _join(expression: And | Or, *, neutral: bool) -> Expression:
    kind = type(expression)
    parts: list[Expression] = []
    for operand in expression.operands:
        for part in operand.operands if isinstance(operand, kind) else (operand,):
            known = _truth(part)
            if known is (not neutral):
                return literal(not neutral)
            if known is None:
                parts.append(part)
    if not parts:
        return literal(neutral)
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _truth(expression: Expression) -> bool | None:
    if isinstance(expression, Literal) and pt.is_boolean(expression.type):
        value = expression.scalar.as_py()
        return None if value is None else bool(value)
    return None


def is_null_literal(expression: Expression) -> bool:
    """Return whether the expression is the constant NULL."""
    return isinstance(expression, Literal) and not expression.scalar.is_valid


NULL_BOOLEAN = literal(None, pa.bool_())
