"""Conflict rules for rows that are deleted, updated, moved or replaced."""

from lancetable.commit import transaction as op
from lancetable.commit.rules.indices import generations, meets
from lancetable.commit.rules.keys import may_share
from lancetable.commit.rules.verdicts import (
    ALL_FRAGMENTS,
    FINE,
    LOG,
    NULLS,
    Compatible,
    Facts,
    Verdict,
    first,
    first_verdict,
    retry,
    stop,
)
from lancetable.format.manifest.indices.kinds import is_system


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
