"""Fast-forward: everything a branch did becomes one version of the history it began with.

1. The parent must still be at the version that the branch began with; if it moved on, single
   versions can be picked instead.
2. The latest version of the branch is compared with that version: fragments that are new, changed
   or gone, and the schema.
3. Files that the branch wrote get a second name below the parent's root, or are copied there, so
   that the branch can be deleted afterwards.
4. The difference is committed as one version, so that readers see all of it or nothing.
Rows keep their ids. The versions recorded with them become the new version, since the numbers of
the branch mean nothing outside of it. Indices that were built on the branch stay there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lancetable.commit import refs
from lancetable.commit.apply.derived_fields import have_same_ids, next_fragment_id
from lancetable.commit.committer import commit
from lancetable.commit.history.effects import NOTHING, Effect, effect_of
from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import (
    Append,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    Update,
)
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, InputError, UnsupportedError
from lancetable.format.manifest import Fragment, InlineSequence, Manifest, SequenceSource
from lancetable.format.manifest.rowids import decode_versions, encode_versions
from lancetable.format.schema.model import Schema
from lancetable.operations.branch.copy_files import Relocation, bring
from lancetable.operations.results import Done, VersionResult
from lancetable.operations.rows.move_rows import SPILL
from lancetable.operations.run.runner import THREADS, Runner, own_files
from lancetable.store.copy import share_object

PUBLISHED = "lancetable.published"
"""Property that names the branch and versions that a version brought in."""


@dataclass(frozen=True, slots=True)
class PublishResult(VersionResult):
    """Result of a fast-forward; without anything to do there is no new version."""

    branch: str
    branch_versions: tuple[int, ...] = ()
    """The versions of the branch that were brought in."""
    operation: str | None = None
    effect: Effect = NOTHING
    files: int = 0
    """How many files of the branch became the parent's."""
    indices_left: tuple[str, ...] = ()
    """Indices that exist on the branch only."""


def fast_forward(
    target: Snapshot,
    name: str,
    *,
    options: CommitOptions = DEFAULT_COMMIT,
    runner: Runner = THREADS,
) -> Done[PublishResult]:
    """Bring all of a branch to the history that a snapshot belongs to.

    Raises:
        RefNotFoundError: there is no such branch.
        ConflictError: the history moved on since the branch began.
        InputError: the branch began elsewhere, or changed what cannot be brought along.
    """
    location = target.location
    info = refs.read_branch(location.open(), name)
    if info.parent_branch != target.branch:
        raise InputError(
            f"branch {name!r} was created from {info.parent_branch or refs.MAIN!r}; open the table "
            "on that branch to fast-forward it"
        )
    latest = load(location, branch=target.branch)
    if latest.version != info.parent_version:
        raise ConflictError(
            f"branch {name!r} was created at version {info.parent_version}, and the latest version "
            f"is {latest.version}; cherry-pick the versions of the branch instead"
        )
    tip = load(location, branch=name)
    versions = tuple(range(info.parent_version + 1, tip.version + 1))
    if not versions:
        return Done(latest, PublishResult(latest.version, name, is_new_version=False))
    _check_settings(latest.manifest, tip.manifest, name)
    if not have_same_ids(latest.manifest, tip.manifest):
        raise UnsupportedError(
            f"fragments of the table or of branch {name!r} share ids and cannot be matched; "
            "run repair_table to give each fragment its own id"
        )
    relocation = Relocation(tip, latest)
    operation = _difference(latest.manifest, tip.manifest, relocation)
    noted = {**options.properties, PUBLISHED: f"{name}@{versions[0]}-{versions[-1]}"}
    with own_files(latest.store) as files:
        files.extend(bring(relocation.journeys, latest.store, share_object, runner))
        made = commit(latest, operation, replace(options, properties=noted, strict=True))
    known = {segment.uuid for segment in latest.indices()}
    result = PublishResult(
        made.snapshot.version,
        name,
        versions,
        operation.name,
        effect_of(operation, lambda: latest.manifest),
        len(files),
        tuple(sorted({one.name for one in tip.indices() if one.uuid not in known})),
    )
    return Done(made.snapshot, result)


