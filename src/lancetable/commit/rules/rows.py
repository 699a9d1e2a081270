"""Conflict rules for changed rows, index segments and progress of the write-ahead log.

Filters of key hashes show whether two operations may have inserted the same key. A split-block
bloom filter is a list of blocks of eight words (u32). The upper half of a hash picks the block; the
lower half, times one odd number per word, picks one bit of each word.
"""

import struct
from collections.abc import Set
from dataclasses import replace

from lancetable.commit import transaction as op
from lancetable.commit.apply.coverage import without_values
from lancetable.commit.rules.verdicts import (
    ALL_FRAGMENTS,
    FINE,
    LOG,
    NULLS,
    Compatible,
    Facts,
    Rebased,
    Verdict,
    first,
    first_verdict,
    retry,
    stop,
)
from lancetable.commit.transaction import (
    BloomFilter,
    CreateIndex,
    DataReplacement,
    ExactKeys,
    KeyFilter,
    Merge,
    Operation,
    Project,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)
from lancetable.format.manifest.indices.kinds import MEM_WAL, is_system
from lancetable.format.manifest.mem_wal.model import CompactedSsTable

MOST_EXACT = 4096
"""Up to so many keys the hashes themselves take no more room than a filter."""
BLOCKS = 1024
_BLOCK_BYTES = 32
_SALT = (
    *(0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D),
    *(0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31),
)
_BLOCK = struct.Struct("<8I")


def may_share(mine: KeyFilter, theirs: KeyFilter) -> bool:
    """Say whether a key may be in both filters; filters that cannot be compared may share one."""
    if mine.field_ids != theirs.field_ids:
        return True
    match mine.keys, theirs.keys:
        case ExactKeys(own), ExactKeys(other):
            return not own.isdisjoint(other)
        case ExactKeys(own), BloomFilter() as other:
            return any(_may_hold(other, hash_) for hash_ in own)
        case BloomFilter() as own, ExactKeys(other):
            return any(_may_hold(own, hash_) for hash_ in other)
        case BloomFilter() as own, BloomFilter() as other:
            return _may_meet(own, other)
    return True


def _place(hash_: int, blocks: int) -> tuple[int, list[int]]:
    block = ((hash_ >> 32) * blocks) >> 32
    key = hash_ & 0xFFFFFFFF
    return block * _BLOCK_BYTES, [1 << ((key * salt & 0xFFFFFFFF) >> 27) for salt in _SALT]


def _may_hold(bloom: BloomFilter, hash_: int) -> bool:
    blocks, rest = divmod(len(bloom.bitmap), _BLOCK_BYTES)
    if not blocks or rest:
        return True
    at, bits = _place(hash_, blocks)
    words = _BLOCK.unpack_from(bloom.bitmap, at)
    return all(word & bit for word, bit in zip(words, bits, strict=True))


def _may_meet(own: BloomFilter, other: BloomFilter) -> bool:
    """Compare block by block: a shared key has a bit in each word of its block in both."""
    if len(own.bitmap) != len(other.bitmap) or own[1:] != other[1:]:
        return True
    if not own.bitmap or len(own.bitmap) % _BLOCK_BYTES:
        return True
    both = int.from_bytes(own.bitmap, "little") & int.from_bytes(other.bitmap, "little")
    if not both:
        return False
    shared = both.to_bytes(len(own.bitmap), "little")
    return any(all(words) for words in _BLOCK.iter_unpack(shared))


def for_index(  # noqa: PLR0911 - one branch for each operation
    own: CreateIndex, other: Operation
) -> Verdict:
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
        case Merge(schema=schema) | Project(schema=schema):
            known = {field.id for field in schema.walk()}
            lost = any(not known.issuperset(segment.fields) for segment in own.new_indices)
            return first((lost, retry("another writer dropped or replaced the indexed column")))
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


def for_delete(own: op.Delete, other: op.Operation, facts: Facts) -> Verdict:
    """Judge deleted rows."""
    return first_verdict(
        first(
            (isinstance(other, op.Merge), ALL_FRAGMENTS),
            (isinstance(other, op.UpdateMemWalState), LOG),
        ),
        _overlapping(own, other, facts),
    )


def for_update(own: op.Update, other: op.Operation, facts: Facts) -> Verdict:
    """Judge changed, inserted and removed rows."""
    forbids = isinstance(other, op.Project) and not other.preserves_nullability
    log = other.compacted_sstables if isinstance(other, op.Update | op.UpdateMemWalState) else ()
    return first_verdict(
        first((isinstance(other, op.Merge), ALL_FRAGMENTS), (forbids, NULLS)),
        generations(own.compacted_sstables, log),
        _inserted(own, other),
        _overlapping(own, other, facts),
    )


