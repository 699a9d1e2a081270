"""When do changes of the schema conflict, and what they ask of new rows."""

from lancetable.commit.rules.verdicts import (
    FINE,
    LOG,
    NULLS,
    Verdict,
    first,
    retry,
    stop,
)
from lancetable.commit.transaction import (
    Append,
    CreateIndex,
    DataReplacement,
    Merge,
    Operation,
    Project,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)


def may_forbid_nulls(other: Operation) -> bool:
    """Say whether rows written before may hold nulls that the new schema forbids."""
    return isinstance(other, Merge | Project) and not other.preserves_nullability


def for_append(own: Append, other: Operation) -> Verdict:
    """Judge new rows.

    A cast gives a column a new id. New rows that were written for the old one would be null there.
    """
    return first(
        (isinstance(other, UpdateMemWalState), LOG),
        (may_forbid_nulls(other), NULLS),
        (
            isinstance(other, Merge) and _holds_others(own, other),
            retry("another writer replaced a column that the new rows hold"),
        ),
    )


def _holds_others(own: Append, other: Merge) -> bool:
    """Say whether new rows hold columns that the new schema does not know."""
    known = {field.id for field in other.schema.walk()}
    return any(
        id_ >= 0 and id_ not in known
        for fragment in own.fragments
        for file in fragment.files
        for id_ in file.fields
    )


def for_merge(other: Operation) -> Verdict:
    """Judge new columns, which name all fragments as they were."""
    if isinstance(other, CreateIndex | UpdateBases):
        return FINE
    if isinstance(other, UpdateConfig):
        changed = retry("another writer changed the metadata of the schema")
        return first((other.changes_schema, changed))
    return first(
        (isinstance(other, Project), stop("another writer changed the schema")),
        (isinstance(other, UpdateMemWalState), LOG),
        (True, retry("another writer changed the fragments of the table")),
    )


def for_project(own: Project, other: Operation) -> Verdict:
    """Judge another schema over the same files."""
    adds = isinstance(other, Append | Update | DataReplacement)
    return first(
        (isinstance(other, Merge | Project), retry("another writer changed the schema")),
        # The whole schema is replaced, with it what the other one wrote about its columns.
        (
            isinstance(other, UpdateConfig) and other.changes_schema,
            retry("another writer changed the metadata of the schema"),
        ),
        (isinstance(other, UpdateMemWalState), LOG),
        (
            adds and not own.preserves_nullability,
            retry("another writer added values, which may be null"),
        ),
    )
