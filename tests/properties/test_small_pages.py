"""Few values take a short cut: the page must be the one that a long look gives."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.file.model import V2_1, V2_2
from lancetable.file.write.pages import page_builder
from lancetable.format.encoding.build import choose
from lancetable.format.encoding.build.compress import TextCoder
from lancetable.format.encoding.build.field_options import DEFAULT
from lancetable.format.encoding.build.shred import shred
from lancetable.format.encoding.build.small import MOST_VALUES, small_page
from lancetable.format.encoding.leaf import kind_of
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import schema_from_arrow

VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(width=64),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.binary(40): st.binary(min_size=40, max_size=40),
    pa.decimal128(20): st.decimals(allow_nan=False, allow_infinity=False, places=0).filter(
        lambda value: abs(value) < 10**19
    ),
    pa.string(): st.text(max_size=9),
    pa.large_binary(): st.binary(max_size=300),
}


@st.composite
def arrays(draw: st.DrawFn) -> pa.Array:
    """Few values of some type, often equal, in the middle of a longer array."""
    type_ = draw(st.sampled_from(list(VALUES)))
    value = VALUES[type_]
    if draw(st.booleans()):
        values = [draw(value)] * draw(st.integers(1, 20))
    else:
        values = draw(st.lists(value, min_size=1, max_size=20))
    before = draw(st.lists(value, max_size=3))
    return pa.array([*before, *values, *before], type_).slice(len(before), len(values))


def _field(type_: pa.DataType) -> Field:
    return schema_from_arrow(pa.schema([pa.field("a", type_)])).fields[0]


@pytest.mark.parametrize("grammar", [choose.V2_1, choose.V2_2])
@given(array=arrays())
def test_the_short_cut_gives_the_same_page(grammar: choose.Grammar, array: pa.Array) -> None:
    made = small_page(array, kind_of(array.type), DEFAULT, is_new=grammar.has_constants)
    choice = choose.Choice(DEFAULT, grammar, TextCoder())
    (leaf,) = shred(_field(array.type), array)
    (expected,) = choose.build_pages(leaf, len(array), choice)
    if made is not None:
        assert made.rows == expected.rows
        assert made.description == expected.description
        assert [bytes(one) for one in made.buffers] == [bytes(one) for one in expected.buffers]


@pytest.mark.parametrize("version", [V2_1, V2_2])
@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.binary(16)])
def test_single_values_take_it(version: object, type_: pa.DataType) -> None:
    value = {pa.int64(): 7, pa.string(): "x", pa.binary(16): bytes(range(16))}[type_]
    made = small_page(pa.array([value], type_), kind_of(type_), DEFAULT, is_new=version == V2_2)
    assert made is not None


def test_nulls_and_many_values_do_not() -> None:
    kind = kind_of(pa.int8())
    assert small_page(pa.array([1, None], pa.int8()), kind, DEFAULT, is_new=False) is None
    many = pa.array([0, 1] * MOST_VALUES, pa.int8())
    assert small_page(many, kind, DEFAULT, is_new=False) is None
    builder = page_builder(V2_1)(_field(pa.int8()))
    assert [draft.rows for _, draft in builder.build(many)] == [len(many)]