def _inserted(own: op.Update, other: op.Operation) -> Verdict:
    """Judge what concerns keys that an update inserts because they were not there."""
    keys = own.inserted_rows
    if keys is None:
        return FINE
    replaced = other.field_ids if isinstance(other, op.DataReplacement) else frozenset()
    unknown = isinstance(other, op.Update) and other.inserted_rows is None
    shared = (
        isinstance(other, op.Update)
        and other.inserted_rows is not None
        and may_share(keys, other.inserted_rows)
    )
    return first(
        (
            isinstance(other, op.Append),
            retry("another writer appended rows, which may have the inserted keys"),
        ),
        (replaced.intersection(keys.field_ids), retry("another writer replaced values of the key")),
        (unknown, retry("another writer changed rows, which may have the inserted keys now")),
        (shared, retry("another writer inserted rows with the same keys")),
    )


def _overlapping(own: op.Delete | op.Update, other: op.Operation, facts: Facts) -> Verdict:
    mine, their = own.touched, other.touched
    both = mine.all & their.all
    if not both:
        return FINE
    deletes = isinstance(other, op.Delete | op.Update)
    rewrites = isinstance(own, op.Update) and own.update_mode is op.UpdateMode.REWRITE_COLUMNS
    removed = both & (their.removed | mine.removed)
    known = facts.affected is not None and both <= facts.affected.keys()
    if not deletes or rewrites or removed or not known:
        return retry(f"another writer changed fragment {min(both)}")
    if any(their.files[id_] != facts.files.get(id_) for id_ in both):
        return retry(f"another writer changed columns of fragment {min(both)}")
    return Compatible(both)


def for_rewrite(own: op.Rewrite, other: op.Operation, facts: Facts) -> Verdict:
    """Judge rows that moved to other files; rows deleted meanwhile can be deleted there."""
    mine, their = own.touched.all, other.touched
    both = mine & their.all
    deletes = isinstance(other, op.Delete | op.Update) and facts.are_moves_known
    rewritten = [
        id_ for id_ in both & their.updated if their.files.get(id_) != facts.files.get(id_)
    ]
    verdict = first(
        (isinstance(other, op.Merge), ALL_FRAGMENTS),
        (
            isinstance(other, op.CreateIndex) and _is_indexed(own, other, facts),
            retry("another writer indexed rows that were moved"),
        ),
        (both and not deletes, retry(f"another writer changed fragment {min(both, default=0)}")),
        (
            rewritten,
            retry(f"another writer changed columns of fragment {min(rewritten, default=0)}"),
        ),
    )
    return Compatible(both) if both and verdict == FINE else verdict


def _is_indexed(own: op.Rewrite, other: op.CreateIndex, facts: Facts) -> bool:
    """Say whether new index segments lose rows that moved.

    They do not when the moves are recorded, unless a segment describes only a part of a group.
    """
    for segment in other.new_indices:
        if is_system(segment):
            continue
        covered = segment.fragment_ids
        for old, _ in own.groups:
            ids = {one.id for one in old}
            if meets(covered, ids) and not (
                facts.keeps_indices and covered is not None and ids <= covered
            ):
                return True
    return False


def for_replacement(own: op.DataReplacement, other: op.Operation) -> Verdict:
    """Judge files that replace the values of columns."""
    mine, fields = own.touched.all, own.field_ids
    their = other.touched
    match other:
        case op.Merge():
            return ALL_FRAGMENTS
        case op.UpdateMemWalState():
            return LOG
        case op.CreateIndex():
            indexed = any(fields.intersection(segment.fields) for segment in other.new_indices)
            return first((indexed, retry("another writer indexed the replaced column")))
        case op.Project(schema, preserves):
            dropped = not fields <= {one.id for one in schema.walk()}
            return first(
                (not preserves, NULLS),
                (dropped, stop("another writer dropped the replaced column")),
            )
        case op.Rewrite():
            return first((mine & their.all, retry("another writer moved rows of the fragment")))
        case _:
            return first(
                (mine & their.removed, stop("another writer removed the fragment")),
                (
                    mine & their.updated and _changes(other, fields),
                    retry("another writer changed values of the fragment"),
                ),
            )


def _changes(other: op.Operation, fields: frozenset[int]) -> bool:
    """Say whether values of the fields changed or moved inside fragments that were updated."""
    match other:
        case op.DataReplacement():
            return bool(fields & other.field_ids)
        case op.Update(update_mode=op.UpdateMode.REWRITE_COLUMNS, fields_modified=modified):
            return bool(fields.intersection(modified))
        case op.Update():
            return True
        case _:
            return False
