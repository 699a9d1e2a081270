"""Decide whether an operation may still be committed after another one was, without any I/O.

===============  =================================================================================
answer           meaning
===============  =================================================================================
Compatible       both may land; ``merge`` names fragments in which both deleted rows
Rebased          both may land if this one is changed a little
Conflicting      only one may land; ``retryable`` when the work can be done again on the new version
===============  =================================================================================

The rules are those of the specification as the reference implementation applies them, or stricter.
Inserted keys are compared whether a primary key is declared or not.
"""

from typing import assert_never

from lancetable.commit import transaction as op
from lancetable.commit.rules import rows, table
from lancetable.commit.rules.verdicts import (
    FINE,
    Compatible,
    Conflicting,
    Facts,
    Rebased,
    Verdict,
    stop,
)

__all__ = ["Compatible", "Conflicting", "Facts", "Rebased", "Verdict", "judge"]

NO_FACTS = Facts()


def judge(  # noqa: C901, PLR0911, PLR0912 - one branch for each operation
    mine: op.Transaction, theirs: op.Transaction | None, facts: Facts = NO_FACTS
) -> Verdict:
    """Say whether ``mine`` may follow ``theirs``, which was committed after ``mine`` was read."""
    if theirs is None:
        return stop("another writer left no record of what it did")
    own, other = mine.operation, theirs.operation
    if isinstance(other, op.Unknown):
        return stop(f"another writer did {other.name!r}, which this release does not know")
    if isinstance(own, op.Unknown | op.Clone):
        return stop("nothing may come before the first version of a table")
    if isinstance(other, op.Clone | op.ReserveFragments):
        return FINE
    if isinstance(other, op.Restore | op.Overwrite) and not isinstance(
        own, op.Restore | op.Overwrite
    ):
        return table.after_replacement(own, other)
    match own:
        case op.Append():
            return table.for_append(own, other)
        case op.Delete():
            return rows.for_delete(own, other, facts)
        case op.Overwrite():
            return table.for_overwrite(own, other)
        case op.CreateIndex():
            return rows.for_index(own, other)
        case op.Rewrite():
            return rows.for_rewrite(own, other, facts)
        case op.Merge():
            return table.for_merge(other)
        case op.Restore():
            return table.for_restore(other)
        case op.ReserveFragments():
            return FINE
        case op.Update():
            return rows.for_update(own, other, facts)
        case op.Project():
            return table.for_project(own, other)
        case op.UpdateConfig():
            return table.for_config(own, other)
        case op.DataReplacement():
            return rows.for_replacement(own, other)
        case op.UpdateMemWalState():
            return rows.for_log(own, other)
        case op.UpdateBases():
            return table.for_bases(own, other)
        case _:
            assert_never(own)
