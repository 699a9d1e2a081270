"""Predicates and computed columns: read from SQL or from Arrow, bound to a schema, evaluated.

``bind(parse("price < 10 AND name LIKE 'a%'"), schema)`` gives a value that
:func:`evaluate_mask` applies to any batch of that schema.
"""

from lancetable.expression.arrow import from_arrow
from lancetable.expression.binding.bind import bind, bind_predicate, type_of
from lancetable.expression.evaluate import evaluate, evaluate_mask
from lancetable.expression.leading import NumberTest, leading_tests
from lancetable.expression.render import to_sql
from lancetable.expression.sql.text import parse
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
    Operation,
    Or,
    columns,
    conjuncts,
    literal,
    walk,
)

__all__ = [
    "And",
    "Arithmetic",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Compare",
    "Comparison",
    "Expression",
    "In",
    "IsNull",
    "IsTrue",
    "Item",
    "Like",
    "Literal",
    "Negate",
    "Not",
    "NumberTest",
    "Opaque",
    "Operation",
    "Or",
    "bind",
    "bind_predicate",
    "columns",
    "conjuncts",
    "evaluate",
    "evaluate_mask",
    "from_arrow",
    "leading_tests",
    "literal",
    "parse",
    "to_sql",
    "type_of",
    "walk",
]
