"""Commit an operation: judge it, apply it, and claim the name of the next version.

Each round looks for versions made meanwhile, oldest first. One that has the uuid of this
transaction is its result, whatever the store answered to the claim. A version that conflicts ends
the loop; otherwise the operation is applied to the newest version and the name after it is claimed.
A writer that loses that race starts another round, after a random pause whose bound grows.

From the moment a claim is sent until it is proven lost, no error counts as a failure: files stay,
and the outcome is reported as unknown.
"""

import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from lancetable.commit.apply.derived_fields import find_fragments
from lancetable.commit.apply.manifest import State
from lancetable.commit.codec.encode import encode_transaction
from lancetable.commit.conflicts import Compatible, Conflicting, Facts, Rebased, judge
from lancetable.commit.loop.drafting import Needs, applied, before_first, index_section
from lancetable.commit.loop.newer_versions import (
    Tip,
    check_base,
    load_all,
    load_next,
    newer_versions,
)
from lancetable.commit.loop.rebase import Rebase, check_same_fragments, merge_deletions
from lancetable.commit.options import (
    DEFAULT_COMMIT,
    CommitOptions,
    CommitResult,
    CreateMode,
    Rounds,
)
from lancetable.commit.outcome import Creation, unknown_outcome
from lancetable.commit.publish import (
    discard,
    is_made_by,
    refresh_hint,
    try_claim,
    write_transaction,
)
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.commit.transaction import (
    Operation,
    Overwrite,
    Restore,
    Rewrite,
    Transaction,
    data_files,
)
from lancetable.commit.versions import load
from lancetable.errors import (
    ConflictError,
    ContentionError,
    ExistsError,
    InputError,
    StoreError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from lancetable.format.manifest.codec import EncodedManifest, encode_manifest
from lancetable.format.manifest.flags import check_writable
from lancetable.format.manifest.names import (
    DETACHED_BIT,
    Scheme,
    manifest_path,
    transaction_name,
    transaction_path,
)
from lancetable.store import TableLocation, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lancetable.commit.loop.rebase import Rows
    from lancetable.commit.loop.rebase_rewrite import Moves

__all__ = ["CommitOptions", "CommitResult", "CreateMode", "commit", "create"]


def commit(  # noqa: PLR0913 - each has a default
    snapshot: Snapshot,
    operation: Operation,
    options: CommitOptions = DEFAULT_COMMIT,
    *,
    affected: "Mapping[int, Rows] | None" = None,
    moves: "Moves | None" = None,
    storage_version: str | None = None,
    enable_row_ids: bool = False,
) -> CommitResult:
    """Make an operation the next version of the table that a snapshot belongs to.

    ``affected`` names, by fragment, the rows that a Delete or an Update takes away; with it two
    writers may delete different rows of one fragment. ``moves`` records where the rows of a Rewrite
    went; with it rows that others delete meanwhile are deleted there. ``storage_version`` is the
    version of data files for an Overwrite without rows. ``enable_row_ids`` is for a Merge that
    brings stable ids for all rows of a table that had none.

    Raises:
        ConflictError: another writer changed what the operation builds on.
        ContentionError: other writers were faster in every round.
        UnknownOutcomeError: the store failed, and the version may or may not exist.
        InputError: the operation does not fit the table.
        UnsupportedError: the table needs a writer feature that this release does not know.
    """
    check_writable(snapshot.manifest.reader_flags, snapshot.manifest.writer_flags)
    attempt = _Commit(
        snapshot, operation, options, affected, moves, storage_version, enable_row_ids
    )
    return attempt.run()


def create(
    location: TableLocation,
    operation: Overwrite,
    *,
    options: CommitOptions = DEFAULT_COMMIT,
    stable_row_ids: bool = False,
    storage_version: str | None = None,
    mode: CreateMode = CreateMode.ERROR,
) -> CommitResult:
    """Make the first version of a table; ``mode`` decides what happens when one exists.

    Raises:
        ExistsError: a table exists, and ``mode`` does not allow for it.
        CommitError: as :func:`commit`.
    """
    if options.detached:
        raise InputError("the first version of a table cannot be detached")
    try:
        existing = load(location)
    except TableNotFoundError:
        before = before_first(location, storage_version, stable_row_ids=stable_row_ids)
        attempt = _Commit(before, operation, options, storage_version=storage_version)
        try:
            return attempt.run()
        except ContentionError:
            existing = load(location)
    if mode is CreateMode.ERROR:
        root = existing.store.root
        raise ExistsError(f"{root}: there is a table already; append to it or overwrite it")
    if mode is CreateMode.IGNORE:
        return CommitResult(existing, 0)
    return commit(existing, operation, options, storage_version=storage_version)


class _Draft(NamedTuple):
    """A version that is ready to be claimed."""

    path: str
    encoded: EncodedManifest
    rebase: Rebase


@dataclass(slots=True)
class _Commit:
    """One operation that is being committed."""

    base: Snapshot
    operation: Operation
    options: CommitOptions
    affected: "Mapping[int, Rows] | None" = None
    moves: "Moves | None" = None
    storage_version: str | None = None
    enable_row_ids: bool = False
    records: dict[str, bytes] = field(default_factory=dict)
    """Transaction files that were written, by path; an unchanged one serves several attempts."""
    facts: Facts | None = None
    """Facts to judge versions of others by; computed when there is one."""
    claimed: _Draft | None = None
    """A version that was claimed, until the claim is proven lost."""

    def run(self) -> CommitResult:
        try:
            result = self._loop()
        except UnknownOutcomeError:
            raise
        except Exception as cause:
            # Not for interrupts: they leave the outcome open, so all files stay.
            if self.claimed is not None:
                raise unknown_outcome(self.base.store, self.claimed.path, cause) from cause
            discard(self.base.store, self.records)
            raise
        used = result.snapshot.manifest.transaction_file
        if unused := [path for path in self.records if not path.endswith(used)]:
            discard(self.base.store, unused)
        return result

    def _loop(self) -> CommitResult:
        mine = Transaction(self.base.version, str(uuid4()), self.operation, self.options.recorded())
        rounds = Rounds(self.base.store.root, self.options)
        tip = Tip(self.base)
        merge: frozenset[int] = frozenset()
        newer: Iterable[Tip] = load_all(tip, self._first_look(mine))
        while True:
            for tip in newer:
                if is_made_by(tip.snapshot.manifest, mine.uuid):
                    # The claim succeeded, whatever the store answered.
                    return CommitResult(self._landed(tip.snapshot), rounds.lost)
                self._give_up_claim()
                mine, both = self._judged(mine, tip)
                merge |= both
            manifest = tip.snapshot.manifest
            check_writable(manifest.reader_flags, manifest.writer_flags)
            draft = self.claimed or self._draft(mine, tip, merge)
            creation = self._claim(draft, mine.uuid)
            if creation.is_ours:
                made = tip.snapshot._replace(
                    manifest=draft.encoded.manifest, manifest_path=draft.path
                )
                return CommitResult(self._landed(made), rounds.lost + 1)
            rounds.lose(draft.path, is_missing=creation.is_ours is None)
            if rounds.is_over() or (not self.base.version and creation.is_ours is False):
                break
            rounds.pause()
            newer = self._newer_tips(tip, creation.content)
        raise ContentionError(
            f"{self.base.store.root}: other writers made the next version first in "
            f"{rounds.describe()}; nothing was changed, try again later"
        )

    def _claim(self, draft: _Draft, uuid: str) -> Creation:
        """Send a claim; ``claimed`` holds it as long as its outcome is open."""
        is_first, self.claimed = self.claimed is None, draft
        store = self.base.store
        try:
            creation = try_claim(store, draft.path, draft.encoded.content, uuid)
        except StoreError:
            # Refused; but an earlier claim of the same version may have succeeded.
            if is_first:
                self._give_up_claim()
            raise
        if creation.is_ours is False:
            self._give_up_claim()
        return creation

    def _give_up_claim(self) -> None:
        """Remove what was written for a version that another writer made."""
        if self.claimed is not None:
            discard(self.base.store, self.claimed.rebase.written)
            self.claimed = None

    def _landed(self, made: Snapshot) -> Snapshot:
        """Write the hint, remove superseded files, and return the version that was made."""
        if not self.options.detached:
            refresh_hint(made.store, made.version)
        if self.claimed is not None and self.claimed.rebase.superseded:
            discard(made.store, self.claimed.rebase.superseded)
        return made

    def _first_look(self, mine: Transaction) -> list[int]:
        """Look for newer versions; on stores with latency, write the transaction meanwhile.

        It is written again if it has to change.
        """

        def record() -> list[int]:
            name = transaction_name(mine.read_version, mine.uuid)
            self._record(transaction_path(name), encode_transaction(mine))
            return []

        def look() -> list[int]:
            if self._is_alone():
                return []
            found = newer_versions(self.base)
            check_base(self.base)
            return found

        if self.base.store.width == 1:
            return look()
        found: list[list[int]] = spread(lambda step: step(), (look, record), 2)
        return found[0]

    def _is_alone(self) -> bool:
        """Say whether no other version matters: this one is the first, or outside the history."""
        return not self.base.version or self.options.detached

    def _newer_tips(self, tip: Tip, winner: bytes | None) -> "Iterator[Tip]":
        """Yield the versions after one; ``winner`` is the manifest of the next one, if known."""
        if self._is_alone():
            return
        if winner is not None:
            tip = load_next(tip.snapshot, tip.snapshot.version + 1, winner)
            yield tip
        yield from load_all(tip, newer_versions(tip.snapshot))

    def _judged(self, mine: Transaction, tip: Tip) -> tuple[Transaction, frozenset[int]]:
        """Return the transaction rebased on a version, and the fragments to merge."""
        version = tip.snapshot.version
        if self.options.strict:
            raise ConflictError(
                f"version {version} was made by another writer after version {self.base.version} "
                "was read, and the commit is strict; open the table again"
            )
        verdict = judge(mine, tip.transaction(), self._facts())
        match verdict:
            case Compatible(merge):
                return mine, merge
            case Rebased(operation):
                return replace(mine, operation=operation), frozenset()
            case Conflicting(reason, retryable):
                raise ConflictError(
                    f"{reason} in version {version}, after version {mine.read_version} was read "
                    f"for {mine.operation_name}; "
                    + (
                        "do the work again"
                        if retryable
                        else "open the table again, and repeat the change if it still applies"
                    ),
                    retryable=retryable,
                )

    def _facts(self) -> Facts:
        if self.facts is None:
            self.facts = self._found_facts()
        return self.facts

    def _found_facts(self) -> Facts:
        moves = self.moves
        if self.affected is None and moves is None:
            return Facts()
        read = find_fragments(self.base.manifest, self.operation.touched.all)
        files = {id_: data_files(one) for id_, one in read.items()}
        keeps_indices = moves is not None and moves.keeps_indices
        return Facts(self.affected, files, moves is not None, keeps_indices)

    def _draft(self, mine: Transaction, tip: Tip, merge: frozenset[int]) -> _Draft:
        """Return the version that follows the newest one, with all files that it needs written."""
        check_same_fragments(self.base.manifest, tip.snapshot.manifest, mine.operation)
        rebase = self._rebased(mine.operation, tip.snapshot, merge)
        if rebase.operation is not mine.operation:
            mine = replace(mine, operation=rebase.operation)
        if merge:
            mine = replace(mine, read_version=tip.snapshot.version)
        try:
            return _Draft(*self._prepared(mine, tip), rebase)
        except BaseException:
            discard(tip.snapshot.store, rebase.written)
            raise

    def _rebased(self, operation: Operation, tip: Snapshot, merge: frozenset[int]) -> Rebase:
        if self.moves is not None and isinstance(operation, Rewrite):
            from lancetable.commit.loop.rebase_rewrite import relocate  # noqa: PLC0415 - seldom needed

            return relocate(tip, self.base, operation, merge, self.moves)
        if not merge:
            return Rebase(operation)
        return merge_deletions(tip, operation, merge, self.affected or {})

    def _prepared(self, mine: Transaction, tip: Tip) -> tuple[str, EncodedManifest]:
        """Write the transaction file, and return name and content of the next manifest."""
        snapshot = tip.snapshot
        name = transaction_name(mine.read_version, mine.uuid)
        state = self._applied(mine, tip, name)
        message = encode_transaction(mine)
        manifest, scheme = state.manifest, Scheme.DETACHED
        if self.options.detached:
            manifest = manifest._replace(version=DETACHED_BIT | secrets.randbits(63))
        else:
            scheme = snapshot.scheme
        path = manifest_path(manifest.version, scheme)
        encoded = encode_manifest(
            manifest,
            shown(snapshot.store, path),
            index_section=index_section(tip, state),
            transaction=message,
        )
        self._record(transaction_path(name), message)
        return path, encoded

    def _record(self, path: str, message: bytes) -> None:
        if self.records.get(path) == message:
            return
        store = self.base.store
        if path in self.records:
            store.put(path, message)
        else:
            write_transaction(store, path, message)
        self.records[path] = message

    def _applied(self, mine: Transaction, tip: Tip, name: str) -> State:
        operation = mine.operation
        restored = self._restored(operation) if isinstance(operation, Restore) else None
        needs = Needs(restored, self.storage_version, self.enable_row_ids)
        try:
            return applied(tip.snapshot, operation, name, needs)
        except InputError as cause:
            if tip.snapshot.version == self.base.version:
                raise
            raise ConflictError(
                f"after version {tip.snapshot.version} of another writer, {cause}", retryable=True
            ) from cause

    def _restored(self, operation: Restore) -> State:
        base = self.base
        old = load(base.location, version=operation.version, branch=base.branch)
        return State(old.manifest, tuple(old.indices()))
