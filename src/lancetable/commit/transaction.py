"""The operations of the specification as values, and the transaction that holds one.

Each operation declares which fragments it touches and which it writes. New fragments have no id yet
(0 is written); they get one when they are committed.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeAlias

from lancetable.format.manifest import BasePath, DataFile, Fragment, IndexFile, IndexSegment
from lancetable.format.manifest.mem_wal.model import CompactedSsTable
from lancetable.format.schema.model import Schema

COMMIT_MESSAGE = "__lance_commit_message"


@dataclass(frozen=True, slots=True)
class Touched:
    """The fragments that an operation changed in place, and those that it removed."""

    updated: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()
    files: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The data files of updated fragments afterwards."""

    @classmethod
    def by_rows(cls, updated: Sequence[Fragment], removed: tuple[int, ...]) -> "Touched":
        """Return what a change of rows touches."""
        files = {fragment.id: data_files(fragment) for fragment in updated}
        return cls(frozenset(files), frozenset(removed), files)

    @property
    def all(self) -> frozenset[int]:
        """The ids of all of these fragments."""
        return self.updated | self.removed


def data_files(fragment: Fragment) -> tuple[str, ...]:
    """Return what identifies the values of a fragment: files with the columns they still hold."""
    return tuple(sorted(f"{file.path} {file.fields}" for file in fragment.files))


class _Operation:
    """Defaults for operations that touch and write no fragments."""

    __slots__ = ()

    writes: ClassVar[tuple[str, ...] | None] = ()
    """Fields with fragments that may name new files; ``None`` when no field lists them."""

    @property
    def name(self) -> str:
        """The name of the operation in the specification, such as ``Append``."""
        return type(self).__name__

    @property
    def touched(self) -> Touched:
        """The fragments of the version that was read which the operation changes or removes."""
        return Touched()

    @property
    def written(self) -> list[Sequence[Fragment]] | None:
        """The fragments that may name new files; ``None`` when no field lists them."""
        return None if self.writes is None else [getattr(self, name) for name in self.writes]


@dataclass(frozen=True, slots=True)
class Append(_Operation):
    """New rows beside the old ones."""

    writes: ClassVar = ("fragments",)
    fragments: Sequence[Fragment]


@dataclass(frozen=True, slots=True)
class Delete(_Operation):
    """Rows were deleted: fragments with a new deletion file, and removed fragments."""

    writes: ClassVar = ("updated_fragments",)
    updated_fragments: Sequence[Fragment] = ()
    deleted_fragment_ids: tuple[int, ...] = ()
    predicate: str = ""

    @property
    def touched(self) -> Touched:
        """Fragments that lose some or all rows."""
        return Touched.by_rows(self.updated_fragments, self.deleted_fragment_ids)


@dataclass(frozen=True, slots=True)
class Overwrite(_Operation):
    """New rows and a new schema replace the old ones; also makes the first version of a table."""

    writes: ClassVar = ("fragments",)
    fragments: Sequence[Fragment]
    schema: Schema
    config_upsert_values: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateIndex(_Operation):
    """Index segments are added, and others removed."""

    new_indices: tuple[IndexSegment, ...] = ()
    removed_indices: tuple[IndexSegment, ...] = ()

    @property
    def index_names(self) -> frozenset[str]:
        """The names of all indices that get or lose segments."""
        return frozenset(one.name for one in (*self.new_indices, *self.removed_indices))


class RewriteGroup(NamedTuple):
    """Fragments whose rows were moved to other fragments, in the same order."""

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
class Rewrite(_Operation):
    """The same rows in other files; the ids of new fragments were reserved."""

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()
    fragment_reuse: IndexSegment | None = None
    """The record of moved rows afterwards; it is stored in the manifest, not in the transaction."""

    @property
    def touched(self) -> Touched:
        """The old fragments, all of which are removed."""
        return Touched(
            removed=frozenset(one.id for group in self.groups for one in group.old_fragments)
        )

    @property
    def written(self) -> list[Sequence[Fragment]]:
        """The new fragments."""
        return [group.new_fragments for group in self.groups]


