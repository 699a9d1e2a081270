"""The predicate of a scan: bound once, taken apart in the ways in which rows are selected by it.

Rows of a window are selected by comparisons while columns are decoded, by asking each value that
pages name for its rows, or on decoded columns, whichever is possible first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from lancetable.expression import (
    And,
    Comparison,
    Expression,
    NumberTest,
    Opaque,
    columns,
    conjuncts,
    leading_tests,
    walk,
)
from lancetable.format.encoding.compiled_range import Test, packed_tests
from lancetable.fragment.projection import ColumnTests, Projection

_SIGNS = {
    Comparison.LT: "<",
    Comparison.LE: "<=",
    Comparison.EQ: "==",
    Comparison.NE: "!=",
    Comparison.GT: ">",
    Comparison.GE: ">=",
}


class Lone(NamedTuple):
    """What a predicate asks of one of its columns alone."""

    slot: int
    predicate: Expression


@dataclass(frozen=True, eq=False)
class Predicate:
    """A bound predicate on the early columns of a plan."""

    expression: Expression
    names: tuple[str, ...]
    """The columns that it reads."""

    tests: tuple[ColumnTests, ...]
    """The comparisons that stand first, by column: they are made while columns are decoded."""

    rest: Expression | None
    """What the rows that pass the tests have still to be asked."""

    @cached_property
    def lone(self) -> tuple[Lone, ...] | None:
        """What is asked of each column alone; None when the predicate does not come apart.

        The parts keep their order: what may fail is never overtaken by what is written after it.
        """
        asked: dict[str, list[Expression]] = {}
        last = ""
        for part in conjuncts(self.expression):
            tops = {path[0] for path in columns(part)}
            if len(tops) != 1 or any(isinstance(node, Opaque) for node in walk(part)):
                return None
            (name,) = tops
            if name in asked and name != last:
                return None
            asked.setdefault(name, []).append(part)
            last = name
        if sorted(asked) != sorted(self.names):
            return None
        return tuple(
            Lone(self.names.index(name), parts[0] if len(parts) == 1 else And(tuple(parts)))
            for name, parts in asked.items()
        )


def predicate_of(
    where: Expression, early: Projection, alone: Mapping[str, Projection], schema: pa.Schema
) -> Predicate:
    """Take a bound predicate apart.

    ``early`` are the columns that it reads, ``alone`` a projection of each column that is stored.
    """
    names = (*[field.name for field in early.fields], *early.system)
    tests, rest = leading_tests(where, schema)
    grouped: dict[str, list[NumberTest]] = {}
    for test in tests:
        grouped.setdefault(test.column, []).append(test)
    if not grouped.keys() <= alone.keys():
        return Predicate(where, names, (), where)
    packed = tuple([_packed(alone[name], each) for name, each in grouped.items()])
    return Predicate(where, names, packed, rest)


def _packed(column: Projection, tests: Sequence[NumberTest]) -> ColumnTests:
    packed = [Test(_SIGNS[test.op], test.constant) for test in tests]
    return ColumnTests(column, packed_tests(packed))
