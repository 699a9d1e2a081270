"""Arrow's own expressions select the rows Arrow would select."""

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancetable.errors import ExpressionError
from lancetable.expression import (
    Column,
    Compare,
    Comparison,
    Opaque,
    bind_predicate,
    columns,
    conjuncts,
    evaluate_mask,
    from_arrow,
    literal,
)

F = pc.field
TABLE = pa.table(
    {
        "i": pa.array([7, -7, None, 0], pa.int32()),
        "f": pa.array([1.5, 2.5, None, -0.0]),
        "s": pa.array(["abc", "Añb", None, ""]),
        "b": pa.array([True, False, None, True]),
        "st": pa.array([{"x": 1, "y": {"z": "q"}}, {"x": None, "y": None}, None, {"x": 3}]),
        "l": pa.array([[1, 2, 3], [], None, [5]]),
        "dot.ted": pa.array([1, 2, 3, None]),
    }
)

TRANSLATED = [
    F("i") > 0,
    F("i") <= F("f"),
    (F("i") > -10) & (F("f") < 2) | F("b"),
    ~(F("i") == 7),
    ~F("b"),
    F("i").is_null(),
    F("f").is_null(nan_is_null=True),
    F("i").is_valid(),
    F("i").isin([7, 0]),
    ~F("i").isin([7]),
    F("i").isin([7, None]),
    ~F("i").isin([7, None]),
    F("i").isin([]),
    F("s").isin(["abc", ""]),
    F("st", "x") > 1,
    F("st", "y", "z") == "q",
    F("dot.ted") == 2,
    F("i") + 1 > 0,
    F("f") / 2 < 1,
    F("i").cast("float64") > 0.5,
    pc.starts_with(F("s"), "a"),
    pc.match_substring(F("s"), "b"),
    pc.match_substring_regex(F("s"), "^a.c$"),
    pc.match_like(F("s"), "%b%"),
    pc.utf8_lower(F("s")) == "añb",
    pc.list_value_length(F("l")) > 1,
    pc.if_else(F("b"), F("i"), 0) == 0,
    pc.coalesce(F("i"), pc.scalar(5)) == 5,
    F("s") == pa.scalar("abc", pa.large_string()),
]
LEFT_TO_ARROW = [
    pc.utf8_swapcase(F("s")) == "ABC",
    pc.bit_wise_and(F("i"), 1) == 1,
    pc.starts_with(F("s"), "A", ignore_case=True),
    (pc.utf8_swapcase(F("st", "y", "z")) == "Q") & (F("i") > 0),
]


def check(expression, tree):
    wanted = pc.fill_null(
        TABLE.append_column("row", pa.array(range(4))).filter(expression)["row"], -1
    )
    found = evaluate_mask(bind_predicate(tree, TABLE.schema), TABLE)
    assert found.nonzero()[0].tolist() == wanted.to_pylist()


@pytest.mark.parametrize("expression", TRANSLATED, ids=str)
def test_common_expressions_become_our_tree(expression):
    tree = from_arrow(expression)
    assert not isinstance(tree, Opaque)
    check(expression, tree)


@pytest.mark.parametrize("expression", LEFT_TO_ARROW, ids=str)
def test_other_expressions_are_left_to_arrow(expression):
    tree = from_arrow(expression)
    assert isinstance(tree, Opaque)
    check(expression, tree)
    check(expression, pickle.loads(pickle.dumps(tree)))


def test_the_parts_and_columns_are_known():
    tree = from_arrow((F("i") > 0) & (F("st", "x") == 1) & F("b"))
    assert len(conjuncts(tree)) == 3
    assert columns(tree) == {("i",), ("st", "x"), ("b",)}
    assert conjuncts(tree)[0] == Compare(Comparison.GT, Column(("i",)), literal(0))
    opaque = from_arrow(pc.bit_wise_and(F("i"), F("st", "x")) == F("dot.ted"))
    assert columns(opaque) == {("i",), ("st", "x"), ("dot.ted",)}


def test_empty_batches_and_unknown_columns():
    tree = from_arrow(LEFT_TO_ARROW[0])
    assert evaluate_mask(bind_predicate(tree, TABLE.schema), TABLE.slice(0, 0)).tolist() == []
    with pytest.raises(ExpressionError, match="no column 'nope'"):
        bind_predicate(from_arrow(pc.bit_wise_and(F("nope"), 1) == 1), TABLE.schema)
    with pytest.raises(ExpressionError, match="by name"):
        from_arrow(F(0) > 1)
