"""Plan a write on the driver, before any row is written.

The plan holds the schema with its field ids, so that all tasks write files of the same columns,
and the version it was made on, so that the commit finds out what others did meanwhile.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from lancetable.commit import refs
from lancetable.commit.blob_dataset import check_rows_stay
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.errors import ExistsError, InputError, SchemaError, TableNotFoundError
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.format.schema.types import arrow_schema
from lancetable.fragment.write.writer import WriteOptions, WriteTarget, write_fragments
from lancetable.operations.input.fit import fit
from lancetable.operations.input.prepare import Prepared, grown, prepare, prepare_replacement
from lancetable.operations.input.write import (
    check_stored,
    keep_or_remove,
    next_field_id,
    replaced_version,
    table_options,
)
from lancetable.operations.rows.find_rows import Unmatched, find_unmatched, refuse_system_columns
from lancetable.operations.rows.parts import part_of
from lancetable.scan.columns import bound_predicate
from lancetable.scan.request import parse_where
from lancetable.spark.casts import plan_write
from lancetable.spark.options import CreateMode, Options, Rounding, SinkOptions, TableRef, VersionId
from lancetable.spark.types import to_arrow, to_table
from lancetable.store import Store, TableLocation


class Kind(enum.Enum):
    """The effect of a write on the table and its rows."""

    CREATE = "create"
    APPEND = "append"
    GROW = "grow"
    OVERWRITE = "overwrite"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One write, before its rows."""

    kind: Kind
    overwrites: bool
    location: TableLocation
    branch: str | None
    base: VersionId | None
    """The version it was made on; a new table has none."""
    schema: Schema
    new_columns: pa.Schema
    write: WriteOptions
    options: SinkOptions
    checked: Snapshot | None = None
    """The version without its fragments, if new rows must match ``replaceWhere``."""

    @property
    def target(self) -> WriteTarget:
        """The store that takes the files."""
        return WriteTarget(self.store())

    def store(self) -> Store:
        """Open the store that holds the files of the branch."""
        if self.branch in {None, refs.MAIN}:
            return self.location.open()
        return self.location.child(refs.branch_folder(self.branch or "")).open()

    def commit_options(self, properties: Mapping[str, str]) -> CommitOptions:
        """Return how the commit is made, and what is recorded with it."""
        return CommitOptions(
            self.options.commit_message, properties, attempts=self.options.commit_attempts
        )


def plan_writing(options: Options, schema: StructType, *, overwrite: bool) -> WritePlan:
    """Decide what a write does.

    Raises:
        SchemaError: a column does not fit the table or cannot be stored.
        ExistsError: there is a table, and there must be none.
        TableNotFoundError: there is none, and there must be one.
        InputError: options contradict each other.
    """
    place, sink = options.place, options.sink
    _check(place, sink, overwrite=overwrite)
    snapshot = _existing(place, sink)
    if snapshot is None:
        place.location.open().require_atomic_creation()
        made = _prepared_new(schema, sink)
        kind = Kind.CREATE
        new_schema, write = made.schema, made.options
    elif overwrite and sink.replace_where is None:
        made = _prepared_overwrite(snapshot, schema, sink)
        kind = Kind.OVERWRITE
        new_schema, write = made.schema, made.options
    else:
        kind = Kind.REPLACE if overwrite else Kind.APPEND
        check_rows_stay(snapshot.manifest, "add rows")
        write = table_options(snapshot.manifest, _write_options(sink))
        new_schema = _grown(snapshot, schema, sink, write)
        if new_schema is not snapshot.manifest.schema:
            kind = Kind.GROW
    plan = WritePlan(
        kind,
        overwrite,
        place.location,
        place.branch,
        None if snapshot is None else VersionId.of(snapshot),
        new_schema,
        to_table(_nullable(schema), sink.types),
        write,
        sink,
        _checked(snapshot, sink),
    )
    # What does not fit is found here, once, and not by every task.
    Fitting(to_arrow(schema), plan.schema, sink.rounding)
    return plan


def _checked(snapshot: Snapshot | None, sink: SinkOptions) -> Snapshot | None:
    """Return what new rows are checked against before they replace others, if they are.

    Raises:
        ExpressionError: the predicate cannot be understood or does not fit the columns.
        InputError: it names a column that new rows do not have yet.
    """
    where = parse_where(sink.replace_where)
    if where is None or snapshot is None or not sink.replace_where_check:
        return None
    schema = snapshot.manifest.schema
    bound_predicate(where, schema)
    refuse_system_columns(where, schema)
    return part_of(snapshot, ())


