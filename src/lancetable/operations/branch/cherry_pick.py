"""Cherry-pick: single versions of a branch, replayed on the history it began with.

For each version, oldest first:
1. Read what it did, and the version of the branch before it.
2. Translate that to the latest version of the history: fragments are recognised by their files.
   What changed there since the branch began must not be what the version builds on.
3. Give the new files a second name below the history's root, or copy them there.
4. Commit. When others write meanwhile, translate again.
Each becomes a version of its own that notes where it came from, so that none is picked twice. When
one cannot be replayed, those before it stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lancetable.commit import refs
from lancetable.commit.apply.derived_fields import find_fragments
from lancetable.commit.committer import commit
from lancetable.commit.conflicts import Conflicting, Facts, judge
from lancetable.commit.history.history import transactions_after
from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions
from lancetable.commit.refs import BranchInfo
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import (
    CreateIndex,
    Merge,
    Project,
    ReserveFragments,
    Transaction,
    UpdateConfig,
    data_files,
)
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, InputError, VersionNotFoundError
from lancetable.operations.branch.copy_files import bring
from lancetable.operations.branch.fast_forward import PUBLISHED
from lancetable.operations.branch.replay import Replay, Replayed
from lancetable.operations.results import ChangeOptions, Done, VersionResult
from lancetable.operations.retry import repeat
from lancetable.operations.run.runner import THREADS, Runner, own_files
from lancetable.store.copy import share_object

_JUDGED_BY_STATE = (Merge, Project, UpdateConfig)
"""Operations that are rebuilt from the latest version when they are translated."""
PICKED = "lancetable.picked"
"""Property that names the branch and version that a version replays."""


class Pick(NamedTuple):
    """A version of a branch and the version it became; ``None`` when there was nothing to do."""

    branch_version: int
    version: int | None


@dataclass(frozen=True, slots=True)
class PickResult(VersionResult):
    """Result of a cherry-pick; ``version`` is the latest one afterwards."""

    branch: str
    picks: tuple[Pick, ...] = ()


def cherry_pick(
    target: Snapshot,
    name: str,
    versions: Sequence[int] | None = None,
    *,
    options: CommitOptions = DEFAULT_COMMIT,
    runner: Runner = THREADS,
) -> Done[PickResult]:
    """Replay versions of a branch, all of them unless some are named, in ascending order.

    Raises:
        RefNotFoundError: there is no such branch.
        VersionNotFoundError: the branch has no such version, or it was cleaned away.
        ConflictError: the history changed what a version builds on.
        InputError: a version was picked before, or is of a kind that cannot be replayed.
    """
    location = target.location
    info = refs.read_branch(location.open(), name)
    if info.parent_branch != target.branch:
        raise InputError(
            f"branch {name!r} began with a version of {info.parent_branch or refs.MAIN!r}; open "
            "that one to bring it there"
        )
    tip = load(location, branch=name)
    wanted = _wanted(info, tip.version, versions)
    latest = load(location, branch=target.branch)
    picks: list[Pick] = []
    for version in wanted:
        after = load(location, version=version, branch=name)
        try:
            made = _picked(latest, info, after, ChangeOptions(commit=options, runner=runner))
        except (ConflictError, InputError) as cause:
            if not picks:
                raise
            done = ", ".join(f"{one.branch_version} as {one.version}" for one in picks)
            note = f"{cause}; picked before that: {done}"
            raise (ConflictError if isinstance(cause, ConflictError) else InputError)(
                note
            ) from cause
        if made is None and versions is not None:
            raise InputError(
                f"version {version} of branch {name!r} changed indices or reserved ids only, which "
                "means nothing elsewhere; build indices where they are used"
            )
        picks.append(Pick(version, None if made is None else made.version))
        latest = made or latest
    is_new = any(one.version is not None for one in picks)
    result = PickResult(latest.version, name, tuple(picks), is_new_version=is_new)
    return Done(latest, result)


def _wanted(info: BranchInfo, newest: int, versions: Sequence[int] | None) -> list[int]:
    own = range(info.parent_version + 1, newest + 1)
    if versions is None:
        return list(own)
    for version in versions:
        if version not in own:
            created = f"it created {own[0]} to {own[-1]}" if own else "it created none yet"
            raise VersionNotFoundError(
                f"branch {info.name!r} did not create version {version}; {created}"
            )
    return sorted(set(versions))


def _picked(
    latest: Snapshot, info: BranchInfo, after: Snapshot, options: ChangeOptions
) -> Snapshot | None:
    """Return the version that a version of the branch became, ``None`` when it did nothing."""
    transaction = after.transaction()
    if transaction is None:
        raise InputError(f"version {after.version} of {info.name!r} left no record of what it did")
    if isinstance(transaction.operation, CreateIndex | ReserveFragments):
        return None
    before = load(after.location, version=after.version - 1, branch=info.name)

    def attempt(now: Snapshot) -> Snapshot:
        _check_past(now, info, transaction, after.version)
        replay = Replay(before, after, now, options)
        with own_files(now.store) as files:
            replayed = replay.translated(transaction.operation)
            files.extend(replayed.written)
            _check_past(now, info, transaction, after.version, replayed)
            files.extend(bring(replay.relocation.journeys, now.store, share_object, options.runner))
            noted = _noted(options.commit, transaction, info, after.version)
            try:
                # Only what has been looked through may come before it: another one may be picking
                # the same version.
                return commit(now, replayed.operation, replace(noted, strict=True)).snapshot
            except ConflictError as cause:
                again = not options.commit.strict
                raise ConflictError(str(cause), retryable=again) from cause

    return repeat(latest, attempt, options.commit)


def _noted(
    options: CommitOptions, transaction: Transaction, info: BranchInfo, version: int
) -> CommitOptions:
    """Return how to commit: the notes of the original, and where it came from."""
    origin = {PICKED: f"{info.name}@{version} {transaction.uuid}"}
    own = {**transaction.properties, **options.properties, **origin}
    return replace(options, properties=own)


def _check_past(
    now: Snapshot,
    info: BranchInfo,
    transaction: Transaction,
    version: int,
    replayed: Replayed | None = None,
) -> None:
    """Look through what others did since the branch began.

    Raises:
        InputError: the version was brought here before.
        ConflictError: others changed what it builds on.
    """
    mine = None
    if replayed is not None and not isinstance(replayed.operation, _JUDGED_BY_STATE):
        mine = replace(transaction, operation=replayed.operation)
    for number, there in transactions_after(now, info.parent_version):
        if there is not None and _brought(there, info, transaction, version):
            raise InputError(
                f"version {version} of branch {info.name!r} was brought here before, as version "
                f"{number}"
            )
        if mine is None or (there is not None and _is_own(there, info)):
            continue
        verdict = judge(mine, there, _facts(now, replayed))
        if isinstance(verdict, Conflicting):
            raise ConflictError(
                f"{verdict.reason} in version {number}, which version {version} of branch "
                f"{info.name!r} does not include; repeat the change on this table instead"
            )


def _facts(now: Snapshot, replayed: Replayed | None) -> Facts:
    if replayed is None or replayed.affected is None:
        return Facts()
    found = find_fragments(now.manifest, replayed.operation.touched.updated)
    return Facts(replayed.affected, {id_: data_files(one) for id_, one in found.items()})


def _is_own(there: Transaction, info: BranchInfo) -> bool:
    return there.properties.get(PICKED, "").startswith(f"{info.name}@")


def _brought(there: Transaction, info: BranchInfo, transaction: Transaction, version: int) -> bool:
    if there.properties.get(PICKED, "").endswith(f" {transaction.uuid}"):
        return True
    name, _, span = there.properties.get(PUBLISHED, "").rpartition("@")
    first, _, last = span.partition("-")
    numbers = first.isdigit() and last.isdigit() and int(first) <= version <= int(last)
    return bool(name == info.name and numbers)
