"""Apply an operation to a manifest: the next manifest and its index segments.

Nothing is read or written here, so a commit that loses a race is simply applied again to the
version of the winner.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, assert_never

from lancetable.commit import transaction as op
from lancetable.commit.apply import coverage, lineage
from lancetable.commit.apply.derived_fields import (
    Stamp,
    find_fragments,
    finished,
    fragment_ids,
    next_fragment_id,
    shared_ids,
)
from lancetable.commit.apply.files import (
    check_data_format,
    cloned,
    loses_columns,
    restored,
    storage_version,
    tidy,
    with_bases,
    with_file,
)
from lancetable.commit.apply.metadata import updated_config
from lancetable.commit.blob_dataset import check_keeps_blobs, with_blob_dataset
from lancetable.errors import InputError, UnsupportedError
from lancetable.format.manifest import DataFile, Fragment, IndexSegment, Manifest, WriterVersion
from lancetable.format.manifest.flags import Feature
from lancetable.format.manifest.fragments import EditedFragments
from lancetable.format.manifest.reuse import FragmentReuse

_SPILLED = (-3, -4, -5)
_STABLE = int(Feature.STABLE_ROW_IDS)


class State(NamedTuple):
    """The next version; ``indices`` is ``None`` when the segments did not change."""

    manifest: Manifest
    indices: tuple[IndexSegment, ...] | None = None


def _none() -> Sequence[IndexSegment]:
    return ()


def _no_reuse(segments: Sequence[IndexSegment]) -> FragmentReuse | None:
    del segments
    return None


@dataclass(frozen=True, slots=True)
class Context:
    """Values that an operation needs beside the manifest it is applied to."""

    now: datetime
    writer: WriterVersion
    indices: Callable[[], Sequence[IndexSegment]] = _none
    """Loads the segments of the manifest, when an operation may change them."""
    reuse: Callable[[Sequence[IndexSegment]], FragmentReuse | None] = _no_reuse
    """Loads the record of moved rows from segments; ``None`` when it cannot be read."""
    restored: State | None = None
    """The version to restore, for Restore."""
    storage_version: str | None = None
    """The version of new data files, when an Overwrite changes it and brings no files."""
    transaction_file: str = ""
    enable_row_ids: bool = False
    """True for a Merge whose fragments bring stable ids for all rows."""


def apply(manifest: Manifest, operation: op.Operation, context: Context) -> State:
    """Apply an operation to a version and return the next one.

    Raises:
        InputError: the operation does not fit the version.
        UnsupportedError: this release does not know the operation, or a feature it would change.
    """
    now, writer, name = context.now, context.writer, context.transaction_file
    stamp = Stamp(manifest.version + 1, now, writer, name, manifest.branch)
    if isinstance(operation, op.Clone):
        made, segments = cloned(manifest, operation, context.indices())
        stamp = stamp._replace(version=manifest.version, branch=made.branch)
        # Only the places of files change, so the derived fields stay.
        same = made._replace(fragments=manifest.fragments)
        done = finished(manifest, same, segments, stamp)
        return State(done._replace(fragments=made.fragments), segments)
    check_keeps_blobs(manifest, operation)
    check_data_format(manifest, operation)
    state, indices = _applied(manifest, operation, context)
    made = with_blob_dataset(manifest, state, operation)
    if indices is None and manifest.index_section is not None and shared_ids(manifest):
        # The fragments get their own ids now, which the stored segments do not know.
        indices = tuple(context.indices())
    return State(finished(manifest, made, indices, stamp), indices)


def _applied(  # noqa: C901, PLR0911, PLR0912 - one branch for each operation
    manifest: Manifest, operation: op.Operation, context: Context
) -> State:
    match operation:
        case op.Append(fragments):
            return State(_added(manifest, fragments))
        case op.Delete(updated, deleted, _):
            return _deleted(manifest, updated, frozenset(deleted), context)
        case op.Overwrite():
            return _overwritten(manifest, operation, context)
        case op.CreateIndex():
            return State(manifest, coverage.after_create(context.indices(), operation))
        case op.Rewrite():
            return _rewritten(manifest, operation, context)
        case op.Merge():
            return _merged(manifest, operation, context)
        case op.Restore(version):
            return _restored(manifest, version, context)
        case op.ReserveFragments(count):
            reserved = next_fragment_id(manifest) + count - 1
            return State(manifest._replace(max_fragment_id=reserved))
        case op.Update():
            return _updated(manifest, operation, context)
        case op.Project():
            return _projected(manifest, operation, context)
        case op.UpdateConfig():
            return State(updated_config(manifest, operation))
        case op.DataReplacement(replacements):
            return _replaced(manifest, replacements, context)
        case op.UpdateMemWalState(tables):
            segments = coverage.after_merge_of_log(
                context.indices(), tables, version=manifest.version + 1, now=context.now
            )
            return State(manifest, segments)
        case op.UpdateBases(bases):
            return State(manifest._replace(base_paths=with_bases(manifest.base_paths, bases)))
        case op.Unknown(name):
            raise UnsupportedError(f"operation {name!r} is not known to this release")
        case op.Clone():
            raise InputError("a clone creates a table and cannot follow a version of one")
        case _:
            assert_never(operation)


def _is_stable(manifest: Manifest) -> bool:
    return bool(manifest.reader_flags & _STABLE)


def _numbered(fragments: Iterable[Fragment], first: int) -> list[Fragment]:
    """Return new fragments with the ids they get."""
    return [fragment._replace(id=first + place) for place, fragment in enumerate(fragments)]


def _added(
    manifest: Manifest,
    new: Iterable[Fragment],
    *,
    changed: Mapping[int, Fragment] | None = None,
    removed: frozenset[int] = frozenset(),
    origins: Sequence[Fragment] = (),
) -> Manifest:
    """Return the manifest with new fragments, which get ids, beside changed and removed ones."""
    tidied = [tidy(fragment, manifest.schema) for fragment in new]
    added = _numbered(tidied, next_fragment_id(manifest))
    next_row_id = manifest.next_row_id
    if added and _is_stable(manifest):
        lineage.check_next_row_id(manifest)
        added, next_row_id = lineage.number_new(added, next_row_id, manifest.version + 1, origins)
    edited = EditedFragments(manifest.fragments, changed=changed, removed=removed, added=added)
    return manifest._replace(fragments=edited, next_row_id=next_row_id)


def _changed(
    manifest: Manifest, fragments: Sequence[Fragment], removed: frozenset[int] = frozenset()
) -> dict[int, Fragment]:
    """Return changed fragments by id, after checking that these and the removed ones exist."""
    changed = {fragment.id: tidy(fragment, manifest.schema) for fragment in fragments}
    missing = (changed.keys() | removed) - find_fragments(manifest, changed.keys() | removed).keys()
    if missing:
        raise InputError(
            f"fragment {min(missing)} is to be changed, but version {manifest.version} has none"
        )
    return changed


def _with_retained(
    made: Manifest,
    before: Sequence[IndexSegment],
    segments: Sequence[IndexSegment],
    context: Context,
) -> State:
    kept = coverage.retained(segments, made.schema, lambda: fragment_ids(made), context.reuse)
    return State(made, None if kept == tuple(before) else kept)


def _deleted(
    manifest: Manifest, updated: Sequence[Fragment], removed: frozenset[int], context: Context
) -> State:
    changed = _changed(manifest, updated, removed)
    edited = EditedFragments(manifest.fragments, changed=changed, removed=removed)
    made = manifest._replace(fragments=edited)
    if not removed:
        return State(made)
    segments = context.indices()
    return _with_retained(made, segments, segments, context)


def _overwritten(manifest: Manifest, operation: op.Overwrite, context: Context) -> State:
    emptied = manifest._replace(
        fragments=(),
        schema=operation.schema,
        config={**(manifest.config or {}), **operation.config_upsert_values},
        data_format=storage_version(operation.fragments)
        or context.storage_version
        or manifest.data_format,
        max_fragment_id=next_fragment_id(manifest) - 1 if next_fragment_id(manifest) else None,
        index_section=None,
    )
    if operation.initial_bases:
        if manifest.version:
            raise InputError("base paths can be given with the first version of a table only")
        emptied = emptied._replace(base_paths=with_bases((), operation.initial_bases))
    return State(_added(emptied, operation.fragments), ())


def _rewritten(manifest: Manifest, operation: op.Rewrite, context: Context) -> State:
    removed = frozenset(one.id for group in operation.groups for one in group.old_fragments)
    _changed(manifest, (), removed)
    _check_free(manifest, operation, removed)
    free = next_fragment_id(manifest)
    added: list[Fragment] = []
    groups = []
    for old, new in operation.groups:
        named = []
        for fragment in new:
            named.append(fragment if fragment.id else fragment._replace(id=free))
            free += not fragment.id
        groups.append((old, named))
        added.extend(tidy(fragment, manifest.schema) for fragment in named)
    if _is_stable(manifest) and any(fragment.row_ids is None for fragment in added):
        raise InputError("rewritten fragments must bring the row ids of their rows")
    edited = EditedFragments(manifest.fragments, removed=removed, added=added)
    numbered = replace(operation, groups=tuple(type(operation.groups[0])(*g) for g in groups))
    segments = context.indices()
    after = coverage.after_rewrite(
        segments, numbered, stable_row_ids=_is_stable(manifest), load=context.reuse
    )
    return State(manifest._replace(fragments=edited), None if after == tuple(segments) else after)


def _check_free(manifest: Manifest, operation: op.Rewrite, removed: frozenset[int]) -> None:
    """Check that no other fragment has the ids of new fragments."""
    brought = [one.id for group in operation.groups for one in group.new_fragments if one.id]
    taken = find_fragments(manifest, brought).keys() - removed
    if taken or len(set(brought)) != len(brought):
        raise InputError("a rewritten fragment has the id of another fragment")


def _merged(manifest: Manifest, operation: op.Merge, context: Context) -> State:
    segments = context.indices()
    if context.enable_row_ids:
        manifest = manifest._replace(
            reader_flags=manifest.reader_flags | _STABLE,
            writer_flags=manifest.writer_flags | _STABLE,
        )
    elif operation.fragments is manifest.fragments and not loses_columns(
        manifest.schema, operation.schema
    ):
        # Columns of nulls: the fragments do not change.
        made = manifest._replace(schema=operation.schema)
        return _with_retained(made, segments, segments, context)
    fragments = [tidy(fragment, operation.schema) for fragment in operation.fragments]
    next_row_id = manifest.next_row_id
    if _is_stable(manifest):
        version = manifest.version + 1
        files = {one.id: one.files for one in manifest.fragments}
        brought = (one for one in fragments if context.enable_row_ids or one.id not in files)
        next_row_id = lineage.after_known_ids(brought, next_row_id)
        fresh = [one for one in fragments if one.row_ids is None]
        numbered, next_row_id = lineage.number_new(fresh, next_row_id, version)
        numbers = iter(numbered)
        fragments = [
            next(numbers) if one.row_ids is None else _written(one, files.get(one.id), version)
            for one in fragments
        ]
    fragments.sort(key=lambda fragment: fragment.id)
    if len({fragment.id for fragment in fragments}) != len(fragments):
        raise InputError("two fragments of the merged table share one id")
    made = manifest._replace(
        fragments=tuple(fragments),
        schema=operation.schema,
        next_row_id=next_row_id,
    )
    return _with_retained(made, segments, segments, context)


def _written(fragment: Fragment, before: tuple[DataFile, ...] | None, version: int) -> Fragment:
    """Return a fragment whose rows count as changed when it got other files."""
    return fragment if fragment.files == before else lineage.touch_all(fragment, version)


def _restored(manifest: Manifest, version: int, context: Context) -> State:
    if context.restored is None or context.restored.manifest.version != version:
        raise InputError(f"version {version} was not loaded, so it cannot be restored")
    old, segments = context.restored
    return State(restored(manifest, old), segments if segments is not None else ())


def _updated(manifest: Manifest, operation: op.Update, context: Context) -> State:
    removed = frozenset(operation.removed_fragment_ids)
    changed = _changed(manifest, operation.updated_fragments, removed)
    stable = _is_stable(manifest)
    origins: Sequence[Fragment] = ()
    if stable and operation.new_fragments:
        origins = tuple(find_fragments(manifest, changed.keys() | removed).values())
    if stable and operation.update_mode is op.UpdateMode.REWRITE_COLUMNS:
        changed = {id_: _touched(one, operation, manifest) for id_, one in changed.items()}
    made = _added(
        manifest, operation.new_fragments, changed=changed, removed=removed, origins=origins
    )
    segments = before = tuple(context.indices())
    if segments:
        if operation.fields_modified:
            fields = frozenset(operation.fields_modified)
            segments = coverage.without_values(segments, changed.keys(), fields, context.reuse)
        if stable and operation.fields_for_preserving_frag_bitmap:
            segments = coverage.with_moved_rows(
                segments,
                _moved_ids(manifest, operation.new_fragments),
                changed.keys() | removed,
                operation.fields_for_preserving_frag_bitmap,
            )
        if operation.compacted_sstables:
            segments = coverage.after_merge_of_log(
                segments,
                operation.compacted_sstables,
                version=manifest.version + 1,
                now=context.now,
            )
    elif operation.compacted_sstables:
        raise InputError("the table has no write-ahead log whose progress could be recorded")
    return _with_retained(made, before, segments, context)


def _moved_ids(manifest: Manifest, new: Sequence[Fragment]) -> list[int]:
    """Return the ids that those new fragments get all of whose rows have their ids already."""
    numbered = _numbered(new, next_fragment_id(manifest))
    return [one.id for one in numbered if lineage.known_ids(one) == one.physical_rows]


def _touched(fragment: Fragment, operation: op.Update, manifest: Manifest) -> Fragment:
    offsets = lineage.matched_offsets(
        fragment, operation.updated_fragment_offsets, operation.updated_fragment_offset_bitmaps
    )
    version = manifest.version + 1
    if offsets is None:
        return lineage.touch_all(fragment, version)
    return lineage.touch(fragment, offsets, version)


def _projected(manifest: Manifest, operation: op.Project, context: Context) -> State:
    live = {field.id for field in operation.schema.walk()}.union(_SPILLED)
    changed = {}
    # Only where a column goes do files lose their last one.
    for fragment in manifest.fragments if loses_columns(manifest.schema, operation.schema) else ():
        files = tuple(file for file in fragment.files if not live.isdisjoint(file.fields))
        if len(files) != len(fragment.files):
            # A fragment needs one file to know its number of rows.
            changed[fragment.id] = fragment._replace(files=files or fragment.files[:1])
    schema = operation.schema._replace(metadata=manifest.schema.metadata)
    made = manifest._replace(
        schema=schema, fragments=EditedFragments(manifest.fragments, changed=changed)
    )
    segments = context.indices()
    return _with_retained(made, segments, segments, context)


def _replaced(
    manifest: Manifest, replacements: Sequence[op.Replacement], context: Context
) -> State:
    fields = {replacement.new_file.fields for replacement in replacements}
    if len(fields) > 1:
        raise InputError("all new files of a data replacement must hold the same columns")
    found = find_fragments(manifest, [replacement.fragment_id for replacement in replacements])
    changed: dict[int, Fragment] = {}
    for id_, file in replacements:
        if id_ not in found:
            raise InputError(f"fragment {id_} gets a new file, but does not exist any more")
        changed[id_] = with_file(changed.get(id_, found[id_]), file)
        if _is_stable(manifest):
            changed[id_] = lineage.touch_all(changed[id_], manifest.version + 1)
    made = manifest._replace(fragments=EditedFragments(manifest.fragments, changed=changed))
    before = tuple(context.indices())
    replaced_fields = frozenset(id_ for listed in fields for id_ in listed)
    after = coverage.without_values(before, changed.keys(), replaced_fields, context.reuse)
    return State(made, None if after == before else after)
