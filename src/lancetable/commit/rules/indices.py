"""Conflict rules for index segments and for progress of the write-ahead log."""

from collections.abc import Set
from dataclasses import replace

from lancetable.commit.apply.coverage import without_values
from lancetable.commit.rules.verdicts import FINE, LOG, Rebased, Verdict, first, retry, stop
from lancetable.commit.transaction import (
    CreateIndex,
    DataReplacement,
    Operation,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)
from lancetable.format.manifest.indices.kinds import MEM_WAL
from lancetable.format.manifest.mem_wal.model import CompactedSsTable


def for_index(own: CreateIndex, other: Operation) -> Verdict:
    """Judge new and removed index segments."""
    match other:
        case CreateIndex():
            names = own.index_names & other.index_names
            return first(
                (names, retry(f"another writer changed the index {min(names, default='')!r}"))
            )
        case Rewrite():
            old = other.touched.all
            moved = any(meets(segment.fragment_ids, old) for segment in own.new_indices)
            return first((moved, retry("another writer moved rows that were indexed")))
        case Update():
            return _narrowed(own, other)
        case DataReplacement():
            fields = other.field_ids
            stale = any(fields.intersection(segment.fields) for segment in own.new_indices)
            return first((stale, retry("another writer replaced values of the indexed column")))
        case UpdateMemWalState():
            return retry(LOG.reason) if MEM_WAL in own.index_names else LOG
        case _:
            return FINE


def _narrowed(own: CreateIndex, other: Update) -> Verdict:
    """Take fragments whose indexed values changed out of the new segments."""
    fields = frozenset(other.fields_modified)
    narrowed = without_values(own.new_indices, other.touched.updated, fields)
    return FINE if narrowed == own.new_indices else Rebased(replace(own, new_indices=narrowed))


def generations(mine: tuple[CompactedSsTable, ...], their: tuple[CompactedSsTable, ...]) -> Verdict:
    """Judge two merges of the log: of one shard, only a later generation may follow."""
    committed = {table.shard_id: table.generation for table in their}
    for shard, generation, _ in mine:
        if committed.get(shard, -1) >= generation:
            return stop(f"generation {generation} of shard {shard} was merged by another writer")
        if shard in committed:
            return retry(f"another writer merged a generation of shard {shard}")
    return FINE


def for_log(own: UpdateMemWalState, other: Operation) -> Verdict:
    """Judge progress of the log without rows."""
    match other:
        case UpdateMemWalState() | Update():
            return generations(own.compacted_sstables, other.compacted_sstables)
        case CreateIndex():
            changed = retry("another writer changed the record of the write-ahead log")
            return first((MEM_WAL in other.index_names, changed))
        case Rewrite() | UpdateConfig() | UpdateBases():
            return FINE
        case _:
            return stop("another writer changed the table")


def meets(covered: frozenset[int] | None, ids: Set[int]) -> bool:
    """Say whether an index segment describes any of the fragments; ``None`` may describe all."""
    return bool(ids) if covered is None else not covered.isdisjoint(ids)
