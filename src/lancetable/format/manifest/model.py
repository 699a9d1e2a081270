"""The values of a manifest, which describes one version of a table.

A manifest lists fragments; a fragment is a set of rows, spread by column over data files, with a
deletion file beside them that says which rows are gone.
"""

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from lancetable.format.schema.model import Schema


class BasePath(NamedTuple):
    """A folder outside the table that holds some of its files."""

    id: int
    name: str | None
    path: str
    is_dataset_root: bool


class DataFile(NamedTuple):
    """Some columns of one fragment.

    ``fields`` and ``column_indices`` belong together; a file of version 0.1 has no indices.
    Negative field ids are no columns of the schema, a negative index is no column of the file.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...] = ()
    major: int = 0
    minor: int = 0
    size: int | None = None
    base_id: int | None = None

    @property
    def version(self) -> tuple[int, int]:
        """The version of the file format; releases 0.14 to 0.16 recorded 2.0 as 0.3."""
        if self.major >= 2:
            return self.major, self.minor
        return (2, 0) if (self.major, self.minor) == _EARLY_2_0 else (0, 1)

    @property
    def version_text(self) -> str:
        """The version as users know it."""
        return "{}.{}".format(*self.version)


_EARLY_2_0 = (0, 3)


class DeletionKind(enum.Enum):
    """The formats of deletion files; the value is the suffix of the file name."""

    ARROW = "arrow"
    BITMAP = "bin"


class DeletionFile(NamedTuple):
    """The deleted rows of one fragment; ``deleted_rows`` 0 is unknown."""

    kind: DeletionKind
    read_version: int
    id: int
    deleted_rows: int = 0
    base_id: int | None = None
    fragment_id: int | None = None
    """The fragment id in the file's name, where it is not that of the fragment: the fragment shared
    its id with another when it was stored."""


class InlineSequence(NamedTuple):
    """A sequence kept in the manifest."""

    data: bytes


class ExternalSequence(NamedTuple):
    """A sequence kept in a range of another file, named relative to the table."""

    path: str
    offset: int
    size: int


class ColumnSequence(NamedTuple):
    """A sequence kept as a hidden column of one of the fragment's data files."""


SequenceSource: TypeAlias = InlineSequence | ExternalSequence | ColumnSequence


class Fragment(NamedTuple):
    """A set of rows; ``physical_rows`` counts deleted ones too, 0 is unknown."""

    id: int
    files: tuple[DataFile, ...]
    deletion_file: DeletionFile | None = None
    physical_rows: int = 0
    row_ids: SequenceSource | None = None
    created_at: SequenceSource | None = None
    last_updated_at: SequenceSource | None = None

    @property
    def live_rows(self) -> int | None:
        """The number of rows that are not deleted; None when the files must be asked."""
        rows, deletion_file = self.physical_rows, self.deletion_file
        if not rows or deletion_file is None:
            return rows or None
        deleted = deletion_file.deleted_rows
        return rows - deleted if 0 < deleted <= rows else None


class WriterVersion(NamedTuple):
    """The library that wrote a manifest."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None

    @property
    def text(self) -> str:
        """Library and version in one line."""
        tail = f"-{self.prerelease}" if self.prerelease else ""
        return f"{self.library} {self.version}{tail}".strip()


class Manifest(NamedTuple):
    """One version of a table."""

    version: int
    schema: Schema
    fragments: Sequence[Fragment]
    reader_flags: int = 0
    writer_flags: int = 0
    timestamp: datetime | None = None
    branch: str | None = None
    config: Mapping[str, str] | None = None
    table_metadata: Mapping[str, str] | None = None
    base_paths: tuple[BasePath, ...] = ()
    data_format: str = ""
    writer: WriterVersion | None = None
    max_fragment_id: int | None = None
    """As stored: old writers left it out although fragments exist."""
    next_row_id: int = 0
    transaction_file: str = ""
    index_section: int | None = None
    transaction_section: int | None = None
    max_allocated_field_id: int | None = None
    """Present when field ids are never given out twice."""
    tag: str = ""
    """A name that the writer put into the manifest itself; no version inherits it."""
    auxiliary_section: int | None = None
    """The position of what the writer attached to the version; no version inherits it."""
    blob_dataset_version: int | None = None
    """The version of the table ``_blobs`` that holds the columns of storage class blob."""

    def base_path(self, base_id: int) -> BasePath | None:
        """Return the base with this id."""
        return next((base for base in self.base_paths if base.id == base_id), None)


NO_METADATA: Mapping[str, bytes] = {}


OWN_LIBRARY = "lancetable"
"""The name of this library as the writer of a version."""


class Trust(NamedTuple):
    """Guarantees about fragments of the version that lists them."""

    path: str = "the transaction"
    """Named in messages."""
    stable_row_ids: bool = False
    right_counts: bool = True
    max_fragment_id: int | None = None
    is_own: bool = False
    """True when this library wrote the version: its fragments are sorted, and the manifest names
    their largest id."""


class FileNames(NamedTuple):
    """The files of fragments: paths below ``data`` or the root, with the base they lie below."""

    data: set[tuple[str, int | None]]
    deletions: set[tuple[str, int | None]]
    sequences: set[str]


class IndexFile(NamedTuple):
    """One file of an index segment, named relative to the segment's folder."""

    path: str
    size: int


class IndexSegment(NamedTuple):
    """One part of an index: some fragments' values of the indexed fields."""

    uuid: str
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    fragment_bitmap: bytes = b""
    type_url: str = ""
    details: bytes = b""
    index_version: int | None = None
    created_at: datetime | None = None
    base_id: int | None = None
    files: tuple[IndexFile, ...] = ()
    covering_fields: tuple[int, ...] = ()
    metadata: Mapping[str, bytes] = NO_METADATA
    unknown: bytes = b""
    """Fields of later releases, as they were written."""

    def __hash__(self) -> int:
        return hash((self.uuid, self.name, self.fragment_bitmap))  # a mapping has no hash

    @property
    def fragment_ids(self) -> frozenset[int] | None:
        """The fragments this segment covers; ``None`` when it does not say.

        Raises:
            CorruptError: the bitmap is damaged.
        """
        if not self.fragment_bitmap:
            return None
        from lancetable.format.manifest.roaring import decode_bitmap  # noqa: PLC0415 - needs numpy

        return frozenset(decode_bitmap(self.fragment_bitmap, most=MAX_COVERED).tolist())


MAX_COVERED = 1 << 24
