"""Which comparisons stand first in a predicate, so that they can be made while values are decoded?

Only rows for which all that stands before is true are looked at by what follows, and comparisons of
a column with a constant never fail. So leading ones may be made in any order, and by anybody.
"""

from typing import NamedTuple

import pyarrow as pa

from lancetable.expression.compare import Number, number_test
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
    """A comparison of a column with a constant, as ``compare_numbers`` makes it."""

    column: str
    op: Comparison
    constant: Number


def leading_tests(
    expression: Expression, schema: pa.Schema
) -> tuple[list[NumberTest], Expression | None]:
    """Return the comparisons that stand first in a bound predicate, and what follows them."""
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