def _check(place: TableRef, sink: SinkOptions, *, overwrite: bool) -> None:
    if place.version is not None or place.tag is not None or place.as_of is not None:
        raise InputError(
            "a write makes the next version of a branch; leave out version, tag and asOf"
        )
    if sink.replace_where is not None and not overwrite:
        raise InputError("replaceWhere replaces rows; use it with mode('overwrite')")
    if sink.replace_where is not None and sink.merge_schema:
        raise InputError("replaceWhere and mergeSchema cannot be used together; add columns first")
    if (sink.txn_app_id is None) != (sink.txn_version is None):
        raise InputError("give both txnAppId and txnVersion, or none of them")


def _existing(place: TableRef, sink: SinkOptions) -> Snapshot | None:
    try:
        found = load(place.location, branch=place.branch)
    except TableNotFoundError:
        if sink.create_mode is CreateMode.NEVER or sink.replace_where is not None:
            raise
        return None
    if sink.create_mode is CreateMode.ERROR:
        raise ExistsError(
            f"{place.location.uri}: there is a table already, and the option createMode=error "
            "allows none"
        )
    return found


def _write_options(sink: SinkOptions) -> WriteOptions:
    return WriteOptions(
        max_rows_per_file=sink.max_rows_per_file,
        max_bytes_per_file=sink.max_bytes_per_file,
        storage_version=sink.storage_version,
    )


def _nullable(schema: StructType) -> StructType:
    """Spark calls a column not nullable when it happens to know; a table would promise it."""
    fields = [StructField(one.name, one.dataType, True, one.metadata) for one in schema.fields]  # noqa: FBT003
    return StructType(fields)


def _prepared_new(schema: StructType, sink: SinkOptions) -> Prepared:
    return prepare(None, to_table(_nullable(schema), sink.types), _write_options(sink))


def _prepared_overwrite(snapshot: Snapshot, schema: StructType, sink: SinkOptions) -> Prepared:
    manifest = snapshot.manifest
    wanted = to_table(_nullable(schema), sink.types)
    if not sink.overwrite_schema:
        wanted = _kept_types(manifest.schema, wanted, to_arrow(schema), sink)
    lasting = manifest.max_allocated_field_id is not None
    return prepare_replacement(
        wanted.empty_table(),
        manifest.schema,
        _write_options(sink),
        old_version=replaced_version(manifest),
        first_id=next_field_id(manifest) if lasting else 0,
    )


def _kept_types(old: Schema, wanted: pa.Schema, carried: pa.Schema, sink: SinkOptions) -> pa.Schema:
    """Return the new columns with the types that columns of their names had, where they fit."""
    shown = {field.name: field for field in arrow_schema(old)}
    known = {field.name: field for field in old.fields}
    fields = []
    for field in wanted:
        before = known.get(field.name)
        if before is None or before.is_blob or field.name in sink.types:
            fields.append(field)
            continue
        try:
            plan_write(pa.schema([carried.field(field.name)]), Schema((before,)), sink.rounding)
        except SchemaError:
            fields.append(field)
        else:
            fields.append(shown[field.name])
    return pa.schema(fields)


def _grown(
    snapshot: Snapshot, schema: StructType, sink: SinkOptions, write: WriteOptions
) -> Schema:
    old = snapshot.manifest.schema
    if not sink.merge_schema:
        return old
    wanted = to_table(_nullable(schema), sink.types)
    made = grown(old, wanted, next_field_id(snapshot.manifest))
    check_stored(made, write)
    return made


class Fitting:
    """Brings batches of Spark to the columns of a table."""

    __slots__ = ("_casts", "_fit")

    def __init__(self, source: pa.Schema, schema: Schema, rounding: Rounding) -> None:
        self._casts = plan_write(source, schema, rounding)
        self._fit = fit(
            self._casts.schema, schema, new_columns="use the option mergeSchema=true to add columns"
        )

    @property
    def schema(self) -> Schema:
        """The columns that are written."""
        return self._fit.schema

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch as files take it."""
        return self._fit.apply(self._casts.apply(batch))


class TaskRows(NamedTuple):
    """The fragments of one task, and its rows that do not match ``replaceWhere``."""

    fragments: tuple[Fragment, ...] = ()
    unmatched: Unmatched | None = None


def write_batches(plan: WritePlan, batches: Iterator[pa.RecordBatch]) -> TaskRows:
    """Write the rows of one task as new fragments.

    Raises:
        InputError: a value does not fit its column.
        StoreError: the files cannot be written; none stays behind.
    """
    first = next(batches, None)
    if first is None:
        return TaskRows()
    fitting = Fitting(first.schema, plan.schema, plan.options.rounding)
    fitted = map(fitting.apply, chain([first], batches))
    fragments = write_fragments(fitted, fitting.schema, plan.target, plan.write)
    where = parse_where(plan.options.replace_where)
    if where is None or plan.checked is None:
        return TaskRows(tuple(fragments))
    with keep_or_remove(fragments, plan.target):
        return TaskRows(tuple(fragments), find_unmatched(plan.checked, fragments, where))
