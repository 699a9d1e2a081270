"""Replace columns: new values for whole columns, row by row.

1. Compute the new values, by SQL expressions or from data that names each row or key.
2. Write one more data file for each fragment.
3. Where a fragment keeps exactly these columns in a file of their own, or has no values for them,
   that file is replaced (DataReplacement); else older files give the columns up (Update).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lancetable.commit.committer import commit
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import (
    DataReplacement,
    Operation,
    Replacement,
    Update,
    UpdateMode,
)
from lancetable.expression import Expression
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.manifest.roaring import encode_bitmap
from lancetable.format.schema.model import Schema
from lancetable.fragment.readers import Readers
from lancetable.operations.columns.column_values import AssignMaker, Maker
from lancetable.operations.columns.extend import Extension
from lancetable.operations.columns.joined import joined
from lancetable.operations.columns.new_files import with_columns
from lancetable.operations.input.assign import bound_to, parse_assignments, unknown_column
from lancetable.operations.results import DEFAULTS, ChangeOptions, Done, UpdateResult


def replace_columns(
    snapshot: Snapshot,
    values: Mapping[str, str | Expression],
    options: ChangeOptions = DEFAULTS,
) -> Done[UpdateResult]:
    """Replace columns by what SQL expressions give for each row.

    Raises:
        SchemaError: a column is unknown.
        ExpressionError: an expression cannot be understood, bound or computed.
        InputError: a value does not fit its column.
        CommitError: nothing was changed.
    """
    parsed = parse_assignments(values)

    def make(latest: Snapshot) -> tuple[Maker, tuple[str, ...]]:
        bound = bound_to(latest.manifest.schema, parsed)
        return AssignMaker(bound), tuple(one.field.name for one in bound)

    return _replace(snapshot, make, options)


def replace_columns_from(
    snapshot: Snapshot,
    data: object,
    on: Sequence[str],
    options: ChangeOptions = DEFAULTS,
) -> Done[UpdateResult]:
    """Replace columns by those of data that has a row for each row of the table.

    Raises:
        SchemaError: a column is unknown, or a key column is missing.
        InputError: a row of the table finds no values, or several.
        CommitError: nothing was changed.
    """
    maker, fields = joined(snapshot, data, on, is_complete=True)
    names = tuple(one.name for one in fields)
    return _replace(snapshot, lambda _: (maker, names), options)


def _replace(
    snapshot: Snapshot,
    make: Callable[[Snapshot], tuple[Maker, tuple[str, ...]]],
    options: ChangeOptions,
) -> Done[UpdateResult]:
    """Replace the columns that a maker, given a version, gives for it."""
    extension = Extension(make(snapshot)[0], options)

    def attempt(latest: Snapshot) -> Done[UpdateResult]:
        schema = latest.manifest.schema
        extension.maker, names = make(latest)
        rows = Readers(latest).starts[-1]
        if not len(latest.manifest.fragments):
            return Done(latest, UpdateResult(latest.version, is_new_version=False))
        ids = _ids(schema, names)
        files = extension.write(latest, schema, ids)
        operation = _operation(latest, files, ids)
        made = commit(latest, operation, options.commit)
        return Done(made.snapshot, UpdateResult(made.snapshot.version, rows, made.attempts))

    return extension.commit(snapshot, attempt)


def _ids(schema: Schema, names: Sequence[str]) -> list[int]:
    known = {field.name: field.id for field in schema.fields}
    for name in names:
        if name not in known:
            raise unknown_column(name, schema)
    return [known[name] for name in names]


def _operation(snapshot: Snapshot, files: Mapping[int, DataFile], ids: list[int]) -> Operation:
    fragments = snapshot.manifest.fragments
    if all(_is_replaceable(one, files[one.id]) for one in fragments):
        return DataReplacement(tuple(Replacement(one.id, files[one.id]) for one in fragments))
    chosen = frozenset(ids)
    replaced = tuple(
        below.id
        for field in snapshot.manifest.schema.fields
        if field.id in chosen
        for below in field.walk()
    )
    readers = Readers(snapshot)
    bitmaps = {}
    for position, one in enumerate(fragments):
        live = readers[position].live_offsets(0, readers[position].opened.rows)
        bitmaps[one.id] = encode_bitmap(live.astype(np.uint32))
    return Update(
        updated_fragments=tuple(
            with_columns(one, files[one.id], one.physical_rows, frozenset(replaced))
            for one in fragments
        ),
        fields_modified=replaced,
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_fragment_offset_bitmaps=bitmaps,
    )


def _is_replaceable(fragment: Fragment, file: DataFile) -> bool:
    """Say whether each old file has exactly the columns of the new one, or none of them."""
    ids = set(file.fields)
    for old in fragment.files:
        is_same = old.fields == file.fields and old.version == file.version
        if not is_same and ids.intersection(old.fields):
            return False
    return True
