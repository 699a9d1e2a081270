"""Task of a change feed: read changed rows of one fragment of one version.

A task is a small value that can be sent anywhere; reading it needs nothing but the table's files.

A feed shows all of its rows with the columns of its last version. From there the columns are
followed back, one version at a time: by field id, which stays when a column is renamed; by name
where the schema was replaced or the column was cast. A column that was not there yet is null;
one that was dropped and came back is another one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import UnsupportedError
from lancetable.format.arrays import Mask, Offsets
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.projection import is_single_column, live_ids
from lancetable.fragment.readers import Readers
from lancetable.operations.rows.parts import cut_offsets, read_rows
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest
from lancetable.scan.result import table_of

_ABSENT = -1000
"""Ids from here downward are in no data file, so that their columns are read as nulls."""


class Link(NamedTuple):
    """A column of the feed, and what it was in one version: ``None`` when it was not there."""

    target: Field
    here: Field | None
    children: tuple["Link", ...] = ()


def links_of(schema: Schema) -> tuple[Link, ...]:
    """Return the columns of the version that they are named after; all may be null."""
    return tuple(_own(_loosened(field), field) for field in schema.fields)


def _own(target: Field, here: Field) -> Link:
    pairs = zip(target.children, here.children, strict=True)
    return Link(target, here, tuple(_own(one, other) for one, other in pairs))


def _loosened(field: Field) -> Field:
    """Return the field with nulls allowed wherever an older row may have none of its values."""
    if field.logical_type == "map":
        return field._replace(nullable=True)
    children = tuple(_loosened(child) for child in field.children)
    return field._replace(nullable=True, children=children)


def earlier(links: Sequence[Link], before: Schema, *, by_name: bool) -> tuple[Link, ...]:
    """Return where the columns were in the version before; ids say nothing with ``by_name``."""
    return tuple(_earlier(link, before.fields, by_name=by_name) for link in links)


def _earlier(link: Link, level: Sequence[Field], *, by_name: bool) -> Link:
    here = link.here
    found = None
    if here is not None:
        same_id = None if by_name else next((one for one in level if one.id == here.id), None)
        found = same_id or next((one for one in level if one.name == here.name), None)
    below = () if found is None else found.children
    children = tuple(_earlier(child, below, by_name=by_name) for child in link.children)
    return Link(link.target, found, children)


def readable(links: Sequence[Link], metadata: Schema) -> Schema:
    """Return the schema under which the rows of that version are read."""
    return Schema(tuple(_readable(link) for link in links), metadata.metadata)


def _readable(link: Link) -> Field:
    target, here = link.target, link.here
    if here is None:
        return _absent(target)
    is_alike = here.logical_type == target.logical_type
    if is_alike and link.children and not is_single_column(here):
        return target._replace(id=here.id, children=tuple(map(_readable, link.children)))
    if is_alike and not here.children:
        return target._replace(id=here.id, dictionary=here.dictionary)
    return here._replace(name=target.name, nullable=True)


def _absent(field: Field) -> Field:
    return field._replace(id=_ABSENT - field.id, children=tuple(map(_absent, field.children)))


def has_other_values(
    before: tuple[Fragment, Sequence[Link]], after: tuple[Fragment, Sequence[Link]]
) -> bool:
    """Say whether columns of the feed have other files in a fragment than they had before."""
    pairs = zip(before[1], after[1], strict=True)
    return any(_is_replaced(before[0], one, after[0], other) for one, other in pairs)


def _is_replaced(before: Fragment, one: Link, after: Fragment, other: Link) -> bool:
    old, new = one.here, other.here
    if old is not None and new is not None:
        if old.id != new.id:
            # A column that was cast holds the same values under another id.
            return False
        if new.children and not is_single_column(new):
            pairs = zip(one.children, other.children, strict=True)
            return any(_is_replaced(before, left, after, right) for left, right in pairs)
    return _holders(before, old) != _holders(after, new)


def have_same_columns(before: Sequence[Link], after: Sequence[Link]) -> bool:
    """Say whether each column of the feed is in both versions or in none of them."""
    return all(
        (one.here is None) == (other.here is None)
        and have_same_columns(one.children, other.children)
        for one, other in zip(before, after, strict=True)
    )


def _holders(fragment: Fragment, field: Field | None) -> list[tuple[str, int]]:
    ids = set() if field is None else {part.id for part in field.walk()}
    return sorted(
        (file.path, -1 if file.base_id is None else file.base_id)
        for file in fragment.files
        if not ids.isdisjoint(live_ids(file))
    )


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
