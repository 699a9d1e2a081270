"""Cast batches between the types of a table and those that Spark exchanges.

The rules for casts without loss are those of every write. Here they are widened by what Spark
makes necessary: numbers whose type Spark does not have are brought back with a check of every
value, and vectors may travel as their bytes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError, SchemaError
from lancetable.format.schema.model import Schema
from lancetable.operations.input.casts import CastPlanner, Mismatch, Step, as_type
from lancetable.operations.input.fit import is_blob_input, write_type
from lancetable.spark.options import Nanoseconds, Rounding
from lancetable.spark.types import MOST_DIGITS, is_vector

_types = pa.types


class Casts(NamedTuple):
    """The casts of the columns of a batch; ``schema`` is the result."""

    schema: pa.Schema
    steps: tuple[Step | None, ...]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of exactly the schema.

        Raises:
            InputError: a value would be lost, or is null where none is promised.
        """
        arrays = []
        for field, step, column in zip(self.schema, self.steps, batch.columns, strict=True):
            array = column if step is None else step(column)
            if not field.nullable and array.null_count:
                raise InputError(f"column {field.name!r} must not be null, but holds nulls")
            arrays.append(as_type(array, field.type))
        if not arrays:
            return batch.select([]) if batch.num_columns else batch
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def plan_read(source: pa.Schema, target: pa.Schema, nanoseconds: Nanoseconds) -> Casts:
    """Plan how batches of a scan become what Spark expects, column by column.

    Raises:
        SchemaError: a column cannot be read as the requested type.
    """
    planner = _ReadPlanner(nanoseconds)
    steps = [
        planner.plan(wanted.name, field.type, wanted.type)
        for field, wanted in zip(source, target, strict=True)
    ]
    if planner.mismatches:
        listed = "; ".join(f"column {name!r} {reason}" for name, reason in planner.mismatches)
        raise SchemaError(f"the requested schema does not fit the table: {listed}")
    return Casts(target, tuple(steps))


def plan_write(source: pa.Schema, schema: Schema, rounding: Rounding) -> Casts:
    """Plan how batches of Spark get the types of a table; unknown columns stay as they are.

    Raises:
        SchemaError: a column cannot be stored as the table has it.
    """
    planner = _WritePlanner(rounding)
    known = {field.name: field for field in schema.fields}
    steps: list[Step | None] = []
    fields: list[pa.Field] = []
    for column in source:
        field = known.get(column.name)
        if field is None or (field.is_blob and is_blob_input(field, column.type)):
            steps.append(None)
            fields.append(column.with_nullable(True))  # noqa: FBT003 - pyarrow's parameter
            continue
        target = write_type(field)
        steps.append(planner.plan(column.name, column.type, target))
        fields.append(pa.field(column.name, target))
    if planner.mismatches:
        raise SchemaError(f"the data does not fit the table: {_listed(planner.mismatches)}")
    return Casts(pa.schema(fields), tuple(steps))


def _listed(mismatches: Sequence[Mismatch]) -> str:
    return "; ".join(f"column {name!r} {reason}" for name, reason in mismatches)


class _ReadPlanner(CastPlanner):
    """Plans the way from a table to Spark."""

    def __init__(self, nanoseconds: Nanoseconds) -> None:
        super().__init__()
        self._truncates = nanoseconds is Nanoseconds.TRUNCATE

    def plan(self, path: str, source: pa.DataType, target: pa.DataType) -> Step | None:
        """Return how arrays become the target type, ``None`` when they are or cannot be."""
        if _types.is_binary(target) and is_vector(source):
            return lambda array: _vector_bytes(path, array)
        if _is_wide_decimal(source) and _types.is_string(target):
            return lambda array: array.cast(target)
        if _types.is_uint64(source) and _types.is_int64(target):
            return lambda array: _checked(path, array, target)
        if _types.is_struct(source) and _types.is_struct(target):
            kept = [child for child in source if target.get_field_index(child.name) >= 0]
            if len(kept) < source.num_fields:
                return self._pruned(path, kept, target)
        if _is_finer_than_spark(source):
            return self._without_nanoseconds(path, source, target)
        return super().plan(path, source, target)

    def _pruned(self, path: str, kept: list[pa.Field], target: pa.DataType) -> Step | None:
        inner = super().plan(path, pa.struct(kept), target)

        def prune(array: pa.Array) -> pa.Array:
            parts = [pc.struct_field(array, [child.name]) for child in kept]
            mask = array.is_null() if array.null_count else None
            narrow = pa.StructArray.from_arrays(parts, fields=kept, mask=mask)
            return narrow if inner is None else inner(narrow)

        return prune

    def _without_nanoseconds(
        self, path: str, source: pa.DataType, target: pa.DataType
    ) -> Step | None:
        between = source
        if _types.is_timestamp(source):
            between = pa.timestamp("us", source.tz)
        elif _types.is_duration(source):
            between = pa.duration("us")
        inner = super().plan(path, between, target) if between != target else None

        def cast(array: pa.Array) -> pa.Array:
            array = _rounded_down(path, array, truncates=self._truncates).cast(between)
            return array if inner is None else inner(array)

        return cast


