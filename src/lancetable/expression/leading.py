"""Find the leading comparisons of a predicate, which can run while values are decoded.

Each operand of AND is evaluated only for rows for which all previous ones are true, and comparisons
of a column with a constant never fail. So leading comparisons may run in any order and anywhere.
"""

from typing import NamedTuple

import pyarrow as pa

from lancetable.expression.operators.compare import Number, number_test
from lancetable.expression.tree import (
    And,
    Column,
    Compare,
    Comparison,
    Expression,
    Literal,
    conjuncts,
)


class NumberTest(NamedTuple):
    """A comparison of a column with a constant, for ``compare_numbers``."""

    column: str
    op: Comparison
    constant: Number


def leading_tests(
    expression: Expression, schema: pa.Schema
) -> tuple[list[NumberTest], Expression | None]:
    """Return the leading comparisons of a bound predicate, and the rest of it."""
    parts = conjuncts(expression)
    found: list[NumberTest] = []
    for part in parts:
        test = _test_of(part, schema)
        if test is None:
            break
        found.append(test)
    rest = parts[len(found) :]
    if not rest:
        return found, None
    return found, rest[0] if len(rest) == 1 else And(rest)


def _test_of(part: Expression, schema: pa.Schema) -> NumberTest | None:
    match part:
        case Compare(op, Column((name,)), Literal(scalar)):
            test = number_test(op, schema.field(name).type, scalar)
            return None if test is None else NumberTest(name, *test)
    return None
