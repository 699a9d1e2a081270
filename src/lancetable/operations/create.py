"""Create: the first version of a table, with rows or without.

1. Take the schema that is given, or the one of the data, and give its columns ids.
2. Look whether there is a table, before any row is written.
3. Write the rows as fragments, in files of a version that can hold the schema.
4. Commit an Overwrite; of several who create at once, one makes the first version.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from lancetable.commit.committer import create as commit_first
from lancetable.commit.options import CommitOptions, CreateMode
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Overwrite
from lancetable.commit.versions import load
from lancetable.errors import ExistsError, InputError, TableNotFoundError
from lancetable.format.schema.model import Schema
from lancetable.format.schema.types import schema_from_arrow
from lancetable.fragment.writer import WriteOptions, WriteTarget
from lancetable.operations.fit import Fit, fit, refuse_names, write_schema
from lancetable.operations.overwrite import overwrite
from lancetable.operations.runner import THREADS, Runner
from lancetable.operations.sources import Source, read_source
from lancetable.operations.write import (
    DEFAULT_COMMIT,
    DEFAULT_WRITE,
    Written,
    WriteResult,
    check_stored,
    keep_or_remove,
    needed_version,
    write_source,
)
from lancetable.store import TableLocation


@dataclass(frozen=True, slots=True)
class CreateOptions:
    """How a table is created."""

    mode: CreateMode = CreateMode.ERROR
    """What to do when there is a table already."""
    stable_row_ids: bool = False
    """Give every row an id that it keeps when it is updated or moved."""
    write: WriteOptions = DEFAULT_WRITE
    commit: CommitOptions = DEFAULT_COMMIT
    runner: Runner = THREADS


class NewRows(NamedTuple):
    """A schema with ids, and the rows that go with it."""

    schema: Schema
    source: Source
    fit: Fit


def create(
    location: TableLocation,
    data: object,
    schema: pa.Schema | None,
    options: CreateOptions,
) -> Written:
    """Create a table from a schema, from data, or from both.

    Raises:
        ExistsError: there is a table, and the mode does not allow for it.
        SchemaError: a column cannot be stored, or the data does not fit the schema.
        InputError: a value does not fit, or the data is of no kind that holds rows.
        CommitError: the rows did not become a version.
    """
    existing = _existing(location)
    if existing is not None:
        if options.mode is CreateMode.ERROR:
            raise _exists(existing)
        if options.mode is CreateMode.IGNORE:
            return Written(existing, WriteResult(existing.version, attempts=0))
        
    new = new_rows(data, schema)
