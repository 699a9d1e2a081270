"""Compare while columns are decoded, and choose what is then read of the rows that pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancetable.expression import Comparison, Expression, NumberTest, leading_tests
from lancetable.format.encoding.compiled_range import Test, packed_tests
from lancetable.format.schema.model import Field
from lancetable.fragment.projection import ColumnTests, Projection

_SIGNS = {
    Comparison.LT: "<",
    Comparison.LE: "<=",
    Comparison.EQ: "==",
    Comparison.NE: "!=",
    Comparison.GT: ">",
    Comparison.GE: ">=",
}


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """How a predicate is evaluated while its columns are decoded."""

    columns: tuple[ColumnTests, ...]
    rest: Expression | None
    """What the rows that pass have still to be asked."""

    survivors: Projection
    """What is read of the rows that pass in the end."""

    slots: tuple[int, ...]
    """The slots of the plan that these columns are for."""

    gather_below: float


def column_tests(
    where: Expression, fields: Sequence[Field], schema: pa.Schema
) -> tuple[tuple[ColumnTests, ...], Expression | None]:
    """Return the comparisons that stand first in a predicate by column, and what follows them."""
    tests, rest = leading_tests(where, schema)
    by_name: Mapping[str, Field] = {field.name: field for field in fields}
    grouped: dict[str, list[NumberTest]] = {}
    for test in tests:
        grouped.setdefault(test.column, []).append(test)
    if not grouped.keys() <= by_name.keys():
        return (), where
    return tuple(_packed(by_name[name], each) for name, each in grouped.items()), rest


def _packed(field: Field, tests: Sequence[NumberTest]) -> ColumnTests:
    packed = [Test(_SIGNS[test.op], test.constant) for test in tests]
    return ColumnTests(Projection([field]), packed_tests(packed))
