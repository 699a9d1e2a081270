"""Values of the write-ahead log: configuration, progress and shard manifests.

``unknown`` holds the fields of a message that this release does not know, encoded; they are
written back unchanged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from lancetable.errors import InputError


class CompactedSsTable(NamedTuple):
    """The last merged generation of the write-ahead log of one shard."""

    shard_id: str
    generation: int
    unknown: bytes = b""


class SsTable(NamedTuple):
    """A flushed generation of a shard; ``None`` means that the writer did not record a count."""

    generation: int
    path: str
    in_memory_bytes: int | None = None
    physical_rows: int | None = None
    primary_key_bytes: int | None = None
    unknown: bytes = b""


class ShardFieldEntry(NamedTuple):
    """The value of one sharding field, as Arrow stores it in little endian order."""

    field_id: str
    value: bytes
    unknown: bytes = b""


class ShardStatus(IntEnum):
    """The state of a shard: open for writes or sealed."""

    ACTIVE = 0
    SEALED = 1


@dataclass(frozen=True, slots=True)
class ShardManifest:
    """One version of the state of a shard."""

    shard_id: str
    version: int
    writer_epoch: int = 0
    replay_after: int = 0
    """The last position of the log that a flushed generation contains; 0 for none."""
    last_seen: int = 0
    """The last position known when the manifest was written; later ones may exist."""
    current_generation: int = 1
    sstables: tuple[SsTable, ...] = ()
    spec_id: int = 0
    field_entries: tuple[ShardFieldEntry, ...] = ()
    status: int = ShardStatus.ACTIVE
    unknown: bytes = b""


class ShardingField(NamedTuple):
    """The computation of one value that all rows of a shard share."""

    field_id: str
    source_ids: tuple[int, ...]
    result_type: str
    transform: str | None = None
    expression: str | None = None
    parameters: Mapping[str, str] = {}
    unknown: bytes = b""


class ShardingSpec(NamedTuple):
    """The assignment of rows to shards."""

    spec_id: int
    fields: tuple[ShardingField, ...] = ()
    unknown: bytes = b""


class IndexCatchup(NamedTuple):
    """The last merged generations that an index of the base table covers."""

    index_name: str
    generations: tuple[CompactedSsTable, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True)
class MemWalDetails:
    """The record of the log in the manifest of the base table."""

    snapshot_millis: int = 0
    num_shards: int = 0
    inline_snapshots: bytes | None = None
    sharding_specs: tuple[ShardingSpec, ...] = ()
    maintained_indexes: tuple[str, ...] = ()
    compacted: tuple[CompactedSsTable, ...] = ()
    index_catchup: tuple[IndexCatchup, ...] = ()
    writer_defaults: Mapping[str, str] = field(default_factory=dict)
    maintain_all_indexes: bool | None = None
    unknown: bytes = b""

    def with_compacted(self, tables: Iterable[CompactedSsTable]) -> "MemWalDetails":
        """Return the record after generations were merged.

        Raises:
            InputError: a generation is not newer than the recorded one.
        """
        merged = {one.shard_id: one for one in self.compacted}
        for new in tables:
            shard = str(UUID(new.shard_id))  # as decoded ids are written
            before = merged.get(shard, CompactedSsTable(shard, 0))
            if new.generation <= before.generation:
                raise InputError(
                    f"generation {new.generation} of shard {new.shard_id} is not newer than "
                    f"generation {before.generation}, which was merged before"
                )
            merged[shard] = before._replace(generation=new.generation)
        return replace(self, compacted=tuple(merged.values()))
