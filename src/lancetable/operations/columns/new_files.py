"""Write new values for some columns of a fragment: one more data file with all its rows.

The file holds a value for every row, deleted ones included, since rows are matched by position.
Where it replaces columns of older files, those mark them as no longer theirs.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

import pyarrow as pa

from lancetable.commit.apply.files import TOMBSTONE
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.projection import SPILLED_IDS
from lancetable.fragment.writer import WriteOptions, remove_fragments
from lancetable.operations.rows.move_rows import target_of, write_rows

_NO_LIMIT = 2**62


def write_columns(
    part: Snapshot,
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    rows: int,
    options: WriteOptions,
) -> DataFile:
    """Write columns of one fragment, which has so many rows, to a new file.

    Raises:
        InputError: the batches have another number of rows.
        StoreError: the file cannot be written; none stays behind.
    """
    whole = replace(options, max_rows_per_file=_NO_LIMIT, max_bytes_per_file=_NO_LIMIT)
    fragments = write_rows(part, batches, schema, whole)
    written = sum(fragment.physical_rows for fragment in fragments)
    if written != rows or len(fragments) != 1:
        remove_fragments(fragments, target_of(part))
        raise InputError(f"a fragment of {rows} rows got {written} values for a column")
    return fragments[0].files[0]


def with_columns(
    fragment: Fragment, file: DataFile, rows: int, replaced: Collection[int] = ()
) -> Fragment:
    """Return the fragment with one more file, which holds some columns in place of older ones."""
    files = tuple(_without(old, replaced) for old in fragment.files)
    return fragment._replace(files=(*files, file), physical_rows=rows)


def _without(file: DataFile, replaced: Collection[int]) -> DataFile:
    if not any(id_ in replaced for id_ in file.fields):
        return file
    fields = tuple(TOMBSTONE if id_ in replaced else id_ for id_ in file.fields)
    return file._replace(fields=fields)


def with_live_files(fragment: Fragment, schema: Schema) -> Fragment:
    """Return the fragment without files none of whose columns is in the schema any more."""
    live = {field.id for field in schema.walk()}.union(SPILLED_IDS.values())
    return fragment._replace(
        files=tuple(file for file in fragment.files if not live.isdisjoint(file.fields))
    )


def last_file(fragment: Fragment) -> Fragment:
    """Return a fragment of the newest file alone, to be removed if it is not wanted."""
    return fragment._replace(files=fragment.files[-1:])
