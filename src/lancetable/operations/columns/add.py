"""Add columns: of nulls, from SQL expressions, from a function, or from other data with a key.

1. Give the new fields ids that were never used; they come last, and may be null.
2. Write one more data file for each fragment; columns of nulls need none.
3. Commit the new schema and all fragments as a Merge.
Rows that others append meanwhile make it start again; files of unchanged fragments are kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lancetable.commit.committer import commit
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Merge
from lancetable.errors import ConflictError, InputError, SchemaError
from lancetable.expression import Expression, Literal, bind, type_of
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import quote, split_path, with_payloads
from lancetable.operations.columns.column_values import Function, FunctionMaker, SqlMaker
from lancetable.operations.columns.extend import Extension, first_batch
from lancetable.operations.columns.joined import joined, names_addresses, refuse_moved_rows
from lancetable.operations.columns.new_files import with_columns
from lancetable.operations.columns.schema_edit import added_field
from lancetable.operations.input.assign import parse_assignments
from lancetable.operations.input.fit import refuse_names
from lancetable.operations.input.prepare import grown, numbered, refuse_known
from lancetable.operations.input.write import check_stored, next_field_id, table_options
from lancetable.operations.results import DEFAULTS, ChangeOptions, ColumnsResult, Done
from lancetable.operations.retry import repeat
from lancetable.scan.columns import binding_schema


def add_null_columns(
    snapshot: Snapshot,
    columns: pa.Schema | pa.Field | Sequence[pa.Field],
    options: ChangeOptions = DEFAULTS,
) -> Done[ColumnsResult]:
    """Add columns that are null for all rows; a path adds to a struct, as does a struct's field.

    Raises:
        SchemaError: a column is there already, may not be null, or cannot be stored.
        CommitError: nothing was changed.
    """
    wanted = pa.schema([columns] if isinstance(columns, pa.Field) else list(columns))
    refuse_names(wanted.names)
    for one in wanted:
        if not one.nullable:
            raise SchemaError(f"column {one.name!r} would be null for all rows; let it be nullable")
    if not wanted.names:
        raise InputError("no column is named; give pyarrow fields")
    parts = [one for one in wanted if len(split_path(one.name)) > 1]
    tops = pa.schema([one for one in wanted if one not in parts])

    def attempt(latest: Snapshot) -> Done[ColumnsResult]:
        manifest = latest.manifest
        refuse_known(list(tops), manifest.schema.fields)
        schema = grown(manifest.schema, tops, next_field_id(manifest))
        first = max(next_field_id(manifest), 1 + max(field.id for field in schema.walk()))
        schema, _ = _with_fields(schema, [one.name for one in parts], parts, first)
        check_stored(schema, table_options(manifest, options.write))
        operation = Merge(manifest.fragments, schema, preserves_nullability=True)
        made = commit(latest, operation, options.commit)
        result = ColumnsResult(made.snapshot.version, tuple(wanted.names), made.attempts)
        return Done(made.snapshot, result)

    return repeat(snapshot, attempt, options.commit)


def add_computed_columns(
    snapshot: Snapshot,
    columns: Mapping[str, str | Expression],
    options: ChangeOptions = DEFAULTS,
) -> Done[ColumnsResult]:
    """Add columns that SQL expressions of the others give; a path adds to a struct.

    Raises:
        SchemaError: a column is there already.
        ExpressionError: an expression cannot be understood, bound or computed.
        CommitError: nothing was changed.
    """
    parsed = parse_assignments(columns)
    bound, arrow = _bound(snapshot, parsed)

    def check(latest: Snapshot) -> None:
        if latest is not snapshot and _bound(latest, parsed) != (bound, arrow):
            raise ConflictError(
                "another writer changed the type of a column that the expressions read; add the"
                " columns again"
            )

    # Columns that are null in all rows, such as ``CAST(NULL AS int)``, need no file.
    is_null = all(isinstance(one, Literal) and not one.scalar.is_valid for one in bound)
    extension = None if is_null else Extension(SqlMaker(bound), options)
    return extend_schema(snapshot, tuple(parsed), arrow, extension, options, check)


def _bound(
    snapshot: Snapshot, parsed: Mapping[str, Expression]
) -> tuple[tuple[Expression, ...], list[pa.Field]]:
    """Return the expressions and the columns that they give, for the schema of a version."""
    schema = snapshot.manifest.schema
    shown = binding_schema(Schema(tuple(with_payloads(one) for one in schema.fields)))
    bound = tuple(bind(expression, shown) for expression in parsed.values())
    arrow = [
        pa.field(split_path(name)[-1], _plain(type_of(one, shown)))
        for name, one in zip(parsed, bound, strict=True)
    ]
    return bound, arrow


def _plain(type_: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_null(type_) else type_


@dataclass(frozen=True, slots=True)
class FunctionOptions:
    """Options for calling a function that computes new columns."""

    inputs: tuple[str, ...] | None = None
    """The columns it gets; None for all."""
    schema: pa.Schema | None = None
    """The columns it gives; None to learn them from the first batch."""
    checkpoint: str | None = None
    """A folder that keeps what it gave, so that a later attempt goes on from there."""
    batch_rows: int = 16 * 1024
    change: ChangeOptions = field(default_factory=ChangeOptions)


def add_columns_by(
    snapshot: Snapshot, function: Function, options: FunctionOptions
) -> Done[ColumnsResult]:
    """Add columns that a function of batches gives.

    Raises:
        InputError: the function gives something else than columns of as many rows as it got.
        SchemaError: a column is there already.
        CommitError: nothing was changed.
    """
    names = tuple(one.name for one in snapshot.manifest.schema.fields)
    inputs = names if options.inputs is None else options.inputs
    maker = FunctionMaker(function, inputs, options.checkpoint)
    wanted = options.schema
    if wanted is None:
        maker, wanted = _learned(snapshot, maker, options)
    extension = Extension(maker, options.change, options.batch_rows)
    made = extend_schema(
        snapshot, tuple(map(quote, wanted.names)), list(wanted), extension, options.change
    )
    maker.forget()
    return made


def _learned(
    snapshot: Snapshot, maker: FunctionMaker, options: FunctionOptions
) -> tuple[FunctionMaker, pa.Schema]:
    """Call the function for a first batch, and keep what it gave."""
    found = first_batch(snapshot, maker, options.batch_rows)
    if found is None:
        raise InputError("the table has no rows to learn the new columns from; give a schema")
    place, batch = found
    result = maker.call(batch, place)
    return replace(maker, known={place: result}), result.schema


def add_joined_columns(
    snapshot: Snapshot,
    data: object,
    on: Sequence[str],
    options: ChangeOptions = DEFAULTS,
) -> Done[ColumnsResult]:
    """Add the columns of other rows that have the same key, null where there is none.

    ``on`` names key columns; ``_rowaddr`` and ``_rowid`` match rows by address or id.

    Raises:
        SchemaError: a column is there already, or a key column is missing.
        InputError: several rows of the data have one key.
        CommitError: nothing was changed.
    """
    maker, fields = joined(snapshot, data, on)
    return add_spread_columns(snapshot, fields, on, Extension(maker, options), options)


def add_spread_columns(
    snapshot: Snapshot,
    fields: Sequence[pa.Field],
    on: Sequence[str],
    extension: Extension,
    options: ChangeOptions,
) -> Done[ColumnsResult]:
    """Add the columns of other rows that have the same key, wherever the two sides meet.

    Raises:
        SchemaError: a column is there already.
        ConflictError: rows that are known by their addresses may have moved.
        CommitError: nothing was changed.
    """

    def check(latest: Snapshot) -> None:
        if names_addresses(latest, on):
            refuse_moved_rows(snapshot, latest)

    names = tuple(quote(one.name) for one in fields)
    return extend_schema(snapshot, names, fields, extension, options, check)


def extend_schema(
    snapshot: Snapshot,
    paths: tuple[str, ...],
    columns: Sequence[pa.Field],
    extension: Extension | None,
    options: ChangeOptions,
    check: Callable[[Snapshot], None] | None = None,
) -> Done[ColumnsResult]:
    """Commit a schema with new columns and the files that an extension writes for them.

    ``check`` looks at each version that the work is done on.

    Raises:
        SchemaError: a column is there already or cannot be stored.
        CommitError: nothing was changed; the files are removed.
    """

    def attempt(latest: Snapshot) -> Done[ColumnsResult]:
        if check is not None:
            check(latest)
        manifest = latest.manifest
        schema, ids = _with_fields(manifest.schema, paths, columns, next_field_id(manifest))
        check_stored(schema, table_options(manifest, options.write))
        fragments = manifest.fragments
        if extension is not None:
            files = extension.write(latest, schema, ids)
            fragments = tuple(
                with_columns(one, files[one.id], one.physical_rows) if one.id in files else one
                for one in fragments
            )
        made = commit(latest, Merge(fragments, schema, preserves_nullability=True), options.commit)
        return Done(made.snapshot, ColumnsResult(made.snapshot.version, paths, made.attempts))

    if extension is None:
        return repeat(snapshot, attempt, options.commit)
    return extension.commit(snapshot, attempt)


def _with_fields(
    schema: Schema, paths: Sequence[str], columns: Sequence[pa.Field], next_id: int
) -> tuple[Schema, list[int]]:
    """Return the schema with new fields, and their ids."""
    ids = []
    for path, arrow in zip(paths, columns, strict=True):
        made = numbered(arrow, next_id)
        steps = split_path(path)
        schema = added_field(schema, steps[:-1], made._replace(name=steps[-1]))
        ids.append(made.id)
        next_id += sum(1 for _ in made.walk())
    return schema, ids
