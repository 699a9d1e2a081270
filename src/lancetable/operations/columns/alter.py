"""Alter columns: drop, rename, reorder and cast them, and allow or forbid nulls.

1. Compute the new schema; the data files stay as they are.
2. To forbid nulls, search for them first.
3. Commit it as a Project. Rows that others write meanwhile fit, since field ids stay; only when
   nulls become forbidden the search is repeated.

A cast gives the same values another type, at the same place of the schema:

1. Give the column a field id that was never used, so that old files keep their meaning.
2. Write one more data file for each fragment; no value may be lost.
3. Commit the new schema and all fragments as a Merge, which conflicts with every append that still
   has the old column. Indices on the column go.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa

from lancetable.commit.committer import commit
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Merge, Project
from lancetable.errors import InputError, SchemaError
from lancetable.format.schema.model import EXTENSION_METADATA, EXTENSION_NAME, Field, Schema
from lancetable.format.schema.project import quote, resolve, split_path
from lancetable.fragment.readers import Readers
from lancetable.operations.columns.column_values import CastMaker
from lancetable.operations.columns.extend import Extension
from lancetable.operations.columns.new_files import with_columns, with_live_files
from lancetable.operations.columns.schema_edit import (
    changed_field,
    renamed_field,
    reordered_fields,
    without_fields,
)
from lancetable.operations.input.fit import refuse_nulls
from lancetable.operations.input.prepare import numbered
from lancetable.operations.input.write import check_stored, next_field_id, table_options
from lancetable.operations.results import DEFAULTS, ChangeOptions, ColumnsResult, Done
from lancetable.operations.retry import repeat
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.scanner import Scan


def drop_columns(
    snapshot: Snapshot, names: Sequence[str], options: ChangeOptions = DEFAULTS
) -> Done[ColumnsResult]:
    """Drop columns, at the top or inside structs; indices on them go too.

    Raises:
        SchemaError: a column is unknown, or nothing would be left.
        CommitError: nothing was changed.
    """
    if isinstance(names, str) or not names:
        raise InputError("give the columns to drop as a list of names")
    return _project(snapshot, lambda schema: without_fields(schema, names), tuple(names), options)


def rename_column(
    snapshot: Snapshot, old: str, new: str, options: ChangeOptions = DEFAULTS
) -> Done[ColumnsResult]:
    """Give a column, at the top or inside a struct, another name.

    Raises:
        SchemaError: there is no such column, or the name is taken.
        CommitError: nothing was changed.
    """
    path = ".".join((*map(quote, split_path(old)[:-1]), quote(new)))
    return _project(snapshot, lambda schema: renamed_field(schema, old, new), (path,), options)


def reorder_columns(
    snapshot: Snapshot, names: Sequence[str], options: ChangeOptions = DEFAULTS
) -> Done[ColumnsResult]:
    """Put the top-level columns in another order.

    Raises:
        SchemaError: a column is unknown, left out or named twice.
        CommitError: nothing was changed.
    """
    order = tuple(names)
    return _project(snapshot, lambda schema: reordered_fields(schema, order), order, options)


def set_nullable(
    snapshot: Snapshot, name: str, *, nullable: bool, options: ChangeOptions = DEFAULTS
) -> Done[ColumnsResult]:
    """Allow nulls in a column, or forbid them if there are none.

    Raises:
        SchemaError: there is no such column.
        InputError: nulls are to be forbidden, and there are some.
        CommitError: nothing was changed.
    """

    def change(schema: Schema) -> Schema:
        return changed_field(schema, name, lambda field: field._replace(nullable=nullable))

    return _project(snapshot, change, (name,), options, forbids=None if nullable else name)


def _project(
    snapshot: Snapshot,
    change: Callable[[Schema], Schema],
    columns: tuple[str, ...],
    options: ChangeOptions,
    *,
    forbids: str | None = None,
) -> Done[ColumnsResult]:
    def attempt(latest: Snapshot) -> Done[ColumnsResult]:
        schema = change(latest.manifest.schema)
        if forbids is not None:
            _look_for_nulls(latest, schema, forbids)
        operation = Project(schema, preserves_nullability=forbids is None)
        made = commit(latest, operation, options.commit)
        result = ColumnsResult(made.snapshot.version, columns, made.attempts)
        return Done(made.snapshot, result)

    return repeat(snapshot, attempt, options.commit)


def _look_for_nulls(snapshot: Snapshot, schema: Schema, name: str) -> None:
    top = resolve(schema, name)[0]
    scan = Scan(Readers(snapshot), ScanRequest((top.name,)), ScanOptions())
    for batch in scan.to_batches():
        refuse_nulls(batch.column(0), top, top.name)


def cast_column(
    snapshot: Snapshot, name: str, type_: pa.DataType, options: ChangeOptions = DEFAULTS
) -> Done[ColumnsResult]:
    """Give a column, at the top or inside a struct, another type.

    Raises:
        SchemaError: there is no such column, or it cannot have the type.
        InputError: a value would be lost.
        CommitError: nothing was changed.
    """
    chain = resolve(snapshot.manifest.schema, name)
    if any(parent.logical_type != "struct" for parent in chain[:-1]):
        raise SchemaError(f"column {name!r} is inside a list or map; cast that column as a whole")
    extension = Extension(CastMaker(tuple(one.name for one in chain)), options)

    def attempt(latest: Snapshot) -> Done[ColumnsResult]:
        manifest = latest.manifest
        id_ = next_field_id(manifest)
        schema = changed_field(manifest.schema, name, lambda old: _cast(old, type_, id_))
        check_stored(schema, table_options(manifest, options.write))
        files = extension.write(latest, schema, [id_])
        fragments = tuple(
            with_live_files(with_columns(one, files[one.id], one.physical_rows), schema)
            for one in manifest.fragments
        )
        made = commit(latest, Merge(fragments, schema), options.commit)
        result = ColumnsResult(made.snapshot.version, (name,), made.attempts)
        return Done(made.snapshot, result)

    return extension.commit(snapshot, attempt)


def _cast(old: Field, type_: pa.DataType, id_: int) -> Field:
    metadata = {
        key: text
        for key, text in old.metadata.items()
        if key not in {EXTENSION_NAME, EXTENSION_METADATA}
    }
    made = numbered(pa.field(old.name, type_, metadata=metadata), id_)
    return made._replace(nullable=old.nullable, primary_key_position=old.primary_key_position)
