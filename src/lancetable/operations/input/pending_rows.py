"""Rows on their way into a table that others may change meanwhile.

Their files are written once and kept as long as they fit the schema of the table. When a column
was retyped under way, they are written again, if the rows can be read again.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from lancetable.commit.blob_dataset import check_rows_stay
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import ConflictError
from lancetable.file.blobs import second_generation
from lancetable.file.model import V2_2
from lancetable.format.manifest.flags import check_writable
from lancetable.format.schema.model import Schema
from lancetable.fragment.writer import WriteOptions, WriteTarget, remove_fragments
from lancetable.operations.input.file_version import table_options
from lancetable.operations.input.fit import LEAVE_OUT, Fit, fit, write_schema
from lancetable.operations.input.sources import RowSource, read_source
from lancetable.operations.input.write import write_source, write_target
from lancetable.operations.run.runner import Runner

if TYPE_CHECKING:
    from lancetable.format.manifest import Fragment


def draft_of(snapshot: Snapshot, data: object, options: WriteOptions, runner: Runner) -> "Draft":
    """Return rows that are to be added to a table.

    Raises:
        InputError: the data is of no kind that holds rows.
        UnsupportedError: the table has files of a version that cannot be written any more, blobs
            in a blob dataset, or needs something of its writers that is not known.
    """
    manifest = snapshot.manifest
    check_writable(manifest.reader_flags, manifest.writer_flags)
    check_rows_stay(manifest, "add rows")
    is_arrow = isinstance(data, (pa.Table, pa.RecordBatch))
    source = read_source(data, None if is_arrow else write_schema(manifest.schema))
    target = write_target(snapshot.location, snapshot.store, manifest.base_paths, options)
    return Draft(source, target, table_options(manifest, options), runner)


class Draft:
    """Rows on their way into a table; their files are kept as long as they fit its schema."""

    def __init__(
        self, source: RowSource, target: WriteTarget, options: WriteOptions, runner: Runner
    ) -> None:
        self.source = source
        self.options = options
        self._runner = runner
        self._fit: Fit | None = None
        self.target = target
        self.fragments: list[Fragment] = []

    @property
    def new_columns(self) -> pa.Schema:
        """The columns of the rows as a table describes them."""
        schema = self.source.schema
        is_second = self.options.storage_version == str(V2_2)
        return second_generation(schema) if is_second else schema

    @property
    def rows(self) -> int:
        """Number of rows written."""
        return sum(fragment.physical_rows for fragment in self.fragments)

    def write(self, schema: Schema, *, new_columns: str = LEAVE_OUT) -> Fit:
        """Have the rows in files that fit a schema; ``new_columns`` is a hint as in ``fit``.

        Raises:
            ConflictError: they do not fit any more, and the rows cannot be read again.
        """
        fitted = fit(self.source.schema, schema, new_columns=new_columns)
        if self._fit is not None and _layout(self._fit) == _layout(fitted):
            return fitted
        if self._fit is not None and not self.source.is_replayable:
            raise ConflictError(
                "another writer changed columns while the rows were written, and the rows cannot "
                "be read again; pass them once more"
            )
        remove_fragments(self.fragments, self.target)
        self.fragments.clear()
        self.fragments += write_source(self.source, fitted, self.target, self.options, self._runner)
        self._fit = fitted
        return fitted


def _layout(fitted: Fit) -> list[tuple[int, str, bool]]:
    """Return what files depend on; names and notes of columns may change."""
    return [(field.id, field.logical_type, field.nullable) for field in fitted.schema.walk()]