def _check_settings(old: Manifest, new: Manifest, name: str) -> None:
    """Refuse what no operation could bring along together with rows."""
    settings = {
        "settings": (old.config or {}) != (new.config or {}),
        "metadata": (old.table_metadata or {}) != (new.table_metadata or {}),
        "metadata of the schema": old.schema.metadata != new.schema.metadata,
    }
    changed = [what for what, differs in settings.items() if differs]
    if changed:
        raise InputError(
            f"branch {name!r} changed the {' and the '.join(changed)} of the table, which cannot "
            "be published with its rows in one version; cherry-pick its versions instead"
        )


def _difference(old: Manifest, new: Manifest, relocation: Relocation) -> Operation:
    """Return the operation that makes one version into the other, in terms of the first."""
    before = {one.id: one for one in old.fragments}
    version = old.version + 1
    unchanged: list[Fragment] = []
    changed: list[Fragment] = []
    added: list[Fragment] = []
    free = next_fragment_id(old)
    for fragment in new.fragments:
        was = before.get(fragment.id)
        if was is None:
            _check_ids(fragment)
            added.append(_restamped(relocation.fragment(fragment, free + len(added)), version))
            continue
        here = relocation.fragment(fragment, fragment.id)
        if here == was:
            unchanged.append(was)
        else:
            changed.append(_restamped(here, version))
    kept = {one.id for one in (*unchanged, *changed)}
    removed = tuple(id_ for id_ in before if id_ not in kept)
    if old.schema != new.schema:
        return _with_schema(old, new.schema, [*unchanged, *changed], added, removed)
    fields = _rewritten(before, changed)
    if not changed and not removed:
        return Append(added)
    if not added and not fields and not _touched(before, changed):
        return Delete(changed, removed)
    return Update(removed, changed, added, tuple(sorted(fields)))


def _check_ids(fragment: Fragment) -> None:
    """Refuse row ids outside the manifest, which cannot be compared without reading them."""
    if not isinstance(fragment.row_ids, InlineSequence | None):
        raise UnsupportedError(
            f"fragment {fragment.id} of the branch keeps its row ids outside the manifest, where "
            f"they cannot be brought along; remove the setting {SPILL!r} on the branch, and "
            "compact it"
        )


def _with_schema(
    old: Manifest,
    schema: Schema,
    kept: list[Fragment],
    added: list[Fragment],
    removed: Sequence[int],
) -> Operation:
    if not kept and removed:
        return Overwrite(added, schema)
    preserves = preserves_nullability(old.schema, schema)
    if not added and not removed and kept == list(old.fragments):
        return Project(schema, preserves)
    return Merge((*kept, *added), schema, preserves)


def preserves_nullability(old: Schema, new: Schema) -> bool:
    """Say whether every column may still hold the nulls that it may hold now."""
    allowed = {field.id: field.nullable for field in new.walk()}
    return all(allowed.get(field.id, True) or not field.nullable for field in old.walk()) and all(
        field.nullable for field in new.walk() if field.id not in {one.id for one in old.walk()}
    )


def _rewritten(before: dict[int, Fragment], changed: Sequence[Fragment]) -> set[int]:
    """Return the fields whose values are in other files now."""
    fields: set[int] = set()
    for fragment in changed:
        was, now = _owners(before[fragment.id]), _owners(fragment)
        fields |= {id_ for id_ in was.keys() | now.keys() if was.get(id_) != now.get(id_)}
    return fields


def _owners(fragment: Fragment) -> dict[int, str]:
    return {id_: file.path for file in fragment.files for id_ in file.fields if id_ >= 0}


def _touched(before: dict[int, Fragment], changed: Sequence[Fragment]) -> bool:
    """Say whether the record of who changed rows is another one."""
    return any(one.last_updated_at != before[one.id].last_updated_at for one in changed)


def _restamped(fragment: Fragment, version: int) -> Fragment:
    """Return a fragment whose rows were made or changed on the branch by this version."""
    return fragment._replace(
        created_at=_capped(fragment.created_at, fragment, version),
        last_updated_at=_capped(fragment.last_updated_at, fragment, version),
    )


def _capped(
    stored: SequenceSource | None, fragment: Fragment, version: int
) -> SequenceSource | None:
    if stored is None:
        return None
    if not isinstance(stored, InlineSequence):
        raise UnsupportedError(
            f"the versions of the rows of fragment {fragment.id} are kept outside the manifest, "
            "where this release does not change them"
        )
    versions = decode_versions(stored.data, fragment.physical_rows)
    if versions.size == 0 or int(versions.max()) <= version:
        return stored
    return InlineSequence(encode_versions(np.minimum(versions, np.uint64(version))))
