"""Long lists of constants mean the same whether sqlglot parses them or not."""

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import ExpressionError
from lancetable.expression import In, bind_predicate, evaluate, parse
from lancetable.expression.sql import long_lists
from lancetable.expression.tree import Literals, walk

LARGEST = 2**63
BATCH = pa.record_batch(
    {
        "tiny": pa.array([-128, -1, 0, 1, 2, 127, None], pa.int8()),
        "i": pa.array([-LARGEST, -1, 0, 1, 300, LARGEST - 1, None], pa.int64()),
        "u": pa.array([0, 1, 2, 300, LARGEST, 2 * LARGEST - 1, None], pa.uint64()),
        "f": pa.array([-1.5, -0.0, 0.0, 1.0, 0.25, 1e300, None], pa.float64()),
        "g": pa.array([-1.5, -0.0, 0.0, 1.0, 0.25, 3e38, None], pa.float32()),
        "d": pa.array([-1, 0, 1, 2, 300, 5, None], pa.int32()).cast(pa.decimal128(20, 2)),
        "s": pa.array(["", "a", "it's", "a,b", "')", "-- x", None]),
        "l": pa.array(["", "a", "it's", "a,b", "')", "/*", None], pa.large_string()),
    }
)
integers = st.one_of(
    st.integers(-3, 3),
    st.integers(-LARGEST - 2, 2 * LARGEST + 2),
    st.sampled_from([LARGEST - 1, LARGEST, -LARGEST, 10**38, 10**45]),
).map(str)
decimals = st.sampled_from(
    ["1.0", "-1.5", "0.25", "1e2", "1E-3", "-0.0", "1.5e+3", "3e38", "1e999"]
)
texts = st.one_of(
    st.sampled_from(["", "a", "it's", "a,b", "')", "-- x", "/*", "\\", '"', "x in (1, 2)", "\n"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
).map(lambda text: "'" + text.replace("'", "''") + "'")
odd = st.sampled_from(
    ["NULL", "null", "+1", "- 1", "1.", ".5", "(1)", "x'00'", "TRUE", "1 + 1", "i"]
)
spaces = st.sampled_from(["", " ", "\n", "\t ", "\r\n"])
comments = st.sampled_from(["", "", "", "", "/* , */", "-- ,\n"])
lists = st.one_of(
    *(st.lists(kind, min_size=3, max_size=8) for kind in (integers, decimals, texts)),
    st.lists(st.one_of(integers, decimals, texts, odd), min_size=3, max_size=8),
)


@st.composite
def predicates(draw: st.DrawFn) -> str:
    def test() -> str:
        name = draw(st.sampled_from(BATCH.schema.names))
        word = draw(st.sampled_from(["IN", "in", "NOT IN", "not  In"]))
        joined = ",".join(draw(spaces) + item + draw(spaces) for item in draw(lists))
        return f"{name} {word}{draw(spaces)}({draw(comments)}{joined}{draw(comments)})"

    other = draw(st.sampled_from(["i > 0", "s <> 'x in (1,2,3,4)'", '"i" IS NULL', "tiny in (1)"]))
    parts = draw(st.permutations([test(), other, *([test()] if draw(st.booleans()) else [])]))
    return draw(st.sampled_from([" AND ", " or "])).join(parts)


def outcome(text: str, long: int) -> tuple[object, ...]:
    with patch.object(long_lists, "LONG", long):
        try:
            tree = parse(text)
        except ExpressionError as error:
            return (str(error),)
    positions = [getattr(node, "position", None) for node in walk(tree)]
    kept = [position for position in positions if position is not None]
    try:
        bound = bind_predicate(tree, BATCH.schema)
        found = evaluate(bound, BATCH)
    except ExpressionError as error:
        return tree, sorted(kept), str(error)
    known = found.as_py() if isinstance(found, pa.Scalar) else found.to_pylist()
    return tree, sorted(kept), known


@given(predicates())
def test_both_ways_of_parsing_agree(text: str) -> None:
    quick, slow = outcome(text, 1), outcome(text, 10**9)
    assert quick == slow


@pytest.mark.parametrize("item", ["-{}", "{}.5", "'k{}'"])
def test_a_long_list_of_one_kind_is_not_parsed(item: str) -> None:
    items = [item.format(number) for number in range(3000)]
    tree = parse(f"s = 'in (1, 2' AND x IN ({', '.join(items)})")
    (found,) = (node for node in walk(tree) if isinstance(node, In))
    assert isinstance(found.items, Literals)
    assert len(found.items) == 3000


def test_a_long_list_of_several_kinds_is_parsed() -> None:
    items = ["1", "NULL"] * 600
    tree = parse(f"x IN ({', '.join(items)})")
    assert isinstance(tree, In)
    assert not isinstance(tree.items, Literals)
