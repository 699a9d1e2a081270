"""Types on their way between a table and Spark: nothing is lost, or it is said."""

from datetime import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as st

import lancetable
from lancetable.errors import InputError, SchemaError
from lancetable.format.schema.types import schema_from_arrow
from lancetable.spark import register
from lancetable.spark.casts import plan_read, plan_write
from lancetable.spark.options import Nanoseconds, Rounding, Vectors
from lancetable.spark.type_names import TYPE_KEY
from lancetable.spark.types import to_arrow, to_spark, to_table

CASES = [
    (pa.bool_(), "boolean", [True, None, False]),
    (pa.int8(), "tinyint", [-128, None, 127]),
    (pa.int16(), "smallint", [-(2**15), None]),
    (pa.int32(), "int", [2**31 - 1, None]),
    (pa.int64(), "bigint", [-(2**63), None]),
    (pa.uint8(), "smallint", [255, None]),
    (pa.uint16(), "int", [65535, None]),
    (pa.uint32(), "bigint", [2**32 - 1, None]),
    (pa.uint64(), "decimal(20,0)", [2**64 - 1, None]),
    (pa.float16(), "float", [np.float16(1.5), None]),
    (pa.float32(), "float", [1.5, None]),
    (pa.float64(), "double", [0.1, None]),
    (pa.string(), "string", ["ä", None, ""]),
    (pa.large_string(), "string", ["ä", None]),
    (pa.binary(), "binary", [b"\x00", None]),
    (pa.large_binary(), "binary", [b"\x00", None]),
    (pa.binary(3), "binary", [b"abc", None]),
    (pa.decimal128(10, 2), "decimal(10,2)", [Decimal("1.25"), None]),
    (pa.decimal256(30, 2), "decimal(30,2)", [Decimal("1.25"), None]),
    (pa.decimal256(50, 2), "string", [Decimal("123456789012345678901234567890123456789.25"), None]),
    (pa.date32(), "date", [3, None]),
    (pa.date64(), "date", [86400000, None]),
    (pa.time32("s"), "time(0)", [3, None]),
    (pa.time32("ms"), "time(3)", [3, None]),
    (pa.time64("us"), "time(6)", [3, None]),
    (pa.time64("ns"), "time(6)", [3000, None]),
    (pa.timestamp("s", "UTC"), "timestamp", [3, None]),
    (pa.timestamp("ns", "Europe/Berlin"), "timestamp", [3000, None]),
    (pa.timestamp("ms"), "timestamp_ntz", [3, None]),
    (pa.duration("s"), "interval day to second", [3, None]),
    (pa.duration("ns"), "interval day to second", [3000, None]),
    (pa.list_(pa.uint8()), "array<smallint>", [[1, None], None, []]),
    (pa.large_list(pa.string()), "array<string>", [["a", None], None, []]),
    (pa.list_(pa.float32(), 2), "array<float>", [[1.0, 2.0], None, [3.0, 4.0]]),
    (pa.list_(pa.float16(), 2), "array<float>", [np.array([1, 2], np.float16), None]),
    (
        pa.struct([("a", pa.uint64()), ("b", pa.list_(pa.float16(), 1))]),
        "struct<a:decimal(20,0),b:array<float>>",
        [{"a": 1, "b": [np.float16(1)]}, None, {"a": None, "b": None}],
    ),
    (
        pa.list_(pa.struct([("a", pa.uint32())])),
        "array<struct<a:bigint>>",
        [[{"a": 1}, None], None],
    ),
    (pa.map_(pa.string(), pa.uint8()), "map<string,smallint>", [[("k", 1), ("l", None)], None]),
    (pa.dictionary(pa.int32(), pa.string()), "string", ["a", None, "b", "a"]),
    (pa.null(), "void", [None, None]),
]


def _array(type_, values):
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    if any(pa.types.is_temporal(type_) for _ in values):
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(type_)
    return pa.array(values, type_)


