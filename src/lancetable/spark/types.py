"""Map the types of a table to those of Spark, and Spark types to the Arrow types that carry them.

Spark knows fewer types than Arrow, so several Arrow types share one Spark type. What would be lost
that way is noted in the metadata of the Spark column (see :mod:`lancetable.spark.type_names`),
which follows the column through most of what Spark does to it.

=================================  =====================  ==============================
in the table                       in Spark               between Spark and Python
=================================  =====================  ==============================
uint8, uint16, uint32              smallint, int, bigint  int16, int32, int64
uint64                             decimal(20,0)          decimal128(20, 0)
float16                            float                  float32
large and dictionary strings       string                 string
large and fixed size binary        binary                 binary
decimals of more than 38 digits    string                 string
date64                             date                   date32
time of any unit                   time(0), (3), (6)      time64[ns]
timestamp with, without a zone     timestamp, _ntz        timestamp[us, UTC], [us]
duration of any unit               interval day-second    duration[us]
lists of any kind                  array                  list
extension types                    that of their storage  that of their storage
=================================  =====================  ==============================

The system columns hold numbers below 2^63 and are shown as bigint.
"""

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import types as st

from lancetable.errors import InputError, SchemaError
from lancetable.fragment.projection import SYSTEM_COLUMNS
from lancetable.spark.options import Vectors
from lancetable.spark.type_names import TYPE_KEY, hinted_field, type_text

MOST_DIGITS = 38
"""The most digits of a decimal in Spark."""
_VARIANT = {b"variant": b"true"}
_types = pa.types

_SIMPLE: dict[pa.DataType, Callable[[], st.DataType]] = {
    pa.null(): st.NullType,
    pa.bool_(): st.BooleanType,
    pa.int8(): st.ByteType,
    pa.int16(): st.ShortType,
    pa.int32(): st.IntegerType,
    pa.int64(): st.LongType,
    pa.uint8(): st.ShortType,
    pa.uint16(): st.IntegerType,
    pa.uint32(): st.LongType,
    pa.uint64(): lambda: st.DecimalType(20, 0),
    pa.float16(): st.FloatType,
    pa.float32(): st.FloatType,
    pa.float64(): st.DoubleType,
    pa.string(): st.StringType,
    pa.large_string(): st.StringType,
    pa.binary(): st.BinaryType,
    pa.large_binary(): st.BinaryType,
    pa.date32(): st.DateType,
    pa.date64(): st.DateType,
    pa.time32("s"): lambda: st.TimeType(0),
    pa.time32("ms"): lambda: st.TimeType(3),
    pa.time64("us"): lambda: st.TimeType(6),
    pa.time64("ns"): lambda: st.TimeType(6),
}


def to_spark(schema: pa.Schema, vectors: Vectors = Vectors.ARRAY) -> st.StructType:
    """Return the Spark schema that shows the columns of a scan.

    Raises:
        SchemaError: Spark has no type for a column.
    """
    return st.StructType([_spark_field(field, vectors, field.name) for field in schema])


def _spark_field(field: pa.Field, vectors: Vectors, path: str) -> st.StructField:
    if path in SYSTEM_COLUMNS:
        return st.StructField(field.name, st.LongType(), nullable=False)
    if vectors is Vectors.BINARY and is_vector(field.type):
        shown: st.DataType = st.BinaryType()
    else:
        shown = spark_type(field.type, path, vectors)
    text = type_text(field, carried_type(shown, path))
    metadata = {} if text is None else {TYPE_KEY: text}
    return st.StructField(field.name, _below(shown, field.nullable), field.nullable, metadata)


def _below(shown: st.DataType, is_nullable: bool) -> st.DataType:  # noqa: FBT001 - as Spark has it
    """Return a type whose fields may be null where the struct around them may be missing.

    Arrow lets fields be required that belong to a missing struct; Spark cannot hand that out.
    """
    if isinstance(shown, st.StructType):
        fields = []
        for one in shown.fields:
            nullable = one.nullable or is_nullable
            below = _below(one.dataType, nullable)
            fields.append(st.StructField(one.name, below, nullable, one.metadata))
        return st.StructType(fields)
    if isinstance(shown, st.ArrayType):
        return st.ArrayType(_below(shown.elementType, shown.containsNull), shown.containsNull)
    if isinstance(shown, st.MapType):
        value = _below(shown.valueType, shown.valueContainsNull)
        return st.MapType(shown.keyType, value, shown.valueContainsNull)
    return shown


def is_vector(type_: pa.DataType) -> bool:
    """Return whether values are lists of one length of numbers, which can be shown as bytes."""
    if not _types.is_fixed_size_list(type_):
        return False
    item = type_.value_type
    return bool(
        _types.is_integer(item) or _types.is_floating(item) or _types.is_fixed_size_binary(item)
    )


def spark_type(type_: pa.DataType, path: str, vectors: Vectors = Vectors.ARRAY) -> st.DataType:
    """Return the Spark type that shows values of an Arrow type; ``path`` is for the message.

    Raises:
        SchemaError: there is none.
    """
    if isinstance(type_, pa.BaseExtensionType):
        return spark_type(type_.storage_type, path, vectors)
    if _types.is_dictionary(type_):
        return spark_type(type_.value_type, path, vectors)
    simple = _SIMPLE.get(type_)
    if simple is not None:
        return simple()
    shown = _parametric(type_) or _nested(type_, path, vectors)
    if shown is None:
        raise SchemaError(
            f"column {path!r} has type {type_}, which Spark does not have; name the other columns "
            "in the option 'columns'"
        )
    return shown