@dataclass(frozen=True, slots=True)
class Merge(_Operation):
    """New columns: all fragments and the schema as they are afterwards."""

    writes: ClassVar = ("fragments",)
    fragments: Sequence[Fragment]
    schema: Schema
    preserves_nullability: bool = False
    """True when no column may hold fewer nulls than before."""


@dataclass(frozen=True, slots=True)
class Restore(_Operation):
    """An older version becomes the latest."""

    writes: ClassVar = None
    version: int


@dataclass(frozen=True, slots=True)
class ReserveFragments(_Operation):
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
    """The keys, made of these fields, that an operation inserted."""

    field_ids: tuple[int, ...]
    keys: ExactKeys | BloomFilter


class UpdateMode(enum.IntEnum):
    """How values were changed."""

    REWRITE_ROWS = 0
    """Whole rows moved to new fragments."""
    REWRITE_COLUMNS = 1
    """New files with some columns for the same fragments."""


@dataclass(frozen=True, slots=True)
class Update(_Operation):
    """Values changed, rows inserted and rows removed in one step.

    In new fragments moved rows come first and keep their ids; inserted rows follow.
    """

    writes: ClassVar = ("updated_fragments", "new_fragments")
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

    @property
    def touched(self) -> Touched:
        """Fragments that lose rows or get other values."""
        return Touched.by_rows(self.updated_fragments, self.removed_fragment_ids)


@dataclass(frozen=True, slots=True)
class Project(_Operation):
    """Another schema over the same files."""

    schema: Schema
    preserves_nullability: bool = False


class MapUpdate(NamedTuple):
    """Changes of a mapping; a value of ``None`` removes the key."""

    entries: Mapping[str, str | None]
    replace: bool = False
    """True: keys that are not named are removed too."""


@dataclass(frozen=True, slots=True)
class UpdateConfig(_Operation):
    """Changes of the configuration and of metadata."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    field_metadata: Mapping[int, MapUpdate] = field(default_factory=dict)

    @property
    def changes_schema(self) -> bool:
        """True when the metadata of the schema or of fields changes."""
        return self.schema_metadata is not None or bool(self.field_metadata)


class Replacement(NamedTuple):
    """A new data file for columns of one fragment, row by row instead of the old one."""

    fragment_id: int
    new_file: DataFile


@dataclass(frozen=True, slots=True)
class DataReplacement(_Operation):
    """New files for columns of some fragments; all list the same fields."""

    replacements: tuple[Replacement, ...]

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids of the fields whose values are replaced."""
        return frozenset(id_ for one in self.replacements for id_ in one.new_file.fields)

    @property
    def touched(self) -> Touched:
        """The fragments that get new files."""
        return Touched(updated=frozenset(one.fragment_id for one in self.replacements))


@dataclass(frozen=True, slots=True)
class UpdateMemWalState(_Operation):
    """Progress of merging the write-ahead log."""

    writes: ClassVar = None
    compacted_sstables: tuple[CompactedSsTable, ...] = ()


@dataclass(frozen=True, slots=True)
class Clone(_Operation):
    """The first version of a table made from a version of another."""

    writes: ClassVar = None
    is_shallow: bool
    ref_name: str | None
    ref_version: int
    ref_path: str
    branch_name: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateBases(_Operation):
    """Further folders for the files of the table."""

    new_bases: tuple[BasePath, ...]


@dataclass(frozen=True, slots=True)
class Unknown(_Operation):
    """An operation of a later release."""

    writes: ClassVar = None
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
        """The name of the operation in the specification, such as ``Append``."""
        return self.operation.name

    @property
    def message(self) -> str | None:
        """The message of the commit."""
        return self.properties.get(COMMIT_MESSAGE)
