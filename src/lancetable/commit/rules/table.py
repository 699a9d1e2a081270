"""Conflict rules for the schema, the configuration, base paths and the table as a whole."""

from lancetable.commit import transaction as op
from lancetable.commit.rules.verdicts import FINE, LOG, NULLS, Verdict, first, retry, stop

_SAME_CONFIG = stop("another writer changed the same configuration")
_SAME_SCHEMA_METADATA = stop("another writer changed the metadata of the schema")


def _config_keys(operation: op.Operation) -> frozenset[str]:
    if isinstance(operation, op.Overwrite):
        return frozenset(operation.config_upsert_values)
    if isinstance(operation, op.UpdateConfig) and operation.config is not None:
        return frozenset(operation.config.entries)
    return frozenset()


def for_overwrite(own: op.Overwrite, other: op.Operation) -> Verdict:
    """Judge an operation that replaces all rows and the schema."""
    return first(
        (isinstance(other, op.UpdateMemWalState), LOG),
        (_config_keys(own) & _config_keys(other), _SAME_CONFIG),
        (isinstance(other, op.Overwrite), retry("another writer overwrote the table")),
    )


def for_restore(other: op.Operation) -> Verdict:
    """Judge going back to an older version."""
    described = isinstance(other, op.UpdateConfig) and other.changes_schema
    return first(
        (isinstance(other, op.UpdateMemWalState), LOG),
        (described, _SAME_SCHEMA_METADATA),
    )


def after_replacement(own: op.Operation, other: op.Restore | op.Overwrite) -> Verdict:
    """Judge what comes after the whole table was replaced."""
    if isinstance(own, op.UpdateBases):
        return FINE
    if isinstance(own, op.UpdateConfig) and not own.changes_schema:
        return first((_config_keys(own) & _config_keys(other), _SAME_CONFIG))
    verb = "restored an older version of" if isinstance(other, op.Restore) else "overwrote"
    return stop(f"another writer {verb} the table")


def for_config(own: op.UpdateConfig, other: op.Operation) -> Verdict:
    """Judge changes of configuration and metadata."""
    if isinstance(other, op.Merge):
        return first((own.changes_schema, retry("another writer changed the schema")))
    if not isinstance(other, op.UpdateConfig):
        return FINE
    both_schema = own.schema_metadata is not None and other.schema_metadata is not None
    fields = own.field_metadata.keys() & other.field_metadata.keys()
    return first(
        (both_schema, _SAME_SCHEMA_METADATA),
        (fields, stop(f"another writer changed the metadata of field {min(fields, default=0)}")),
        (_set_twice(own.config, other.config), _SAME_CONFIG),
        (
            _meet(own.table_metadata, other.table_metadata),
            stop("another writer changed the same metadata of the table"),
        ),
    )


def _set_twice(mine: op.MapUpdate | None, their: op.MapUpdate | None) -> bool:
    """Say whether one side sets a key that the other sets or removes."""
    if mine is None or their is None:
        return False
    shared = mine.entries.keys() & their.entries.keys()
    return any(mine.entries[key] is not None or their.entries[key] is not None for key in shared)


def _meet(mine: op.MapUpdate | None, their: op.MapUpdate | None) -> bool:
    if mine is None or their is None:
        return False
    return mine.replace or their.replace or bool(mine.entries.keys() & their.entries.keys())


def for_bases(own: op.UpdateBases, other: op.Operation) -> Verdict:
    """Judge new base paths."""
    if not isinstance(other, op.UpdateBases):
        return FINE
    for mine in own.new_bases:
        for their in other.new_bases:
            same_id = mine.id == their.id != 0
            if same_id or mine.path == their.path or (mine.name and mine.name == their.name):
                return stop(f"another writer added a base like {mine.path!r}")
    return FINE


def may_forbid_nulls(other: op.Operation) -> bool:
    """Say whether rows written before may hold nulls that the new schema forbids."""
    return isinstance(other, op.Merge | op.Project) and not other.preserves_nullability


def for_append(own: op.Append, other: op.Operation) -> Verdict:
    """Judge new rows.

    A cast gives a column a new id. New rows that were written for the old one would be null there.
    """
    return first(
        (isinstance(other, op.UpdateMemWalState), LOG),
        (may_forbid_nulls(other), NULLS),
        (
            isinstance(other, op.Merge) and _holds_others(own, other),
            retry("another writer replaced a column that the new rows hold"),
        ),
    )


def _holds_others(own: op.Append, other: op.Merge) -> bool:
    """Say whether new rows hold columns that the new schema does not know."""
    known = {field.id for field in other.schema.walk()}
    return any(
        id_ >= 0 and id_ not in known
        for fragment in own.fragments
        for file in fragment.files
        for id_ in file.fields
    )


def for_merge(other: op.Operation) -> Verdict:
    """Judge new columns, which name all fragments as they were."""
    if isinstance(other, op.CreateIndex | op.UpdateBases):
        return FINE
    if isinstance(other, op.UpdateConfig):
        changed = retry("another writer changed the metadata of the schema")
        return first((other.changes_schema, changed))
    return first(
        (isinstance(other, op.Project), stop("another writer changed the schema")),
        (isinstance(other, op.UpdateMemWalState), LOG),
        (True, retry("another writer changed the fragments of the table")),
    )


def for_project(own: op.Project, other: op.Operation) -> Verdict:
    """Judge another schema over the same files."""
    adds = isinstance(other, op.Append | op.Update | op.DataReplacement)
    return first(
        (isinstance(other, op.Merge | op.Project), retry("another writer changed the schema")),
        # The whole schema is replaced, and with it the metadata that the other writer set.
        (
            isinstance(other, op.UpdateConfig) and other.changes_schema,
            retry("another writer changed the metadata of the schema"),
        ),
        (isinstance(other, op.UpdateMemWalState), LOG),
        (
            adds and not own.preserves_nullability,
            retry("another writer added values, which may be null"),
        ),
    )
