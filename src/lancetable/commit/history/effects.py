"""Describe what an operation did to rows, fragments and columns, in numbers.

Most operations contain these numbers. A delete lists the rows that are deleted now, not those that
were deleted before, so it is compared with the version it was applied to, which is read only then.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lancetable.commit import transaction as op
from lancetable.commit.apply.derived_fields import find_fragments
from lancetable.format.manifest import Fragment, InlineSequence, Manifest
from lancetable.format.manifest.codec import live_rows
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.schema.model import Schema
from lancetable.records import DETAIL

Before = Callable[[], Manifest | None]


@dataclass(frozen=True, slots=True)
class Effect:
    """What one version changed; ``None`` where it is unknown."""

    rows_added: int | None = 0
    rows_removed: int | None = 0
    rows_updated: int | None = 0
    fragments_added: int = field(default=0, metadata=DETAIL)
    fragments_removed: int = field(default=0, metadata=DETAIL)
    fragments_changed: int = field(default=0, metadata=DETAIL)
    predicate: str = ""
    detail: str = ""
    """Further details in a few words, such as the names of columns."""


UNKNOWN = Effect(None, None, None)
NOTHING = Effect()


def effect_of(operation: op.Operation, before: Before) -> Effect:
    """Return the effect of an operation; ``before`` loads the version before, if there is one."""
    found = _of_rows(operation, before)
    return _of_table(operation, before) if found is None else found


def _of_rows(  # noqa: PLR0911 - one answer for each operation
    operation: op.Operation, before: Before
) -> Effect | None:
    match operation:
        case op.Append(fragments):
            return Effect(_physical(fragments), fragments_added=len(fragments))
        case op.Delete(updated, removed, predicate):
            return Effect(
                rows_removed=_gone(updated, removed, before()),
                fragments_removed=len(removed),
                fragments_changed=len(updated),
                predicate=predicate,
            )
        case op.Update():
            return _of_update(operation, before())
        case op.Rewrite(groups):
            return Effect(
                fragments_added=sum(len(group.new_fragments) for group in groups),
                fragments_removed=sum(len(group.old_fragments) for group in groups),
            )
        case op.Overwrite(fragments, _, _, _):
            old = before()
            return Effect(
                _physical(fragments),
                None if old is None else live_rows(old),
                fragments_added=len(fragments),
                fragments_removed=0 if old is None else len(old.fragments),
            )
        case op.Merge():
            return _of_merge(operation, before())
        case _:
            return None


def _of_table(  # noqa: PLR0911 - one answer for each operation
    operation: op.Operation, before: Before
) -> Effect:
    match operation:
        case op.Project(schema, _):
            return Effect(detail=_columns(before(), schema))
        case op.DataReplacement(replacements):
            changed = {one.fragment_id for one in replacements}
            return Effect(fragments_changed=len(changed))
        case op.Restore(version):
            return Effect(None, None, None, detail=f"version {version}")
        case op.ReserveFragments(count):
            return Effect(detail=f"{count} fragment ids")
        case op.CreateIndex(new, removed):
            names = [f"+{name}" for name in sorted({one.name for one in new})]
            names += [f"-{name}" for name in sorted({one.name for one in removed})]
            return Effect(detail=" ".join(names))
        case op.Clone(is_shallow, name, version, path, _):
            kind = "shallow" if is_shallow else "deep"
            branch = f" of {name}" if name else ""
            return Effect(detail=f"{kind}, version {version}{branch} at {path}")
        case op.UpdateBases(bases):
            return Effect(detail=" ".join(base.path for base in bases))
        case op.UpdateConfig():
            return Effect(detail=_keys(operation))
        case _:
            return UNKNOWN


def _of_update(operation: op.Update, before: Manifest | None) -> Effect:
    removed, updated = operation.removed_fragment_ids, operation.updated_fragments
    counts: tuple[int | None, int | None, int | None]
    if operation.update_mode is op.UpdateMode.REWRITE_COLUMNS:
        counts = (_physical(operation.new_fragments), 0, _matched(operation))
    else:
        written = _physical(operation.new_fragments)
        gone = _gone(updated, removed, before)
        counts = (None, None, None)
        if written is not None and gone is not None:
            # Stable row ids show which rows were moved. Without them, a row that was removed while
            # another was inserted looks like one that was updated.
            moved = _moved(operation.new_fragments)
            both = min(written, gone) if moved is None else moved
            counts = (written - both, gone - both, both)
    added, lost, kept = counts
    return Effect(
        added,
        lost,
        kept,
        fragments_added=len(operation.new_fragments),
        fragments_removed=len(removed),
        fragments_changed=len(updated),
    )


def _of_merge(operation: op.Merge, before: Manifest | None) -> Effect:
    if before is None:
        return UNKNOWN
    old = {one.id: one.files for one in before.fragments}
    new = [one for one in operation.fragments if one.id not in old]
    changed = sum(one.files != old.get(one.id, one.files) for one in operation.fragments)
    return Effect(
        _physical(new),
        fragments_added=len(new),
        fragments_changed=changed,
        detail=_columns(before, operation.schema),
    )


def _physical(fragments: Iterable[Fragment]) -> int | None:
    """Return the number of rows in new fragments; ``None`` where old writers left it out."""
    if isinstance(fragments, StoredFragments):
        # New fragments have no deleted rows, and are counted without decoding them.
        return fragments.live_rows()
    counts = [fragment.physical_rows for fragment in fragments]
    return sum(counts) if all(counts) else None


def _gone(
    updated: Iterable[Fragment], removed: Iterable[int], before: Manifest | None
) -> int | None:
    """Return the number of live rows that changed or removed fragments lost."""
    now: dict[int, int | None] = {one.id: _live(one) for one in updated}
    now |= dict.fromkeys(removed, 0)
    if not now:
        return 0
    if before is None:
        return None
    were = {id_: _live(one) for id_, one in find_fragments(before, now).items()}
    total = 0
    for id_, left in now.items():
        was = were.get(id_)
        if was is None or left is None:
            return None
        total += was - left
    return total


def _live(fragment: Fragment) -> int | None:
    deletion = fragment.deletion_file
    if not fragment.physical_rows or (deletion is not None and not deletion.deleted_rows):
        return None
    return fragment.physical_rows - (deletion.deleted_rows if deletion is not None else 0)


def _moved(fragments: Iterable[Fragment]) -> int | None:
    """Return the number of rows that came with an id; ``None`` when none did."""
    sequences = [one.row_ids for one in fragments if isinstance(one.row_ids, InlineSequence)]
    if not sequences:
        return None
    from lancetable.format.manifest.rowids.sequences import id_count  # noqa: PLC0415 - needs numpy

    return sum(id_count(sequence.data) for sequence in sequences)


def _matched(operation: op.Update) -> int | None:
    """Return the number of rows that an update of columns records as matched."""
    offsets, bitmaps = operation.updated_fragment_offsets, operation.updated_fragment_offset_bitmaps
    total = 0
    for fragment in operation.updated_fragments:
        if fragment.id in bitmaps:
            from lancetable.format.manifest.roaring import decode_bitmap  # noqa: PLC0415

            total += len(decode_bitmap(bitmaps[fragment.id], most=fragment.physical_rows))
        elif fragment.id in offsets:
            total += len(offsets[fragment.id])
        else:
            live = _live(fragment)
            if live is None:
                return None
            total += live
    return total


def _columns(before: Manifest | None, schema: Schema) -> str:
    """Describe which columns were added, dropped or renamed."""
    if before is None:
        return ""
    old = {field.id: field.name for field in before.schema.walk()}
    new = {field.id: field.name for field in schema.walk()}
    words = [f"+{name}" for id_, name in new.items() if id_ not in old]
    words += [f"-{name}" for id_, name in old.items() if id_ not in new]
    words += [f"{old[id_]}->{name}" for id_, name in new.items() if id_ in old and old[id_] != name]
    return " ".join(words)


def _keys(operation: op.UpdateConfig) -> str:
    words = []
    for what in ("config", "table_metadata", "schema_metadata"):
        update = getattr(operation, what)
        if update is not None:
            words += [
                f"{'-' if value is None else '+'}{what}.{key}"
                for key, value in update.entries.items()
            ]
    words += [f"+field {id_}" for id_ in operation.field_metadata]
    return " ".join(words)