@pytest.mark.parametrize(("type_", "shown", "values"), CASES, ids=lambda case: str(case)[:40])
def test_every_type_goes_to_spark_and_back(type_, shown, values):
    array = _array(type_, values)
    schema = pa.schema([pa.field("x", type_)])
    spark = to_spark(schema)
    assert spark["x"].dataType.simpleString() == shown

    batch = pa.RecordBatch.from_arrays([array], schema=schema)
    there = plan_read(schema, to_arrow(spark), Nanoseconds.ERROR).apply(batch)
    assert there.schema == to_arrow(spark)

    # The type comes back from the metadata of the column alone.
    table = to_table(spark, {})
    assert table.field("x").type == type_
    back = plan_write(there.schema, schema_from_arrow(table), Rounding.ERROR).apply(there)
    assert back.column("x").cast(type_).to_pylist() == array.to_pylist()


def test_extension_types_show_their_storage():
    schema = pa.schema([("j", pa.json_()), ("u", pa.uuid())])
    spark = to_spark(schema)
    assert spark.simpleString() == "struct<j:string,u:binary>"
    assert to_table(spark, {}) == schema


def test_row_ids_are_plain_numbers():
    spark = to_spark(pa.schema([("_rowid", pa.uint64()), ("_rowaddr", pa.uint64())]))
    assert spark.simpleString() == "struct<_rowid:bigint,_rowaddr:bigint>"


def test_vectors_can_travel_as_bytes():
    type_ = pa.list_(pa.float32(), 2)
    schema = pa.schema([("v", type_)])
    spark = to_spark(schema, Vectors.BINARY)
    assert spark["v"].dataType == st.BinaryType()
    array = pa.array([[9, 9], [1, 2], None, [3, 4]], type_)[1:]
    batch = pa.RecordBatch.from_arrays([array], schema=schema)
    there = plan_read(schema, to_arrow(spark), Nanoseconds.ERROR).apply(batch)
    expected = [np.array([1, 2], "<f4").tobytes(), None, np.array([3, 4], "<f4").tobytes()]
    assert there.column("v").to_pylist() == expected
    back = plan_write(there.schema, schema_from_arrow(schema), Rounding.ERROR).apply(there)
    assert back.column("v").to_pylist() == array.to_pylist()


@pytest.mark.parametrize("value", [b"", b"1234567", b"123456789"])
def test_bytes_of_another_length_are_no_vector(value):
    schema = schema_from_arrow(pa.schema([("v", pa.list_(pa.float32(), 2))]))
    batch = pa.record_batch({"v": pa.array([b"12345678", value])})
    with pytest.raises(InputError, match="takes 8 bytes"):
        plan_write(batch.schema, schema, Rounding.ERROR).apply(batch)


def test_nanoseconds_are_refused_or_cut_on_request():
    schema = pa.schema([("t", pa.timestamp("ns", "UTC")), ("c", pa.time64("ns"))])
    numbers = [1_000_000_001, None, -1]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(numbers, pa.int64()).view(pa.timestamp("ns", "UTC")),
            pa.array([1001, None, 2000], pa.int64()).view(pa.time64("ns")),
        ],
        schema=schema,
    )
    target = to_arrow(to_spark(schema))
    with pytest.raises(InputError, match="nanoseconds=truncate"):
        plan_read(schema, target, Nanoseconds.ERROR).apply(batch)
    cut = plan_read(schema, target, Nanoseconds.TRUNCATE).apply(batch)
    assert cut.column("t").cast(pa.int64()).to_pylist() == [1_000_000, None, -1]
    assert cut.column("c").cast(pa.int64()).to_pylist() == [1000, None, 2000]


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        (pa.int16(), pa.uint8(), 256),
        (pa.int64(), pa.int32(), 2**31),
        (pa.decimal128(20, 0), pa.uint64(), Decimal(-1)),
        (pa.decimal128(20, 3), pa.decimal128(20, 2), Decimal("0.005")),
        (pa.float32(), pa.float16(), 1e6),
        (pa.binary(), pa.binary(2), b"abc"),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused(source, target, value):
    schema = schema_from_arrow(pa.schema([("x", target)]))
    batch = pa.record_batch({"x": pa.array([value], source)})
    with pytest.raises(InputError, match="column 'x'"):
        plan_write(batch.schema, schema, Rounding.ERROR).apply(batch)


