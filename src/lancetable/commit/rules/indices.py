"""When do changes of indices conflict."""

from dataclasses import replace

from lancetable.commit.coverage import MEM_WAL, without_values
from lancetable.commit.rules.verdicts import FINE, LOG, Rebased, Verdict, first, retry
from lancetable.commit.touched import index_names, meets, replaced_fields, touched
from lancetable.commit.transaction import (
    CreateIndex,
    DataReplacement,
    Operation,
    Rewrite,
    Update,
    UpdateMemWalState,
)


def for_index(own: CreateIndex, other: Operation) -> Verdict:
    """Judge new and removed index segments."""
    match other:
        case CreateIndex():
            names = index_names(own) & index_names(other)
            return first(
                (names, retry(f"another writer changed the index {min(names, default='')!r}"))
            )
        case Rewrite():
            old = touched(other).all
            moved = any(meets(segment.fragment_ids, old) for segment in own.new_indices)
            return first((moved, retry("another writer moved rows that were indexed")))
        case Update():
            return _narrowed(own, other)
        case DataReplacement():
            fields = replaced_fields(other)
            stale = any(fields.intersection(segment.fields) for segment in own.new_indices)
            return first((stale, retry("another writer replaced values of the indexed column")))
        case UpdateMemWalState():
            return retry(LOG.reason) if MEM_WAL in index_names(own) else LOG
        case _:
            return FINE


def _narrowed(own: CreateIndex, other: Update) -> Verdict:
    """Take fragments whose indexed values changed out of the new segments."""
    fields = frozenset(other.fields_modified)
    narrowed = without_values(own.new_indices, touched(other).updated, fields)
    return FINE if narrowed == own.new_indices else Rebased(replace(own, new_indices=narrowed))