def _parametric(type_: pa.DataType) -> st.DataType | None:
    if _types.is_fixed_size_binary(type_):
        return st.BinaryType()
    if _types.is_timestamp(type_):
        return st.TimestampNTZType() if type_.tz is None else st.TimestampType()
    if _types.is_duration(type_):
        return st.DayTimeIntervalType()
    if _types.is_decimal(type_):
        if type_.precision > MOST_DIGITS or not 0 <= type_.scale <= type_.precision:
            return st.StringType()
        return st.DecimalType(type_.precision, type_.scale)
    return None


def _nested(type_: pa.DataType, path: str, vectors: Vectors) -> st.DataType | None:
    if _is_variant(type_):
        return st.VariantType()
    if _types.is_struct(type_):
        fields = [_spark_field(child, vectors, f"{path}.{child.name}") for child in type_]
        return st.StructType(fields)
    if _types.is_map(type_):
        key = spark_type(type_.key_type, f"{path}.key", vectors)
        value = spark_type(type_.item_type, f"{path}.value", vectors)
        return st.MapType(key, value, type_.item_field.nullable)
    if is_list(type_):
        item = type_.value_field
        return st.ArrayType(spark_type(item.type, f"{path}.item", vectors), item.nullable)
    return None


def is_list(type_: pa.DataType) -> bool:
    """Return whether values are lists, of any length or of one."""
    return bool(
        _types.is_list(type_) or _types.is_large_list(type_) or _types.is_fixed_size_list(type_)
    )


def _is_variant(type_: pa.DataType) -> bool:
    if not _types.is_struct(type_) or [child.name for child in type_] != ["value", "metadata"]:
        return False
    return (type_.field(1).metadata or {}).get(b"variant") == b"true"


_CARRIED: dict[type[st.DataType], pa.DataType] = {
    st.NullType: pa.null(),
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.FloatType: pa.float32(),
    st.DoubleType: pa.float64(),
    st.StringType: pa.string(),
    st.CharType: pa.string(),
    st.VarcharType: pa.string(),
    st.BinaryType: pa.binary(),
    st.DateType: pa.date32(),
    st.TimestampType: pa.timestamp("us", "UTC"),
    st.TimestampNTZType: pa.timestamp("us"),
    st.DayTimeIntervalType: pa.duration("us"),
    st.TimeType: pa.time64("ns"),
    st.VariantType: pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata=_VARIANT),
        ]
    ),
}


def to_arrow(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark takes and gives batches of a Spark schema.

    Raises:
        SchemaError: a column has a type that Arrow cannot carry.
    """
    return pa.schema([_carried_field(field, field.name) for field in schema.fields])


def _carried_field(field: st.StructField, path: str) -> pa.Field:
    return pa.field(field.name, carried_type(field.dataType, path), field.nullable)


def carried_type(type_: st.DataType, path: str) -> pa.DataType:
    """Return the Arrow type that carries values of a Spark type; ``path`` is for the message.

    Raises:
        SchemaError: there is none.
    """
    found = _CARRIED.get(type(type_))
    if found is not None:
        return found
    if isinstance(type_, st.DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, st.UserDefinedType):
        return carried_type(type_.sqlType(), path)
    if isinstance(type_, st.ArrayType):
        item = carried_type(type_.elementType, f"{path}.element")
        return pa.list_(pa.field("element", item, type_.containsNull))
    if isinstance(type_, st.MapType):
        key = carried_type(type_.keyType, f"{path}.key")
        value = carried_type(type_.valueType, f"{path}.value")
        fields = (
            pa.field("key", key, nullable=False),
            pa.field("value", value, type_.valueContainsNull),
        )
        return pa.map_(*fields)
    if isinstance(type_, st.StructType):
        return pa.struct([_carried_field(one, f"{path}.{one.name}") for one in type_.fields])
    raise SchemaError(
        f"column {path!r} has the Spark type {type_.simpleString()}, which a table cannot store; "
        "cast it first"
    )


def to_table(schema: st.StructType, hints: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema of a new table for the columns of a Spark schema.

    ``hints`` are names of types by column, which win over those in the columns' metadata.

    Raises:
        SchemaError: a column cannot be stored.
        InputError: a hint cannot be understood, or names no column.
    """
    left = dict(hints)
    made = pa.schema([_table_field(field, field.name, left) for field in schema.fields])
    if left:
        raise InputError(
            f"the option 'types' names {', '.join(left)}, which the data does not have"
        )
    return made


def _table_field(field: st.StructField, path: str, hints: dict[str, str]) -> pa.Field:
    made = pa.field(field.name, _table_type(field.dataType, path, hints), field.nullable)
    text = hints.pop(path, None) or field.metadata.get(TYPE_KEY)
    return made if text is None else hinted_field(made, str(text))


def _table_type(type_: st.DataType, path: str, hints: dict[str, str]) -> pa.DataType:
    if isinstance(type_, st.StructType):
        children = [_table_field(one, f"{path}.{one.name}", hints) for one in type_.fields]
        return pa.struct(children)
    if isinstance(type_, st.ArrayType):
        item = st.StructField("item", type_.elementType, type_.containsNull)
        return pa.list_(_table_field(item, f"{path}.item", hints))
    if isinstance(type_, st.MapType):
        value = st.StructField("value", type_.valueType, type_.valueContainsNull)
        key = _table_type(type_.keyType, f"{path}.key", hints)
        return pa.map_(key, _table_field(value, f"{path}.value", hints))
    return carried_type(type_, path)
