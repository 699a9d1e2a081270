"""Translate the operations of a branch so that they apply to another history.

===============  =================================================================================
operation        what must still hold where it is replayed
===============  =================================================================================
Append           the columns of the new rows exist, with the same names and types
Delete           the rows are there, unchanged; they are deleted there
Update           the same for the rows it moved or changed; columns as for Append
Merge            the schema and the set of rows are the same, so that new columns fit row by row
Project          the schema is the same
DataReplacement  the fragments have the values that were replaced
UpdateConfig     the entries have the values that were replaced
===============  =================================================================================

Other operations are not replayed: they concern a whole table, or nothing but its files.

Fragments of two histories are matched by the data files they share: names of data files are random,
so two fragments with the same file hold the same rows at the same offsets. A change of a branch can
be made on its parent only where the parent still has the rows as the branch knew them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lancetable.commit.apply.derived_fields import find_fragments, next_fragment_id, shared_ids
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import (
    Append,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Project,
    Replacement,
    Update,
    UpdateConfig,
    UpdateMode,
)
from lancetable.errors import ConflictError, InputError, UnsupportedError
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import Fragment, InlineSequence, Manifest
from lancetable.format.manifest.rowids import decode_row_ids, encode_row_ids
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.deletions import load_deletions
from lancetable.operations.branch.copy_files import Relocation, origin_name
from lancetable.operations.results import ChangeOptions
from lancetable.operations.rows.mark_deleted import Marks, mark_rows
from lancetable.operations.rows.parts import RowSet


@dataclass(frozen=True, slots=True)
class Replayed:
    """An operation in terms of the target, the rows it takes away, and files written for it."""

    operation: Operation
    affected: Mapping[int, RowSet] | None = None
    written: tuple[str, ...] = ()


class Replay:
    """One version of a branch on its way to another history."""

    def __init__(
        self, before: Snapshot, after: Snapshot, target: Snapshot, options: ChangeOptions
    ) -> None:
        self._before = before
        self._after = after
        self._target = target
        self._options = options
        self._pairs = Counterparts(before, target)
        self.relocation = Relocation(after, target)

    def translated(  # noqa: PLR0911 - one answer for each operation
        self, operation: Operation
    ) -> Replayed:
        """Return the operation in terms of the target.

        Raises:
            ConflictError: the target changed what the operation builds on.
            InputError: operations of this kind are not replayed.
        """
        self._check_fragment_ids(operation)
        match operation:
            case Append(fragments):
                return Replayed(Append([self._new(one) for one in fragments]))
            case Delete(updated, removed, predicate):
                marks = self._marks(updated, removed)
                return Replayed(marks.delete(predicate), marks.affected, marks.paths)
            case Update(update_mode=UpdateMode.REWRITE_COLUMNS):
                return Replayed(self._columns(operation))
            case Update():
                return self._rows(operation)
            case Merge():
                return Replayed(self._merge(operation))
            case Project(schema, preserves):
                self._check_schema()
                if not preserves:
                    self._pairs.check_complete()
                return Replayed(Project(schema, preserves))
            case DataReplacement(replacements):
                new = [
                    Replacement(self._pairs.of(id_).id, self.relocation.data_file(file))
                    for id_, file in replacements
                ]
                return Replayed(DataReplacement(tuple(new)))
            case UpdateConfig():
                _check_entries(operation, self._before.manifest, self._target.manifest)
                return Replayed(operation)
            case _:
                raise InputError(
                    f"version {self._after.version} of the branch is of the kind "
                    f"{operation.name}, which cannot be replayed on another history; "
                    "publish the whole branch with fast_forward, or repeat the change there"
                )

    def _check_fragment_ids(self, operation: Operation) -> None:
        names_none = isinstance(operation, Append | Project | UpdateConfig)
        if not names_none and (
            shared_ids(self._before.manifest) or shared_ids(self._after.manifest)
        ):
            raise UnsupportedError(
                f"version {self._after.version} of the branch names fragments by ids that two of "
                "them share; repeat the change on this table instead"
            )

    def _new(self, fragment: Fragment) -> Fragment:
        """Return a new fragment; its rows get ids, and versions, when it is committed."""
        self._check_columns(fragment)
        plain = fragment._replace(row_ids=None, created_at=None, last_updated_at=None)
        return self.relocation.fragment(plain, 0)

    def _check_columns(self, fragment: Fragment) -> None:
        held = {id_ for file in fragment.files for id_ in file.fields if id_ >= 0}
        ours = _columns(self._after.manifest.schema)
        theirs = _columns(self._target.manifest.schema)
        for id_ in held & ours.keys():
            if theirs.get(id_) != ours[id_]:
                raise ConflictError(
                    f"column {ours[id_][0]!r} of the new rows was dropped or changed after the "
                    "branch began"
                )
        required = {
            one.id for one in self._target.manifest.schema.fields if not one.nullable
        } - ours.keys()
        if required:
            raise ConflictError(
                "a column without nulls was added after the branch began, which the new rows lack"
            )

    def _marks(self, updated: Sequence[Fragment], removed: Sequence[int]) -> Marks:
        # Of the fragments as the version has them it is known where their files are.
        after: dict[int, Fragment | None] = dict.fromkeys(removed)
        after |= find_fragments(self._after.manifest, [one.id for one in updated])
        taken = {id_: RowSet.of(rows) for id_, rows in self._pairs.taken(after).items()}
        return mark_rows(self._target, taken, self._options.runner)

    def _rows(self, operation: Update) -> Replayed:
        origins = [one.id for one in operation.updated_fragments]
        origins += operation.removed_fragment_ids
        new = []
        for fragment in operation.new_fragments:
            if not isinstance(fragment.row_ids, InlineSequence | None):
                raise UnsupportedError(
                    f"version {self._after.version} of the branch keeps row ids outside the "
                    "manifest, where they cannot be translated; repeat the change on this table "
                    "instead"
                )
            made = self._new(fragment)
            if isinstance(fragment.row_ids, InlineSequence):
                ids = self._pairs.renamed_ids(fragment.row_ids, origins)
                made = made._replace(row_ids=ids)
            new.append(made)
        marks = self._marks(operation.updated_fragments, operation.removed_fragment_ids)
        made_operation = replace(
            operation,
            removed_fragment_ids=marks.removed,
            updated_fragments=marks.updated,
            new_fragments=new,
        )
        return Replayed(made_operation, marks.affected, marks.paths)

    def _columns(self, operation: Update) -> Update:
        ids = {one.id: self._pairs.of(one.id).id for one in operation.updated_fragments}
        return replace(
            operation,
            updated_fragments=[self._with_files(one) for one in operation.updated_fragments],
            updated_fragment_offsets={
                ids[id_]: rows for id_, rows in operation.updated_fragment_offsets.items()
            },
            updated_fragment_offset_bitmaps={
                ids[id_]: rows for id_, rows in operation.updated_fragment_offset_bitmaps.items()
            },
        )

    def _with_files(self, fragment: Fragment) -> Fragment:
        """Return the target's fragment with the files of the branch's."""
        theirs = self._pairs.of(fragment.id)
        known = {origin_name(file.path): file for file in theirs.files}
        files = tuple(
            known[name]._replace(fields=file.fields)
            if (name := origin_name(file.path)) in known
            else self.relocation.data_file(file)
            for file in fragment.files
        )
        return theirs._replace(files=files)

    def _merge(self, operation: Merge) -> Merge:
        self._check_schema()
        self._pairs.check_complete()
        fragments = {one.id: one for one in operation.fragments}
        before = {one.id for one in self._before.manifest.fragments}
        kept = [self._with_files(one) for id_, one in fragments.items() if id_ in before]
        free = next_fragment_id(self._target.manifest)
        added = [one for id_, one in fragments.items() if id_ not in before]
        new = [
            self.relocation.fragment(
                one._replace(row_ids=None, created_at=None, last_updated_at=None), free + place
            )
            for place, one in enumerate(added)
        ]
        return replace(operation, fragments=(*kept, *new))

    def _check_schema(self) -> None:
        if self._before.manifest.schema != self._target.manifest.schema:
            raise ConflictError("the schema was changed after the branch began")


def _columns(schema: Schema) -> dict[int, tuple[str, str]]:
    def walk(field: Field, path: str) -> Iterator[tuple[int, tuple[str, str]]]:
        name = f"{path}.{field.name}" if path else field.name
        yield field.id, (name, field.logical_type)
        for child in field.children:
            yield from walk(child, name)

    return {id_: found for top in schema.fields for id_, found in walk(top, "")}


def _check_entries(operation: UpdateConfig, before: Manifest, target: Manifest) -> None:
    """Refuse to set entries that were set to something else meanwhile."""
    maps = (
        ("setting", operation.config, before.config, target.config),
        ("entry", operation.table_metadata, before.table_metadata, target.table_metadata),
        (
            "entry of the schema",
            operation.schema_metadata,
            before.schema.metadata,
            target.schema.metadata,
        ),
    )
    for what, update, old, new in maps:
        if update is not None:
            _check_map(what, update, old or {}, new or {})
    if operation.field_metadata and before.schema != target.schema:
        raise ConflictError("the schema was changed after the branch began")


def _check_map(
    what: str, update: MapUpdate, old: Mapping[str, str], new: Mapping[str, str]
) -> None:
    keys = {*update.entries, *old, *new} if update.replace else set(update.entries)
    changed = sorted(key for key in keys if old.get(key) != new.get(key))
    if changed:
        raise ConflictError(f"the {what} {changed[0]!r} was changed after the branch began")


Ids = npt.NDArray[np.uint64]


class Counterparts:
    """The fragments of a target, found by those of a source."""

    def __init__(self, source: Snapshot, target: Snapshot) -> None:
        self.source = source
        self.target = target
        self._source = {one.id: one for one in source.manifest.fragments}
        self._target = {
            origin_name(file.path): fragment
            for fragment in target.manifest.fragments
            for file in fragment.files
        }

    def of(self, id_: int) -> Fragment:
        """Return the target's fragment for one of the source, with the same values.

        Raises:
            ConflictError: the target has no such fragment, or other values in it.
        """
        mine = self._source[id_]
        names = (origin_name(file.path) for file in mine.files)
        found = {one.id: one for name in names if (one := self._target.get(name)) is not None}
        if len(found) != 1:
            raise ConflictError(
                f"fragment {id_} of the branch is not there any more: its rows were moved or "
                "removed after the branch began"
            )
        (theirs,) = found.values()
        if _values(mine) != _values(theirs):
            raise ConflictError(
                f"values of fragment {id_} were changed after the branch began, which the branch "
                "did not know of"
            )
        return theirs

    def check_complete(self) -> None:
        """Return quietly when both sides have the same fragments.

        Raises:
            ConflictError: the target has rows that the source knows nothing of, or lacks some.
        """
        known = {self.of(id_).id for id_ in self._source}
        others = [one.id for one in self.target.manifest.fragments if one.id not in known]
        if others:
            raise ConflictError(
                f"rows were added after the branch began, in fragment {others[0]}, for which the "
                "branch has no values"
            )

    def taken(self, after: Mapping[int, Fragment | None]) -> dict[int, Offsets]:
        """Return the rows that fragments of the source lost, by the target's fragments.

        ``after`` holds the fragments as they became, ``None`` when nothing was left.

        Raises:
            ConflictError: a row is gone in the target already.
        """
        found = {}
        for id_, fragment in after.items():
            before = self._source[id_]
            gone = _deleted(self.source, before)
            rows = np.arange(before.physical_rows)
            if fragment is not None:
                rows = _deleted(self.source, fragment)
            lost = np.setdiff1d(rows, gone)
            theirs = self.of(id_)
            if np.intersect1d(_deleted(self.target, theirs), lost).size:
                raise ConflictError(
                    f"a row of fragment {id_} was deleted or changed after the branch began, and "
                    "on the branch as well"
                )
            found[theirs.id] = lost
        return found

    def renamed_ids(self, sequence: InlineSequence, origins: list[int]) -> InlineSequence:
        """Return row ids of rows moved from some fragments as the target numbers them."""
        moved = decode_row_ids(sequence.data)
        mine = np.concatenate([_ids(self._source[id_]) for id_ in origins])
        theirs = np.concatenate([_ids(self.of(id_)) for id_ in origins])
        order = np.argsort(mine, kind="stable")
        place = order[np.minimum(np.searchsorted(mine[order], moved), len(mine) - 1)]
        if not np.array_equal(mine[place], moved):
            raise ConflictError("the origin of moved rows on the branch is unknown")
        return InlineSequence(encode_row_ids(theirs[place]))


def _values(fragment: Fragment) -> set[tuple[str, tuple[int, ...]]]:
    """Return what names the values of a fragment, wherever its files are."""
    return {(origin_name(file.path), file.fields) for file in fragment.files}


def _deleted(snapshot: Snapshot, fragment: Fragment) -> Offsets:
    file = fragment.deletion_file
    if file is None:
        return np.empty(0, np.int64)
    return load_deletions(snapshot, fragment, file, fragment.physical_rows).offsets


def _ids(fragment: Fragment) -> Ids:
    if not isinstance(fragment.row_ids, InlineSequence):
        raise UnsupportedError(
            f"the row ids of fragment {fragment.id} are kept outside the manifest, where this "
            "release does not look for them"
        )
    return decode_row_ids(fragment.row_ids.data, fragment.physical_rows)