def test_doubles_become_floats_only_on_request():
    schema = schema_from_arrow(pa.schema([("v", pa.list_(pa.float32(), 1))]))
    batch = pa.record_batch({"v": pa.array([[0.1], None], pa.list_(pa.float64()))})
    with pytest.raises(SchemaError, match="rounding=allow"):
        plan_write(batch.schema, schema, Rounding.ERROR)
    made = plan_write(batch.schema, schema, Rounding.ALLOW).apply(batch)
    assert made.column("v").to_pylist() == [[np.float32(0.1)], None]


def test_a_schema_that_does_not_fit_names_the_column():
    with pytest.raises(SchemaError, match="column 'x'"):
        plan_read(
            pa.schema([("x", pa.string())]), pa.schema([("x", pa.int32())]), Nanoseconds.ERROR
        )


def test_a_part_of_a_struct_can_be_read():
    whole = pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.uint8()), ("d", pa.int8())]))])
    part = pa.struct([("b", pa.struct([("c", pa.int16())]))])
    batch = pa.record_batch({"s": pa.array([{"a": 1, "b": {"c": 2, "d": 3}}, None], whole)})
    made = plan_read(batch.schema, pa.schema([("s", part)]), Nanoseconds.ERROR).apply(batch)
    assert made.column("s").to_pylist() == [{"b": {"c": 2}}, None]


@pytest.mark.parametrize(
    "type_",
    [st.YearMonthIntervalType(), st.CalendarIntervalType()],
    ids=str,
)
def test_what_cannot_be_stored_says_so(type_):
    with pytest.raises(SchemaError, match="cast it first"):
        to_arrow(st.StructType([st.StructField("x", type_)]))


def test_hints_name_types_that_spark_does_not_have():
    spark = st.StructType(
        [
            st.StructField("v", st.ArrayType(st.FloatType())),
            st.StructField("n", st.LongType(), metadata={TYPE_KEY: "uint32"}),
            st.StructField("l", st.ArrayType(st.ArrayType(st.IntegerType()))),
            st.StructField("b", st.BinaryType()),
            st.StructField("s", st.StructType([st.StructField("t", st.TimestampType())])),
        ]
    )
    hints = {
        "v": "float16[4]",
        "l": "large_list<list<uint8>>",
        "b": "blob",
        "s.t": "timestamp:ns:UTC",
    }
    made = to_table(spark, hints)
    assert made.field("v").type == pa.list_(pa.float16(), 4)
    assert made.field("n").type == pa.uint32()
    assert made.field("l").type == pa.large_list(pa.list_(pa.uint8()))
    assert made.field("b").metadata == {b"lance-encoding:blob": b"true"}
    assert made.field("s").type.field(0).type == pa.timestamp("ns", "UTC")
    with pytest.raises(InputError, match="float33"):
        to_table(spark, {"v": "float33[4]"})
    with pytest.raises(InputError, match="nothing"):
        to_table(spark, {"nothing": "int8"})


@pytest.fixture
def with_times(tmp_path):
    """A table with a time of day."""
    path = str(tmp_path / "t")
    times = pa.array([time(1, 2, 3), None, time(1, 2, 3)], pa.time64("us"))
    lancetable.create_table(path, pa.table({"id": [1, 2, 3], "t": times}))
    return path


def test_rows_with_a_time_of_day_are_counted_and_grouped(either, with_times):
    frame = either.read.format("lance").load(with_times)
    assert frame.count() == 3
    assert dict(map(tuple, frame.groupBy("t").count().collect())) == {time(1, 2, 3): 2, None: 1}


def test_registering_sets_what_times_of_day_need(spark, with_times):
    setting = "spark.sql.timeType.enabled"
    frame = spark.read.format("lance").load(with_times)
    spark.conf.set(setting, "false")
    try:
        with pytest.raises(Exception, match="UNSUPPORTED_TIME_TYPE"):
            frame.count()
    finally:
        assert register(spark) == {setting: "true"}
    assert frame.count() == 3