def _is_finer_than_spark(type_: pa.DataType) -> bool:
    if not (_types.is_timestamp(type_) or _types.is_duration(type_) or _types.is_time64(type_)):
        return False
    return bool(type_.unit == "ns")


def _rounded_down(path: str, array: pa.Array, *, truncates: bool) -> pa.Array:
    """Return times as whole microseconds, or fail when some are not and must not change."""
    numbers = array.view(pa.int64())
    values = np.asarray(numbers.fill_null(0).to_numpy(zero_copy_only=False))
    rest = values % 1000
    if not rest.any():
        return array
    if not truncates:
        raise InputError(
            f"column {path!r} holds times finer than a microsecond, which Spark cannot hold; use "
            "the option nanoseconds=truncate, or leave the column out"
        )
    mask = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
    return pa.array(values - rest, pa.int64(), mask=mask).view(array.type)


def _is_wide_decimal(type_: pa.DataType) -> bool:
    if not _types.is_decimal(type_):
        return False
    return type_.precision > MOST_DIGITS or not 0 <= type_.scale <= type_.precision


def _vector_bytes(path: str, array: pa.Array) -> pa.Array:
    """Return the values of each list, one after the other, as little-endian bytes."""
    width = array.type.list_size * (array.type.value_type.bit_width // 8)
    valid = array.is_valid()
    values = array.flatten()
    if values.null_count:
        raise InputError(f"column {path!r} has vectors with nulls in them, which have no bytes")
    place = values.offset * (values.type.bit_width // 8)
    data = values.buffers()[1].slice(place, len(values) * (values.type.bit_width // 8))
    offsets = np.zeros(len(array) + 1, np.int64)
    lengths = np.asarray(valid.to_numpy(zero_copy_only=False)).astype(np.int64) * width
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise InputError(f"column {path!r}: a batch is larger than 2 GiB; use a smaller batchRows")
    validity = valid.buffers()[1] if array.null_count else None
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), data]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)


class _WritePlanner(CastPlanner):
    """Plans the way from Spark to a table."""

    def __init__(self, rounding: Rounding) -> None:
        super().__init__()
        self._rounds = rounding is Rounding.ALLOW

    def plan(self, path: str, source: pa.DataType, target: pa.DataType) -> Step | None:
        """Return how arrays become the target type, ``None`` when they are or cannot be."""
        if _is_bytes(source) and is_vector(target):
            return lambda array: _vectors(path, array, target)
        if _is_shorter_float(source, target):
            return self._plan_rounding(path, source, target)
        if source != target and _is_checked(source, target):
            return lambda array: _checked(path, array, target)
        return super().plan(path, source, target)

    def _plan_rounding(self, path: str, source: pa.DataType, target: pa.DataType) -> Step | None:
        """Spark has no shorter float than float32, so that one is always rounded."""
        if self._rounds or (_types.is_float32(source) and _types.is_float16(target)):
            return lambda array: _rounded(path, array, target)
        reason = (
            f"has type {target} in the table, the data has {source}, of which digits would be "
            "lost; cast it in Spark or use the option rounding=allow"
        )
        self.mismatches.append(Mismatch(path, reason))
        return None


def _is_shorter_float(source: pa.DataType, target: pa.DataType) -> bool:
    if not (_types.is_floating(source) and _types.is_floating(target)):
        return False
    return bool(target.bit_width < source.bit_width)


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(_types.is_binary(type_) or _types.is_large_binary(type_))


def _is_checked(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether single values decide if they fit."""
    if _types.is_integer(source) or _types.is_decimal(source):
        return bool(_types.is_integer(target) or _types.is_decimal(target))
    if _types.is_string(source) or _types.is_large_string(source):
        return _is_wide_decimal(target)
    return _is_bytes(source) and bool(_types.is_fixed_size_binary(target))


def _checked(path: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return array.cast(target)
    except pa.ArrowInvalid as cause:
        raise InputError(f"column {path!r} holds a value that {target} cannot: {cause}") from cause


def _rounded(path: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return numbers with fewer digits; one that becomes infinite does not fit."""
    kind = {16: np.float16, 32: np.float32}[target.bit_width]
    values = np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False))
    with np.errstate(over="ignore"):
        made = values.astype(kind)
    if np.any(np.isinf(made) & np.isfinite(values)):
        raise InputError(f"column {path!r} holds a number that is too large for {target}")
    mask = None
    if array.null_count:
        mask = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
    return pa.array(made, target, mask=mask)


def _vectors(path: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the lists whose bytes are given."""
    width = target.list_size * (target.value_type.bit_width // 8)
    lengths = pc.unique(pc.binary_length(array.drop_null())).to_pylist()
    if lengths not in ([], [width]):
        raise InputError(
            f"column {path!r} takes {width} bytes for {target.list_size} values, some rows have "
            f"{next(length for length in lengths if length != width)}"
        )
    fixed = array.cast(pa.binary(width))
    data = fixed.buffers()[1]
    start, length = fixed.offset * width, len(fixed) * width
    values = pa.Array.from_buffers(
        target.value_type, len(fixed) * target.list_size, [None, data.slice(start, length)]
    )
    mask = array.is_null() if array.null_count else None
    return pa.FixedSizeListArray.from_arrays(values, type=target, mask=mask)
