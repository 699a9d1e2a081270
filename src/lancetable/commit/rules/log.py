"""When does progress of the write-ahead log conflict."""

from lancetable.commit.coverage import MEM_WAL
from lancetable.commit.rules.verdicts import FINE, Verdict, first, retry, stop
from lancetable.commit.touched import index_names
from lancetable.commit.transaction import (
    CompactedSsTable,
    CreateIndex,
    Operation,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)


def generations(mine: tuple[CompactedSsTable, ...], their: tuple[CompactedSsTable, ...]) -> Verdict:
    """Judge two merges of the log: of one shard, only a later generation may follow."""
    committed = {table.shard_id: table.generation for table in their}
    for shard, generation in mine:
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
            return first((MEM_WAL in index_names(other), changed))
        case Rewrite() | UpdateConfig() | UpdateBases():
            return FINE
        case _:
            return stop("another writer changed the table")
