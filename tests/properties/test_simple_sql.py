"""Plain text that is parsed without sqlglot becomes the tree that sqlglot's would."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lancetable.errors import ExpressionError
from lancetable.expression import Call, Column, In, parse, walk
from lancetable.expression.binding.bind import bind_any
from lancetable.expression.binding.plain import bind_plain
from lancetable.expression.functions.table import FUNCTIONS
from lancetable.expression.sql.dialect import LanceSql
from lancetable.expression.sql.parse import parse as parse_with_sqlglot
from lancetable.expression.sql.text import parse_simple

WORDS = sorted({part for word in LanceSql.Tokenizer.KEYWORDS for part in word.split()})
FORMS = ["{} = 1", "{} < 'x'", "{} IN (1, 2)", "{} NOT IN ('a')", "{} IS NULL", "{} IS NOT NULL"]
FORMS += ["{} BETWEEN 1 AND 2", "c.{} = 1", "{}.c = 1.5", "contains({}, 'x')", "{}(c, 'x')"]
FORMS += ["c = 1 AND {} = 2", "c = {}", "c IN ({})"]
PIECES = ["a", "b.c", "_x", "A1", " ", " ", " ", "=", "!=", "<>", "<", "<=", ">=", "==", "IN", "in"]
PIECES += [
    "NOT",
    "IS",
    "NULL",
    "AND",
    "and",
    "OR",
    "BETWEEN",
    "(",
    ")",
    ",",
    "'x'",
    "'it''s'",
    "''",
]
PIECES += ["1", "-5", "- 5", "007", "1.5", "-0.0", "1e5", "1.", ".5", "0x1F", "123456789012345678"]
PIECES += [
    "1234567890123456789",
    "TRUE",
    "false",
    "contains",
    "array_has",
    "upper",
    "--",
    "/*",
    ";",
]
PIECES += ["'a' 'b'", '"a"', "`a`", "\n", "\t", "::int", "+", "ä", "NaN", "date '2024-01-01'"]
operators = st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="])
names = st.sampled_from(["a", "b.c", "_x9", "Big", "a.b.c", "value"])
constants = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(
        lambda text: "'" + text.replace("'", "''") + "'"
    ),
    st.sampled_from(["true", "FALSE", "NULL", "-1", "1.50"]),
)
gaps = st.sampled_from(["", " ", "  ", "\n"])
tests = st.one_of(
    st.tuples(names, gaps, operators, gaps, constants).map("".join),
    st.tuples(names, st.sampled_from([" in ", " NOT IN "]), st.lists(constants, max_size=4)).map(
        lambda parts: f"{parts[0]}{parts[1]}({', '.join(parts[2])})"
    ),
    st.tuples(names, constants, constants).map(
        lambda one: f"{one[0]} between {one[1]} and {one[2]}"
    ),
    st.tuples(names, st.sampled_from([" is null", " IS  NOT NULL"])).map("".join),
    st.tuples(st.sampled_from(sorted(FUNCTIONS)), names, constants).map(
        lambda one: f"{one[0]}({one[1]}, {one[2]})"
    ),
)


def check(text: str) -> bool:
    found = parse_simple(text)
    if found is None:
        return False
    expected = parse_with_sqlglot(text)
    assert found == expected, text
    assert positions(found) == positions(expected), text
    assert parse(text) == expected
    return True


SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("value", pa.string()),
        ("_x9", pa.float64()),
        ("Big", pa.list_(pa.string())),
        ("flag", pa.bool_()),
        ("small", pa.int8()),
        ("b", pa.struct([("c", pa.int64())])),
    ]
)
columns = st.sampled_from(["a", "value", "_x9", "Big", "flag", "small", "big", "b.c"])
short = st.sampled_from(["1", "-2.5", "'x'", "true", "300", "0.0"])
plain_tests = st.one_of(
    st.tuples(columns, operators, short).map("".join),
    st.tuples(columns, st.sampled_from([" in ", " NOT IN "]), st.lists(short, min_size=1)).map(
        lambda parts: f"{parts[0]}{parts[1]}({', '.join(parts[2])})"
    ),
    st.tuples(columns, st.sampled_from([" is null", " IS  NOT NULL"])).map("".join),
    st.tuples(st.sampled_from(["contains", "array_has", "starts_with"]), columns, short).map(
        lambda one: f"{one[0]}({one[1]}, {one[2]})"
    ),
)


@given(st.lists(plain_tests, min_size=1, max_size=3))
def test_plain_binding_is_that_of_any_expression(parts):
    expression = parse(" AND ".join(parts))
    found = bind_plain(expression, SCHEMA)
    if found is not None:
        expected = bind_any(expression, SCHEMA)
        assert found == expected
        assert [node.values for node in walk(found) if isinstance(node, In)] == [
            node.values for node in walk(expected) if isinstance(node, In)
        ]


def positions(expression):
    return [
        (node.position, isinstance(node, Column) and node.is_quoted)
        for node in walk(expression)
        if isinstance(node, Column | Call)
    ]


@given(st.lists(tests, min_size=1, max_size=3), st.sampled_from([" AND ", " and ", "\nAND\t"]))
@example(["a = 1", "b.c in (1, 2)"], " AND ")
def test_trees_are_those_of_sqlglot(parts, joint):
    check(joint.join(parts))


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_other_text_is_left_to_sqlglot(text):
    check(text)


@pytest.mark.parametrize("form", FORMS)
def test_words_with_a_meaning_are_left_to_sqlglot(form):
    for word in WORDS:
        check(form.format(word))


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a.b >= -2.5 AND c != 'it''s'",
        "x in (1,2 , 3) and y NOT IN ('a', 'b')",
        "x between 1 and 2.5 and y is not null",
        "array_has(tags, 'x') AND flag = true",
    ],
)
def test_plain_text_is_read_without_sqlglot(text):
    assert check(text)


@pytest.mark.parametrize(
    "text", ["", "a", "a =", "a = b", "a = 1 OR b = 2", "not a = 1", "a = NULL"]
)
def test_everything_else_is_not_plain(text):
    assert parse_simple(text) is None
    if text in {"", "a ="}:
        with pytest.raises(ExpressionError):
            parse(text)
