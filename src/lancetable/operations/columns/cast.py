"""Cast a column: the same values under another type, at the same place of the schema.

1. Give the column a field id that was never used, so that old files keep their meaning.
2. Write one more data file for each fragment; no value may be lost.
3. Commit the new schema and all fragments as a Merge, which lets no append pass that still has
   the old column. Indices on the column go.
"""

import pyarrow as pa

from lancetable.commit.committer import commit
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Merge
from lancetable.errors import SchemaError
from lancetable.format.schema.model import EXTENSION_METADATA, EXTENSION_NAME, Field
from lancetable.format.schema.project import resolve
from lancetable.operations.columns.column_values import CastMaker
from lancetable.operations.columns.extend import Extension
from lancetable.operations.columns.new_files import with_columns, with_live_files
from lancetable.operations.columns.schema_edit import changed_field
from lancetable.operations.input.file_version import check_stored, next_field_id, table_options
from lancetable.operations.input.grow import numbered
from lancetable.operations.results import DEFAULTS, ChangeOptions, ColumnsResult, Done


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
