"""What did a writer do to make a version: the operations of the specification as values.

Fragments that are new have no id yet (0 is written); they get one when they are committed.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from lancetable.format.manifest import BasePath, DataFile, Fragment, IndexFile, IndexSegment
from lancetable.format.manifest.mem_wal.model import CompactedSsTable
from lancetable.format.schema.model import Schema

COMMIT_MESSAGE = "__lance_commit_message"


@dataclass(frozen=True, slots=True)
class Append:
    """New rows beside the old ones."""

    fragments: Sequence[Fragment]


@dataclass(frozen=True, slots=True)
class Delete:
    """Rows are gone: fragments with a new deletion file, and fragments gone altogether."""

    updated_fragments: Sequence[Fragment] = ()
    deleted_fragment_ids: tuple[int, ...] = ()
    predicate: str = ""


@dataclass(frozen=True, slots=True)
class Overwrite:
    """New rows and a new schema instead of the old ones; also the first version of a table."""

    fragments: Sequence[Fragment]
    schema: Schema
    config_upsert_values: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Index segments are added, and others removed."""

    new_indices: tuple[IndexSegment, ...] = ()
    removed_indices: tuple[IndexSegment, ...] = ()


class RewriteGroup(NamedTuple):
    """Fragments whose rows now stand in other fragments, in the same order."""

    old_fragments: Sequence[Fragment]
    new_fragments: Sequence[Fragment]


class RewrittenIndex(NamedTuple):
    """An index segment that was adapted to moved rows."""

    old_id: str
    new_id: str
    type_url: str = ""
    details: bytes = b""
    index_version: int = 0
    files: tuple[IndexFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The same rows in other files; the ids of new fragments were reserved."""

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()
    fragment_reuse: IndexSegment | None = None
    """The record of moved rows afterwards; its place is the manifest, not the transaction."""


@dataclass(frozen=True, slots=True)
class Merge:
    """New columns: all fragments and the schema as they are afterwards."""

    fragments: Sequence[Fragment]
    schema: Schema
    preserves_nullability: bool = False
    """True when no column may hold fewer nulls than before."""


@dataclass(frozen=True, slots=True)
class Restore:
    """An older version becomes the latest."""

    version: int


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """Fragment ids are set aside for a later rewrite."""

    num_fragments: int


class ExactKeys(NamedTuple):
    """The hashes of all keys."""

    key_hashes: frozenset[int]


class BloomFilter(NamedTuple):
    """A split-block bloom filter over the hashes of keys."""

    bitmap: bytes
    num_bits: int
    number_of_items: int
    probability: float


class KeyFilter(NamedTuple):
    """Which keys, made of these fields, an operation inserted."""

    field_ids: tuple[int, ...]
    keys: ExactKeys | BloomFilter


class UpdateMode(enum.IntEnum):
    """How values were changed."""

    REWRITE_ROWS = 0
    """Whole rows moved to new fragments."""
    REWRITE_COLUMNS = 1
    """New files with some columns for the same fragments."""


@dataclass(frozen=True, slots=True)
class Update:
    """Values changed, rows inserted and rows removed in one step.

    In new fragments moved rows come first and keep their ids; inserted rows follow.
    """

    removed_fragment_ids: tuple[int, ...] = ()
    updated_fragments: Sequence[Fragment] = ()
    new_fragments: Sequence[Fragment] = ()
    fields_modified: tuple[int, ...] = ()
    compacted_sstables: tuple[CompactedSsTable, ...] = ()
    fields_for_preserving_frag_bitmap: tuple[int, ...] = ()
    update_mode: UpdateMode = UpdateMode.REWRITE_ROWS
    inserted_rows: KeyFilter | None = None
    updated_fragment_offsets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    updated_fragment_offset_bitmaps: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Project:
    """Another schema over the same files."""

    schema: Schema
    preserves_nullability: bool = False


class MapUpdate(NamedTuple):
    """Changes of a mapping; a value of ``None`` removes the key."""

    entries: Mapping[str, str | None]
    replace: bool = False
    """True: keys that are not named are removed too."""


@dataclass(frozen=True, slots=True)
class UpdateConfig:
    """Changes of the configuration and of metadata."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    field_metadata: Mapping[int, MapUpdate] = field(default_factory=dict)


class Replacement(NamedTuple):
    """A new data file for columns of one fragment, row by row instead of the old one."""

    fragment_id: int
    new_file: DataFile


@dataclass(frozen=True, slots=True)
class DataReplacement:
    """New files for columns of some fragments; all list the same fields."""

    replacements: tuple[Replacement, ...]


@dataclass(frozen=True, slots=True)
class UpdateMemWalState:
    """Progress of merging the write-ahead log."""

    compacted_sstables: tuple[CompactedSsTable, ...] = ()


@dataclass(frozen=True, slots=True)
class Clone:
    """The first version of a table made from a version of another."""

    is_shallow: bool
    ref_name: str | None
    ref_version: int
    ref_path: str
    branch_name: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """Further folders for the files of the table."""

    new_bases: tuple[BasePath, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """An operation of a later release."""

    name: str = "Unknown"


Operation: TypeAlias = (
    Append
    | Delete
    | Overwrite
    | CreateIndex
    | Rewrite
    | Merge
    | Restore
    | ReserveFragments
    | Update
    | Project
    | UpdateConfig
    | DataReplacement
    | UpdateMemWalState
    | Clone
    | UpdateBases
    | Unknown
)


@dataclass(frozen=True, slots=True)
class Transaction:
    """The step from one version to the next."""

    read_version: int
    uuid: str
    operation: Operation
    properties: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""

    @property
    def operation_name(self) -> str:
        """The specification's name of the operation, such as ``Append``."""
        operation = self.operation
        return operation.name if isinstance(operation, Unknown) else type(operation).__name__

    @property
    def message(self) -> str | None:
        """What the writer said about it."""
        return self.properties.get(COMMIT_MESSAGE)
