"""Add columns whose values come as a stream in the row order of a version.

1. Read the stream once, fragment by fragment, and write one more data file for each.
2. Check that it has exactly one row for each live row of the version.
3. Commit as for other new columns; the files are used again when the commit has to be repeated.
The stream cannot be read again, so values for rows or columns that others added meanwhile are a
conflict.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import ConflictError, InputError
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.project import quote
from lancetable.fragment.readers import Readers
from lancetable.operations.columns.add import extend_schema
from lancetable.operations.columns.extend import ExtendTask, Extension, extend_fragment
from lancetable.operations.input.assign import assigned
from lancetable.operations.input.fit import refuse_names
from lancetable.operations.input.sources import RowSource, read_source
from lancetable.operations.results import DEFAULTS, ChangeOptions, ColumnsResult, Done
from lancetable.operations.rows.parts import part_of
from lancetable.scan.request import MiB

_BATCH_BYTES = 16 * MiB
_MOST_BATCH_ROWS = 64 * 1024


def add_streamed_columns(
    snapshot: Snapshot, data: object, options: ChangeOptions = DEFAULTS
) -> Done[ColumnsResult]:
    """Add the columns of a stream that has one row for each live row, in the order of a scan.

    Raises:
        SchemaError: a column is there already or cannot be stored.
        InputError: the stream has fewer or more rows than the version.
        ConflictError: another writer added or moved rows, or added columns, meanwhile.
        CommitError: nothing was changed.
    """
    source = read_source(data)
    names = source.schema.names
    if not names:
        raise InputError("the stream has no columns; give at least one")
    refuse_names(names)
    extension = _StreamExtension(source, options)
    return extend_schema(
        snapshot, tuple(map(quote, names)), list(source.schema), extension, options
    )


class _StreamExtension(Extension):
    """The files of the new columns, written one after the other as the stream is read."""

    def __init__(self, source: RowSource, options: ChangeOptions) -> None:
        self._rows = _StreamRows(source)
        super().__init__(self._rows, options, self._rows.batch_rows)
        self._options = options
        self._is_read = False

    def _run(
        self, snapshot: Snapshot, schema: Schema, ids: tuple[int, ...], missing: list[Fragment]
    ) -> Sequence[DataFile | None]:
        if self._is_read:
            if not missing:
                return []
            raise ConflictError(
                "another writer added or moved rows, or added columns, while the stream was read,"
                " and a stream is read once; refresh the table and add the columns again"
            )
        self._is_read = True
        expected = Readers(snapshot).starts[-1]
        files = []
        try:
            for one in missing:
                part = part_of(snapshot, [one])
                task = ExtendTask(
                    part, schema, ids, self._rows, self._options.write, self._rows.batch_rows
                )
                files.append(extend_fragment(task))
                self.fragments.append(Fragment(0, (files[-1],)))
        except _TooFewRowsError as error:
            raise InputError(
                f"the stream has {error.rows} rows, the table has {expected};"
                " give one row for each row of the table, in its order"
            ) from None
        if not self._rows.is_at_end():
            raise InputError(
                f"the stream has more rows than the table, which has {expected};"
                " give one row for each row of the table, in its order"
            )
        return files


class _TooFewRowsError(Exception):
    """The stream ended early."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows


class _StreamRows:
    """Gives the next rows of a stream; only the batch in hand is kept."""

    inputs = ()

    def __init__(self, source: RowSource) -> None:
        self._batches: Iterator[pa.RecordBatch] = (one for one in source.batches if one.num_rows)
        self._held = next(self._batches, None)
        self._given = 0
        self.batch_rows = _batch_rows(self._held)

    def make(self, batch: pa.RecordBatch, fields: Sequence[Field], place: str) -> list[pa.Array]:
        """Return the next rows of the stream, as many as the batch has."""
        del place
        pieces = list(self._next(batch.num_rows))
        return [
            assigned(one, pa.chunked_array([piece.column(at) for piece in pieces]))
            for at, one in enumerate(fields)
        ]

    def is_at_end(self) -> bool:
        """Say whether all rows were given."""
        return self._held is None

    def _next(self, rows: int) -> Iterator[pa.RecordBatch]:
        while rows:
            held = self._held
            if held is None:
                raise _TooFewRowsError(self._given)
            piece = held.slice(0, rows)
            rest = held.slice(piece.num_rows)
            self._held = rest if rest.num_rows else next(self._batches, None)
            self._given += piece.num_rows
            rows -= piece.num_rows
            yield piece


def _batch_rows(first: pa.RecordBatch | None) -> int:
    """Return how many rows are written at a time, judged by the first ones of the stream."""
    if first is None:
        return _MOST_BATCH_ROWS
    row_bytes: int = max(first.nbytes // first.num_rows, 1)
    return max(min(_BATCH_BYTES // row_bytes, _MOST_BATCH_ROWS), 1)
