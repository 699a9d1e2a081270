"""Task of a change feed: read changed rows of one fragment of one version.

A task is a small value that can be sent anywhere; reading it needs nothing but the table's files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import UnsupportedError
from lancetable.format.arrays import Mask, Offsets
from lancetable.fragment.readers import Readers
from lancetable.operations.rows.parts import cut_offsets, read_rows
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest
from lancetable.scan.result import table_of

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"

INSERT, DELETE = "insert", "delete"
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"

ADDED_FIELDS = (
    pa.field(CHANGE_TYPE, pa.string(), nullable=False),
    pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")),
)


@dataclass(frozen=True, slots=True, eq=False)
class ChangeTask:
    """Rows of one fragment that a version took away or brought."""

    part: Snapshot
    """The version that holds the rows, with their fragment only, and the columns to read."""

    offsets: Offsets
    updated: Mask
    """Which of the rows are an image of an update."""

    is_removed: bool
    commit_version: int
    commit_timestamp: datetime | None
    request: ScanRequest
    schema: pa.Schema
    """The schema of the feed."""

    batch_rows: int

    @property
    def rows(self) -> int:
        """Number of rows of the task."""
        return len(self.offsets)

    @property
    def fragment_id(self) -> int:
        """The fragment that holds the rows."""
        return self.part.manifest.fragments[0].id

    def counts(self) -> dict[str, int]:
        """Return how many rows of each kind the task gives."""
        images = int(np.count_nonzero(self.updated))
        single, image = (DELETE, PREIMAGE) if self.is_removed else (INSERT, POSTIMAGE)
        return {single: self.rows - images, image: images}

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of bounded size.

        Raises:
            FileNotFoundInStoreError: a file was cleaned away meanwhile.
            UnsupportedError: a column had a type that the feed cannot show.
        """
        planned = plan(self.part.manifest.schema, self.request)
        readers = Readers(self.part)
        start = 0
        for offsets in cut_offsets(planned, readers, self.offsets):
            rows = table_of(planned, read_rows(planned, readers[0], offsets))
            updated = self.updated[start : start + len(offsets)]
            start += len(offsets)
            yield from self._shown(rows, updated).to_batches(max_chunksize=self.batch_rows)

    def _shown(self, rows: pa.Table, updated: Mask) -> pa.Table:
        columns = [
            self._fitted(rows.column(number), field)
            for number, field in enumerate(list(self.schema)[: -len(ADDED_FIELDS)])
        ]
        single, image = (DELETE, PREIMAGE) if self.is_removed else (INSERT, POSTIMAGE)
        names = pa.array([single, image])
        kinds = pa.DictionaryArray.from_arrays(pa.array(updated.astype(np.int8)), names)
        count = len(updated)
        columns += [
            kinds.cast(pa.string()),
            pa.repeat(pa.scalar(self.commit_version, pa.int64()), count),
            pa.repeat(pa.scalar(self.commit_timestamp, ADDED_FIELDS[2].type), count),
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _fitted(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        if column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise UnsupportedError(
                f"column {field.name!r} of version {self.part.version} is {column.type}, which "
                f"cannot be shown as the {field.type} it became later; request the changes up to "
                f"version {self.commit_version - 1} with a table opened there, or leave the "
                "column out"
            ) from None
