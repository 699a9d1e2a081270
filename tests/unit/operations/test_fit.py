"""Columns are brought to the schema of a table, and nothing is ever lost on the way."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import InputError, SchemaError
from lancetable.format.schema.types import schema_from_arrow
from lancetable.operations.input.casts import CastPlanner, is_lossless
from lancetable.operations.input.fit import LEAVE_OUT, fit
from tests.strategies import NUMBERS, Maker


def fitted(array, target, *, nullable=True):
    """Return what a column becomes in a table of another type."""
    schema = schema_from_arrow(pa.schema([pa.field("c", target, nullable)]))
    plan = fit(pa.schema([pa.field("c", array.type)]), schema)
    batch = plan.apply(pa.RecordBatch.from_arrays([array], ["c"]))
    return batch.column(0), plan.casts


EXACT = [
    (pa.array([1, None, -7], pa.int8()), pa.int64()),
    (pa.array([1, None, 255], pa.uint8()), pa.int16()),
    (pa.array([1, None, 2**32 - 1], pa.uint32()), pa.uint64()),
    (pa.array([1, None, -(2**31)], pa.int32()), pa.float64()),
    (pa.array([1, None, -128], pa.int8()), pa.float16()),
    (pa.array([1.5, None], pa.float16()), pa.float64()),
    (pa.array([12, None], pa.int16()), pa.decimal128(12, 3)),
    (pa.array([decimal.Decimal("1.5"), None], pa.decimal128(5, 1)), pa.decimal256(40, 3)),
    (pa.array([decimal.Decimal("1.5")], pa.decimal32(5, 1)), pa.decimal128(12, 2)),
    (pa.array(["a", None], pa.large_string()), pa.string()),
    (pa.array(["a", None], pa.string_view()), pa.large_string()),
    (pa.array([b"a", None], pa.binary_view()), pa.binary()),
    (pa.array([b"a", None], pa.binary(1)), pa.large_binary()),
    (pa.array(["a", None, "a"]).dictionary_encode(), pa.string()),
    (pa.array(["a", None, "a"]).dictionary_encode(), pa.large_string()),
    (pa.array(["a", None, "a"]), pa.dictionary(pa.int8(), pa.string())),
    (pa.array([None, None]), pa.list_(pa.int32(), 3)),
    (pa.array([3_000_000, None], pa.timestamp("ns")), pa.timestamp("us")),
    (pa.array([3, None], pa.timestamp("s", "UTC")), pa.timestamp("ns", "UTC")),
    (pa.array([3, None], pa.timestamp("s", "Europe/Berlin")), pa.timestamp("s", "UTC")),
    (pa.array([3, None], pa.date32()), pa.date64()),
    (pa.array([3, None], pa.date32()), pa.timestamp("us")),
    (pa.array([3000, None], pa.time32("ms")), pa.time32("s")),
    (pa.array([3, None], pa.duration("s")), pa.duration("ns")),
    (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8())), pa.list_(pa.int32(), 2)),
    (pa.array([[1, 2], None, []], pa.large_list(pa.int8())), pa.list_(pa.int8())),
    (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)), pa.large_list(pa.float32())),
    (pa.array([[1, 2], None, []], pa.list_view(pa.int8())), pa.list_(pa.int64())),
    (
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int8())),
        pa.map_(pa.large_string(), pa.int64()),
    ),
    (
        pa.array([{"b": 1, "a": "x"}, None], pa.struct([("b", pa.int8()), ("a", pa.string())])),
        pa.struct([("a", pa.large_string()), ("b", pa.int16())]),
    ),
    (
        pa.array([[{"b": [1]}], None, [None]], pa.list_(pa.struct([("b", pa.list_(pa.int8()))]))),
        pa.list_(pa.struct([("b", pa.list_(pa.int16()))])),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("array", "target"), EXACT, ids=lambda one: str(getattr(one, "type", one)))
@pytest.mark.parametrize("lead", [0, 1])
def test_types_that_hold_every_value_are_cast_and_reported(array, target, lead):
    sliced = pa.concat_arrays([array[:1]] * lead + [array]).slice(lead)
    made, casts = fitted(sliced, target)
    assert made.type == target
    made.validate(full=True)
    if pa.types.is_timestamp(target) or pa.types.is_duration(target):
        expected = sliced.cast(target).to_pylist()
    else:
        expected = sliced.to_pylist()
    assert made.to_pylist() == expected
    assert casts
    assert casts[0].column.split(".")[0] == "c"


LOSSY = [
    (pa.int64(), pa.int32()),
    (pa.int8(), pa.uint8()),
    (pa.uint64(), pa.int64()),
    (pa.int32(), pa.float32()),
    (pa.int64(), pa.float64()),
    (pa.float64(), pa.float32()),
    (pa.float64(), pa.int64()),
    (pa.string(), pa.int64()),
    (pa.int64(), pa.string()),
    (pa.string(), pa.binary()),
    (pa.binary(), pa.string()),
    (pa.bool_(), pa.int8()),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us")),
    (pa.timestamp("us"), pa.date32()),
    (pa.date32(), pa.timestamp("us", "UTC")),
    (pa.decimal128(10, 2), pa.decimal128(10, 3)),
    (pa.decimal128(10, 2), pa.decimal128(9, 2)),
    (pa.int64(), pa.decimal128(18, 0)),
    (pa.list_(pa.int64(), 3), pa.list_(pa.int64(), 2)),
    (pa.list_(pa.int64()), pa.list_(pa.int32())),
    (pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int32())])),
    (pa.struct([("a", pa.int64())]), pa.int64()),
    (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32())),
]


@pytest.mark.parametrize(("source", "target"), LOSSY, ids=str)
def test_types_that_could_lose_a_value_are_refused_and_named(source, target):
    schema = schema_from_arrow(pa.schema([("c", target)]))
    with pytest.raises(SchemaError, match="column 'c") as raised:
        fit(pa.schema([("c", source)]), schema)
    for type_ in _differing(source, target):
        assert str(type_) in str(raised.value)


def _differing(source, target):
    """Return the two types that a message has to name: the innermost that differ."""
    if pa.types.is_map(source):
        return source.item_type, target.item_type
    is_frame = source.id == target.id and source.num_fields == 1
    if is_frame and source.field(0).type != target.field(0).type:
        return source.field(0).type, target.field(0).type
    return source, target


@pytest.mark.parametrize(
    ("array", "target", "text"),
    [
        (pa.array([1500], pa.timestamp("ns")), pa.timestamp("us"), "would lose data"),
        (pa.array([2**60], pa.timestamp("s")), pa.timestamp("us"), "out of bounds"),
        (pa.array([1500], pa.duration("ms")), pa.duration("s"), "would lose data"),
        (pa.array([[1], [1, 2]]), pa.list_(pa.int64(), 2), "lists of 2 values, row 0 .* has 1"),
        (
            pa.array([str(n) for n in range(300)]),
            pa.dictionary(pa.int8(), pa.string()),
            "not in range",
        ),
    ],
)
def test_a_value_that_would_be_lost_is_refused(array, target, text):
    with pytest.raises(InputError, match=text):
        fitted(array, target)


def test_all_mismatches_are_named_at_once():
    schema = schema_from_arrow(
        pa.schema(
            [
                ("a", pa.int32()),
                pa.field("must", pa.string(), nullable=False),
                ("s", pa.struct([("x", pa.int8())])),
            ]
        )
    )
    source = pa.schema([("a", pa.string()), ("s", pa.struct([("y", pa.int8())])), ("z", pa.null())])
    with pytest.raises(SchemaError) as raised:
        fit(source, schema)
    text = str(raised.value)
    for part in ("'a' has type int32", "string", "'must' must not be null", "'s.y'", "'z'"):
        assert part in text
    assert text.endswith(f"(cast the data to these types first, and {LEAVE_OUT})")


def test_columns_come_in_any_order_and_nullable_ones_may_be_missing():
    schema = schema_from_arrow(pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int8())]))
    plan = fit(pa.schema([("c", pa.int8()), ("a", pa.int64())]), schema)
    assert [(field.name, field.id) for field in plan.schema.fields] == [("a", 0), ("c", 2)]
    batch = plan.apply(pa.record_batch({"c": pa.array([1], pa.int8()), "a": [2]}))
    assert batch.to_pydict() == {"a": [2], "c": [1]}


@pytest.mark.parametrize("name", ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version"])
def test_reserved_names_are_refused(name):
    schema = schema_from_arrow(pa.schema([("a", pa.int64())]))
    with pytest.raises(SchemaError, match="computed by the table"):
        fit(pa.schema([("a", pa.int64()), (name, pa.uint64())]), schema)


def test_a_name_that_stands_twice_is_refused():
    schema = schema_from_arrow(pa.schema([("a", pa.int64())]))
    with pytest.raises(SchemaError, match="duplicate column"):
        fit(pa.schema([("a", pa.int64()), ("a", pa.int64())]), schema)


REQUIRED = pa.field("x", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("target", "values", "path"),
    [
        (pa.field("c", pa.int64(), nullable=False), [1, None], "'c'"),
        (pa.field("c", pa.struct([REQUIRED])), [{"x": 1}, {"x": None}], "'c.x'"),
        (pa.field("c", pa.list_(pa.struct([REQUIRED]))), [[{"x": None}]], "'c.item.x'"),
        (pa.field("c", pa.list_(REQUIRED)), [[1, None]], "'c.x'"),
        (
            pa.field("c", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
            [[("k", None)]],
            "'c.entries.value'",
        ),
    ],
)
def test_nulls_are_refused_at_any_depth(target, values, path):
    loose = _without_requirements(target.type)
    schema = schema_from_arrow(pa.schema([target]))
    plan = fit(pa.schema([("c", loose)]), schema)
    with pytest.raises(InputError, match=f"{path} must not be null"):
        plan.apply(pa.RecordBatch.from_arrays([pa.array(values, loose)], ["c"]))


def _without_requirements(type_):
    if pa.types.is_struct(type_):
        return pa.struct([(child.name, _without_requirements(child.type)) for child in type_])
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, type_.item_type)
    if pa.types.is_list(type_):
        return pa.list_(pa.field(type_.value_field.name, _without_requirements(type_.value_type)))
    return type_


def test_what_is_below_a_null_need_not_be_there():
    target = pa.field("c", pa.struct([REQUIRED]))
    schema = schema_from_arrow(pa.schema([target]))
    loose = pa.struct([("x", pa.int64())])
    plan = fit(pa.schema([("c", loose)]), schema)
    array = pa.array([None, {"x": 1}], loose)
    assert plan.apply(pa.record_batch([array], ["c"])).column(0).to_pylist() == [None, {"x": 1}]


def test_json_takes_documents_and_text():
    schema = schema_from_arrow(pa.schema([("j", pa.json_())]))
    for type_ in (pa.json_(), pa.string(), pa.large_string(), pa.json_(pa.large_string())):
        plan = fit(pa.schema([("j", type_)]), schema)
        array = pa.array(['{"a":1}'], pa.string()).cast(
            type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
        )
        if isinstance(type_, pa.BaseExtensionType):
            array = pa.ExtensionArray.from_storage(type_, array)
        made = plan.apply(pa.record_batch([array], ["j"])).column(0)
        assert made.to_pylist() == ['{"a":1}']


def test_a_uuid_column_takes_plain_bytes():
    schema = schema_from_arrow(pa.schema([("u", pa.uuid())]))
    plan = fit(pa.schema([("u", pa.binary(16))]), schema)
    assert plan.is_identity


@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.integers(0, 2**30))
def test_a_lossless_cast_of_numbers_gives_every_value_back(source, target, seed):
    if source == target or not is_lossless(source, target):
        return
    array = Maker(seed, null_rate=0.2).array(source, 50)
    made, _ = fitted(array, target)
    back = made.cast(source)
    if pa.types.is_floating(source):
        left = array.to_numpy(zero_copy_only=False)
        right = back.to_numpy(zero_copy_only=False)
        np.testing.assert_array_equal(left.astype(np.float64), right.astype(np.float64))
        assert array.null_count == back.null_count
    else:
        assert back == array


@given(
    st.recursive(
        st.sampled_from([(pa.int8(), pa.int64()), (pa.large_string(), pa.string()),
                         (pa.float32(), pa.float32()), (pa.null(), pa.int16())]),
        lambda inner: st.one_of(
            inner.map(lambda p: (pa.list_(p[0]), pa.large_list(p[1]))),
            inner.map(lambda p: (pa.large_list(p[0]), pa.list_(p[1]))),
            inner.map(lambda p: (pa.list_(p[0], 2), pa.list_(p[1]))),
            st.tuples(inner, inner).map(
                lambda p: (
                    pa.struct([("x", p[0][0]), ("y", p[1][0])]),
                    pa.struct([("y", p[1][1]), ("x", p[0][1]), ("z", pa.int8())]),
                )
            ),
        ),
        max_leaves=4,
    ),
    st.integers(0, 2**30),
    st.integers(0, 5),
)  # fmt: skip
def test_nested_values_survive_a_change_of_frames(pair, seed, lead):
    source, target = pair
    array = Maker(seed, null_rate=0.3).array(source, 12 + lead).slice(lead)
    made, _ = fitted(array, target)
    made.validate(full=True)
    assert made.type == target
    # As text, since a NaN is not equal to itself.
    assert repr(made.to_pylist()) == repr([_reordered(one, target) for one in array.to_pylist()])


def _reordered(value, target):
    if isinstance(value, dict):
        return {child.name: _reordered(value.get(child.name), child.type) for child in target}
    if isinstance(value, list):
        return [_reordered(item, target.value_type) for item in value]
    return value


def test_a_planner_collects_what_it_was_asked():
    planner = CastPlanner()
    assert planner.plan("a", pa.int8(), pa.int16()) is not None
    assert planner.plan("b", pa.int16(), pa.int8()) is None
    assert [note.column for note in planner.notes] == ["a"]
    assert [one.column for one in planner.mismatches] == ["b"]


def test_dates_stay_dates():
    array = pa.array([dt.date(2026, 1, 2)], pa.date32())
    made, _ = fitted(array, pa.timestamp("us"))
    assert [moment.isoformat() for moment in made.to_pylist()] == ["2026-01-02T00:00:00"]
