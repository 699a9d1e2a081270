"""SQL text becomes the right tree, or an error that names the place."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import ExpressionError
from lancetable.expression import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Compare,
    Comparison,
    In,
    IsNull,
    IsTrue,
    Item,
    Like,
    Not,
    Operation,
    Or,
    columns,
    conjuncts,
    literal,
    parse,
    to_sql,
)

A, B = Column(("a",)), Column(("b",))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a < 5", Compare(Comparison.LT, A, literal(5))),
        ("a != -5", Compare(Comparison.NE, A, literal(-5))),
        ("a = 'it''s'", Compare(Comparison.EQ, A, literal("it's"))),
        ("a = 'back\\slash'", Compare(Comparison.EQ, A, literal("back\\slash"))),
        ("a > 1.5e3", Compare(Comparison.GT, A, literal(1500.0))),
        ("a = X'61ff'", Compare(Comparison.EQ, A, literal(b"a\xff"))),
        ("a IS NOT NULL", IsNull(A, negated=True)),
        ("a IS NOT TRUE", IsTrue(A, negated=True)),
        ("a IS FALSE", IsTrue(A, value=False)),
        ("a IS DISTINCT FROM b", Compare(Comparison.DISTINCT, A, B)),
        ("a IN (1, NULL)", In(A, (literal(1), literal(None)))),
        ("a NOT IN (1)", In(A, (literal(1),), negated=True)),
        ("a LIKE 'x!%' ESCAPE '!'", Like(A, literal("x!%"), escape="!")),
        ("a NOT ILIKE 'x'", Like(A, literal("x"), negated=True, ignore_case=True)),
        (
            "a BETWEEN 1 AND 2",
            And((Compare(Comparison.GE, A, literal(1)), Compare(Comparison.LE, A, literal(2)))),
        ),
        ("NOT a", Not(A)),
        ("NOT (a AND b)", Or((Not(A), Not(B)))),
        ("a AND b AND a", And((A, B, A))),
        (
            "a + 1 * 2",
            Arithmetic(Operation.ADD, A, Arithmetic(Operation.MULTIPLY, literal(1), literal(2))),
        ),
        ("a::int", Cast(A, pa.int32())),
        ("TRY_CAST(a AS decimal(10, 2))", Cast(A, pa.decimal128(10, 2), or_null=True)),
        ("CAST(a AS timestamp(3))", Cast(A, pa.timestamp("ms"))),
        ("lower(a)", Call("lower", (A,))),
        ("extract(year FROM a)", Call("date_part", (literal("year"), A))),
        ("a || b", Call("||", (A, B))),
        ("a.b.c.d.e", Column(("a", "b", "c", "d", "e"))),
        ("a['b']", Column(("a", "b"))),
        ("a[1]", Item(A, literal(1))),
        ("a[1].b", Item(Item(A, literal(1)), literal("b"))),
        ("`odd name`.`x.y`", Column(("odd name", "x.y"))),
        ('"odd name"', Column(("odd name",))),
        ("comment", Column(("comment",))),
        ("a = 1 IS TRUE", IsTrue(Compare(Comparison.EQ, A, literal(1)))),
        ("a = (b IS TRUE)", Compare(Comparison.EQ, A, IsTrue(B))),
        ("a = (b) IS NOT TRUE", IsTrue(Compare(Comparison.EQ, A, B), negated=True)),
    ],
)
def test_text_becomes_the_tree(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "empty"),
        ("a = ", 2, "missing after '='"),
        ("a > 1 and (", 10, "missing after '('"),
        ("a > 1\n  and b b", 14, "unexpected 'b'"),
        ("a = 'open", 4, "quote is never closed"),
        ("a = 1; b = 2", 0, "not supported"),
        ("a > lwoer(b)", 4, "did you mean lower"),
        ("lower(a, b)", 0, "takes 1 argument, not 2"),
        ("a IN (SELECT 1)", 0, "IN takes a list"),
        ("a = X'6'", 4, "hexadecimal"),
        ("a + interval '3 fortnights'", None, "not an interval"),
        ("CAST(a AS geometry)", 5, "not a type"),
        ("a.*", 0, "'*'"),
        ("a[1:2]", 2, "is not supported"),
    ],
)
def test_an_error_names_the_place_and_the_reason(text, position, words):
    with pytest.raises(
        ExpressionError, match=words.replace("*", r"\*").replace("(", r"\(")
    ) as found:
        parse(text)
    assert found.value.position == position


def test_long_chains_and_deep_nesting_end_in_a_tree_or_an_error():
    chain = parse(" AND ".join(f"a <> {number}" for number in range(3000)))
    assert len(conjuncts(chain)) == 3000
    with pytest.raises(ExpressionError, match="nested too deeply"):
        parse("(" * 5000 + "a" + ")" * 5000)


@given(st.text(alphabet="ab1'\"`(),.<>=+-*/%[]:;!~^&|?$#@ \n\\NOTINLIKEIS", max_size=30))
def test_any_text_gives_an_expression_or_an_expression_error(text):
    position: int | None = None
    try:
        to_sql(parse(text))
    except ExpressionError as error:
        position = error.position
    assert position is None or 0 <= position <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "a < 5 AND b = 'x''y' OR NOT c",
        "a.b IN (1, 2) AND `odd name` IS NOT NULL",
        "CASE WHEN a > 1 THEN 'x' ELSE lower(b) END = 'x'",
        "a[1] + -b * 2 <= 1.5",
        "b LIKE 'a!%' ESCAPE '!' AND c NOT ILIKE 'x'",
        "CAST(a AS decimal(5, 2)) = b || 'x'",
        "a = X'00ff' AND b IS NOT FALSE",
    ],
)
def test_the_text_of_a_tree_gives_the_tree(text):
    tree = parse(text)
    assert parse(to_sql(tree)) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_columns_are_the_paths_the_expression_reads():
    tree = parse("a.b > 1 AND lower(c) IN ('x', d) OR e[f] IS NULL")
    assert columns(tree) == {("a", "b"), ("c",), ("d",), ("e",), ("f",)}
