"""Logical type texts and Arrow types name each other."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError, SchemaError, UnsupportedError
from lancetable.format.schema.logical import childless_type, logical_type

UNITS = st.sampled_from(["s", "ms", "us", "ns"])
ZONES = st.sampled_from([None, "UTC", "+02:00", "America/New_York", "-05:30"])

fixed_width = st.one_of(
    st.sampled_from(
        [
            pa.bool_(),
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
            *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
            *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        ]
    ),
    st.builds(pa.timestamp, UNITS, ZONES),
    st.builds(pa.duration, UNITS),
    st.builds(pa.decimal128, st.integers(1, 38), st.integers(-10, 38)),
    st.builds(pa.decimal256, st.integers(1, 76), st.integers(-10, 76)),
    st.builds(pa.binary, st.integers(1, 1000)),
)
vectors = st.recursive(
    fixed_width, lambda inner: st.builds(pa.list_, inner, st.integers(1, 9)), max_leaves=4
)
variable = st.sampled_from([pa.string(), pa.binary(), pa.large_string(), pa.large_binary()])
indices = st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()])
dictionaries = st.builds(pa.dictionary, indices, st.one_of(fixed_width, variable))


@given(st.one_of(vectors, variable, dictionaries, st.just(pa.null())))
def test_every_childless_type_survives_its_text(arrow):
    assert childless_type(logical_type(arrow, "c"), "c") == arrow


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("timestamp:us:+02:00", pa.timestamp("us", "+02:00")),
        ("timestamp:ms:-", pa.timestamp("ms")),
        ("decimal:128:10:-2", pa.decimal128(10, -2)),
        ("time:us", pa.time64("us")),
        ("time:s", pa.time32("s")),
        ("fixed_size_list:fixed_size_list:float:2:3", pa.list_(pa.list_(pa.float32(), 2), 3)),
        ("fixed_size_list:timestamp:us:+02:00:2", pa.list_(pa.timestamp("us", "+02:00"), 2)),
        ("fixed_size_list:decimal:128:5:1:2", pa.list_(pa.decimal128(5, 1), 2)),
        ("fixed_size_list:lance.bfloat16:4", pa.list_(pa.binary(2), 4)),
        ("dict:string:int16:false", pa.dictionary(pa.int16(), pa.string())),
        ("dict:string:int16:true", pa.dictionary(pa.int16(), pa.string(), ordered=True)),
        ("json", pa.string()),
    ],
)
def test_texts_with_traps(text, arrow):
    assert childless_type(text, "c") == arrow


def test_bfloat16_items_keep_their_extension():
    item = childless_type("fixed_size_list:lance.bfloat16:4", "c").value_field
    assert item.metadata[b"ARROW:extension:name"] == b"lance.bfloat16"
    assert logical_type(pa.list_(item, 4), "c") == "fixed_size_list:lance.bfloat16:4"


@pytest.mark.parametrize("text", ["quaternion", "", "decimalx:1:2:3", "fixed_size_list:odd:3"])
def test_an_unknown_text_is_refused_by_name(text):
    with pytest.raises(UnsupportedError, match="'price'") as caught:
        childless_type(text, "price")
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *("decimal:128:39:0", "decimal:64:3:0", "decimal:128:0:0", "decimal:128:a:b"),
        *("timestamp:h:UTC", "timestamp:us:", "fixed_size_binary:-1", "fixed_size_binary:²"),
        *("fixed_size_binary:99999999999", "fixed_size_list:float", "fixed_size_list:float:x"),
        *(
            "dict:string:float:false",
            "dict:string:int32:maybe",
            "dict:dict:a:int8:false:int8:false",
        ),
        "fixed_size_list:fixed_size_list:float:65536:65536",
        "fixed_size_list:" * 200 + "float" + ":1" * 200,
        "dict:fixed_size_list:" * 90_000,
    ],
)
def test_impossible_parameters_are_damage(text):
    with pytest.raises(CorruptError, match="'c'"):
        childless_type(text, "c")


@given(st.text(max_size=60))
def test_no_text_does_anything_else(text):
    try:
        childless_type(text, "c")
    except (CorruptError, UnsupportedError):
        return


@pytest.mark.parametrize(
    "arrow",
    [
        pa.month_day_nano_interval(),
        pa.map_(pa.string(), pa.int8(), keys_sorted=True),
        pa.list_(pa.string(), 2),
        pa.list_(pa.list_(pa.int8()), 2),
        pa.decimal32(5, 1),
    ],
)
def test_types_the_format_lacks(arrow):
    with pytest.raises(SchemaError, match="'odd'"):
        logical_type(arrow, "odd")
