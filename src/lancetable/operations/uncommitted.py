"""Write rows now and make them a version later, perhaps elsewhere.

1. Fit the rows to the columns of the table and write them as new fragments, which no version names.
2. Hand the fragments over; they are plain values that can be pickled.
3. Commit the fragments of one or more such writes as one Append or Overwrite.
Files of fragments that are never committed are removed by a cleanup.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Append, Overwrite
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, InputError
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.writer import WriteOptions
from lancetable.operations.input.write import (
    DEFAULT_COMMIT,
    DEFAULT_WRITE,
    check_files_there,
    keep_or_remove,
    pending_rows,
)
from lancetable.operations.results import CastNote, Done, WriteResult
from lancetable.operations.retry import repeat
from lancetable.operations.run.runner import THREADS, Runner


@dataclass(frozen=True, slots=True)
class NewFragments:
    """Fragments whose files are complete, and which no version names yet."""

    root: str
    """The folder of the table, or of its branch, that the files are in."""
    fragments: tuple[Fragment, ...]
    schema: Schema
    """The columns that the files hold."""
    casts: tuple[CastNote, ...] = ()
    """Columns whose values were stored as another type, without loss."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(fragment.physical_rows for fragment in self.fragments)


def write_new_fragments(
    snapshot: Snapshot,
    data: object,
    *,
    write: WriteOptions = DEFAULT_WRITE,
    runner: Runner = THREADS,
) -> NewFragments:
    """Write rows as fragments of a table that no version names.

    Raises:
        SchemaError: the columns do not fit the table.
        InputError: a value does not fit, or the data is of no kind that holds rows.
    """
    pending = pending_rows(snapshot, data, write, runner)
    with keep_or_remove(pending.fragments, pending.target):
        fitted = pending.write(snapshot.manifest.schema)
    return NewFragments(snapshot.store.root, tuple(pending.fragments), fitted.schema, fitted.casts)


def commit_new_fragments(
    snapshot: Snapshot,
    parts: Sequence[NewFragments],
    *,
    overwrite: bool = False,
    commit: CommitOptions = DEFAULT_COMMIT,
) -> Done[WriteResult]:
    """Make fragments that were written before the next version of their table.

    Their files stay when this fails, so that it can be tried again.

    Raises:
        InputError: fragments belong to another table, are given twice, or are committed already.
        ConflictError: the columns of the table are not those the fragments were written for, or a
            file of theirs is missing.
        CommitError: they did not become a version.
    """
    for part in parts:
        if part.root != snapshot.store.root:
            raise InputError(
                f"the fragments were written for {part.root}, not for {snapshot.store.root}"
            )
    fragments = tuple(fragment for part in parts for fragment in part.fragments)
    rows = sum(part.rows for part in parts)
    casts = tuple(dict.fromkeys(note for part in parts for note in part.casts))
    _check_there(snapshot, fragments)

    def attempt(latest: Snapshot) -> Done[WriteResult]:
        manifest = latest.manifest
        _refuse_known_files(fragments, latest)
        if not all(has_columns(manifest.schema, part.schema) for part in parts):
            raise ConflictError(
                "the columns of the table changed after the fragments were written; write the rows "
                "again"
            )
        operation = Overwrite(fragments, manifest.schema) if overwrite else Append(fragments)
        made = commit_operation(latest, operation, commit)
        return Done(made.snapshot, WriteResult(made.snapshot.version, rows, made.attempts, casts))

    return repeat(snapshot, attempt, commit)


def _check_there(snapshot: Snapshot, fragments: Sequence[Fragment]) -> None:
    """Check that no file of the fragments was removed; the latest version knows every base."""
    files = [file for fragment in fragments for file in fragment.files]
    known = {None, *(base.id for base in snapshot.manifest.base_paths)}
    if not known.issuperset(file.base_id for file in files):
        snapshot = load(snapshot.location, branch=snapshot.branch)
    check_files_there([snapshot.data_file_place(file) for file in files], "the fragments")


def _refuse_known_files(fragments: Sequence[Fragment], latest: Snapshot) -> None:
    """Check that no row would be there twice."""
    known = {file.path for one in latest.manifest.fragments for file in one.files}
    for fragment in fragments:
        for file in fragment.files:
            if file.path in known:
                raise InputError(
                    f"the fragment of data file {file.path!r} is given twice or is part of version "
                    f"{latest.version} already; commit each fragment once"
                )
            known.add(file.path)


def has_columns(now: Schema, written: Schema) -> bool:
    """Say whether files of some columns are files of a table as it is now.

    A column that the table got meanwhile is missing in them, and must allow nulls.
    """
    known = {field.id: (field.logical_type, field.nullable) for field in now.walk()}
    held = {field.id: (field.logical_type, field.nullable) for field in written.walk()}
    has_all = all(known.get(id_) == kind for id_, kind in held.items())
    return has_all and all(nullable or id_ in held for id_, (_, nullable) in known.items())
