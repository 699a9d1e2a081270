"""How does an operation become a version: the loop that judges, applies, and claims the next name.

Each round looks for versions made meanwhile, oldest first. A version that conflicts ends the loop;
otherwise the operation is applied to the newest one and the name after it is claimed. Whoever loses
that race goes round again, after a pause that is random and grows.
"""

import random
import secrets
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from lancetable.commit.apply import Context, State, apply
from lancetable.commit.catchup import Tip, load_next, newer_versions, scheme_of
from lancetable.commit.conflicts import Compatible, Conflicting, Facts, Rebased, judge
from lancetable.commit.find import find_fragments
from lancetable.commit.library import this_writer
from lancetable.commit.options import CommitOptions, CommitResult, CreateMode
from lancetable.commit.publish import claim, discard, refresh_hint, write_transaction
from lancetable.commit.rebase import Rebase, merge_deletions
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.commit.touched import data_files, touched
from lancetable.commit.transaction import Operation, Overwrite, Restore, Rewrite, Transaction
from lancetable.commit.versions import load
from lancetable.commit.writing.codec import encode_transaction
from lancetable.errors import (
    ConflictError,
    ContentionError,
    ExistsError,
    InputError,
    StoreError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.codec import EncodedManifest, encode_manifest
from lancetable.format.manifest.envelope import section
from lancetable.format.manifest.flags import Feature, check_writable
from lancetable.format.manifest.indices.codec import encode_index_section
from lancetable.format.manifest.names import (
    DETACHED_BIT,
    Scheme,
    manifest_path,
    transaction_name,
    transaction_path,
)
from lancetable.format.schema.model import Schema
from lancetable.store import TableLocation, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lancetable.commit.moves import Moves
    from lancetable.commit.rebase import Rows
    from lancetable.format.manifest import IndexSegment
    from lancetable.format.manifest.reuse import FragmentReuse

__all__ = ["CommitOptions", "CommitResult", "CreateMode", "commit", "create"]

FIRST_STORAGE_VERSION = "2.1"
_DEFAULT = CommitOptions()
_LONGEST_PAUSE = 0.25


def commit(  # noqa: PLR0913 - each has a default
    snapshot: Snapshot,
    operation: Operation,
    options: CommitOptions = _DEFAULT,
    *,
    affected: "Mapping[int, Rows] | None" = None,
    moves: "Moves | None" = None,
    storage_version: str | None = None,
    enable_row_ids: bool = False,
) -> CommitResult:
    """Make an operation the next version of the table that a snapshot belongs to.

    ``affected`` names, by fragment, the rows that a Delete or an Update takes away; with it two
    writers may delete different rows of one fragment. ``moves`` tells where the rows of a Rewrite
    went; with it rows that others delete meanwhile are deleted there. ``storage_version`` is the
    version of data files that an Overwrite without rows asks for. ``enable_row_ids`` says that a
    Merge brings stable ids for all rows of a table that had none.

    Raises:
        ConflictError: another writer changed what the operation builds on.
        ContentionError: other writers were faster in every round.
        UnknownOutcomeError: the store failed, and the version may or may not be there.
        InputError: the operation does not fit the table.
        UnsupportedError: the table needs something of its writers that is not known.
    """
    check_writable(snapshot.manifest.writer_flags)
    attempt = _Commit(
        snapshot, operation, options, affected, moves, storage_version, enable_row_ids
    )
    return attempt.run()


def create(
    location: TableLocation,
    operation: Overwrite,
    *,
    options: CommitOptions = _DEFAULT,
    stable_row_ids: bool = False,
    storage_version: str | None = None,
    mode: CreateMode = CreateMode.ERROR,
) -> CommitResult:
    """Make the first version of a table; ``mode`` says what to do when there is one.

    Raises:
        ExistsError: there is a table, and ``mode`` does not allow for it.
        CommitError: as :func:`commit`.
    """
    if options.detached:
        raise InputError("the first version of a table cannot be detached; there is no history yet")
    try:
        existing = load(location)
    except TableNotFoundError:
        flags = int(Feature.STABLE_ROW_IDS) if stable_row_ids else 0
        nothing = Manifest(
            0,
            Schema(()),
            (),
            reader_flags=flags,
            writer_flags=flags,
            config={},
            table_metadata={},
            data_format=storage_version or FIRST_STORAGE_VERSION,
        )
        path = manifest_path(0, Scheme.V2)
        before = Snapshot(location, location.open(), nothing, path)
        attempt = _Commit(
            before, operation, replace(options, attempts=1), storage_version=storage_version
        )
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


@dataclass(slots=True)
class _Commit:
    """One operation on its way to become a version."""

    base: Snapshot
    operation: Operation
    options: CommitOptions
    affected: "Mapping[int, Rows] | None" = None
    moves: "Moves | None" = None
    storage_version: str | None = None
    enable_row_ids: bool = False
    records: dict[str, bytes] = field(default_factory=dict)
    """Transaction files that were written; one serves many attempts if it stays the same."""

    def run(self) -> CommitResult:
        try:
            result = self._loop()
        except UnknownOutcomeError:
            raise
        except Exception:
            # An interrupt is no such exception: what it leaves open, files included, stays.
            discard(self.base.store, self.records)
            raise
        used = transaction_path(result.snapshot.manifest.transaction_file)
        discard(self.base.store, [path for path in self.records if path != used])
        return result

    def _loop(self) -> CommitResult:
        mine = Transaction(self.base.version, str(uuid4()), self.operation, self.options.recorded())
        started = time.monotonic()
        tip = Tip(self.base)
        merge: frozenset[int] = frozenset()
        slot = 0.0
        for attempt in range(1, max(self.options.attempts, 1) + 1):
            newer = self._first_look(mine) if attempt == 1 else self._newer(tip.snapshot)
            facts = self._facts() if newer else Facts()
            for version in newer:
                tip = load_next(tip.snapshot, version)
                mine, both = _judged(mine, tip, facts)
                merge |= both
            check_writable(tip.snapshot.manifest.writer_flags)
            made = self._attempt(mine, tip, merge)
            if made is not None:
                return CommitResult(made, attempt)
            slot = slot or 1.1 * (time.monotonic() - started)
            if time.monotonic() - started > self.options.deadline_seconds:
                break
            if attempt > 1:
                _pause(min(slot * 2 ** min(attempt - 2, 10), _LONGEST_PAUSE))
        raise ContentionError(
            f"{self.base.store.root}: other writers made the next version first in {attempt} "
            "rounds; nothing was changed, try again later"
        )

    def _first_look(self, mine: Transaction) -> list[int]:
        """Look for newer versions; where that takes a while, write the transaction meanwhile.

        It nearly always stays as it is. If not, it is written again.
        """

        def record() -> list[int]:
            name = transaction_name(mine.read_version, mine.uuid)
            self._record(transaction_path(name), encode_transaction(mine))
            return []

        steps: list[Callable[[], list[int]]] = [partial(self._newer, self.base)]
        if self.base.store.width > 1:
            steps.append(record)
        found: list[list[int]] = spread(lambda step: step(), steps, len(steps))
        return found[0]

    def _newer(self, tip: Snapshot) -> list[int]:
        """Return the versions that others made after one."""
        if not self.base.version or self.options.detached:
            return []
        found = newer_versions(tip)
        if found and self.options.strict:
            raise ConflictError(
                f"version {found[0]} was made by another writer after version {self.base.version} "
                "was read, and the commit was to follow that one only; open the table again"
            )
        return found

    def _facts(self) -> Facts:
        moves = self.moves
        if self.affected is None and moves is None:
            return Facts()
        read = find_fragments(self.base.manifest, touched(self.operation).all)
        files = {id_: data_files(one) for id_, one in read.items()}
        keeps_indices = moves is not None and moves.keeps_indices
        return Facts(self.affected, files, moves is not None, keeps_indices)

    def _attempt(self, mine: Transaction, tip: Tip, merge: frozenset[int]) -> Snapshot | None:
        """Return the new version, or ``None`` when another writer was faster."""
        store = tip.snapshot.store
        rebase = self._rebased(mine.operation, tip.snapshot, merge)
        if rebase.operation is not mine.operation:
            mine = replace(mine, operation=rebase.operation)
        if merge:
            mine = replace(mine, read_version=tip.snapshot.version)
        try:
            path, encoded = self._prepared(mine, tip)
        except BaseException:
            discard(store, rebase.written)
            raise
        try:
            is_ours = claim(store, path, encoded.content, mine.uuid)
        except StoreError:
            discard(store, rebase.written)
            raise
        if not is_ours:
            discard(store, rebase.written)
            return None
        if not self.options.detached:
            refresh_hint(store, encoded.manifest.version)
        discard(store, rebase.superseded)
        return tip.snapshot._replace(manifest=encoded.manifest, manifest_path=path)

    def _rebased(self, operation: Operation, tip: Snapshot, merge: frozenset[int]) -> Rebase:
        if self.moves is not None and isinstance(operation, Rewrite):
            from lancetable.commit.moves import relocate  # noqa: PLC0415 - seldom needed

            return relocate(tip, self.base, operation, merge, self.moves)
        return merge_deletions(tip, operation, merge, self.affected or {})

    def _prepared(self, mine: Transaction, tip: Tip) -> tuple[str, EncodedManifest]:
        """Return name and content of the next manifest, the transaction file written."""
        snapshot = tip.snapshot
        name = transaction_name(mine.read_version, mine.uuid)
        state = self._applied(mine, tip, name)
        message = encode_transaction(mine)
        manifest, scheme = state.manifest, Scheme.DETACHED
        if self.options.detached:
            manifest = manifest._replace(version=DETACHED_BIT | secrets.randbits(63))
        else:
            scheme = scheme_of(snapshot)
        path = manifest_path(manifest.version, scheme)
        encoded = encode_manifest(
            manifest,
            shown(snapshot.store, path),
            index_section=_index_section(tip, state),
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
        snapshot = tip.snapshot
        context = Context(
            now=datetime.now(UTC),
            writer=this_writer(),
            indices=snapshot.indices,
            reuse=lambda segments: _reuse_of(snapshot, segments),
            restored=self._restored(mine.operation),
            storage_version=self.storage_version,
            transaction_file=name,
            enable_row_ids=self.enable_row_ids,
        )
        try:
            return apply(snapshot.manifest, mine.operation, context)
        except InputError as cause:
            if snapshot.version == self.base.version:
                raise
            raise ConflictError(
                f"after version {snapshot.version} of another writer, {cause}", retryable=True
            ) from cause

    def _restored(self, operation: Operation) -> State | None:
        if not isinstance(operation, Restore):
            return None
        base = self.base
        old = load(base.location, version=operation.version, branch=base.branch)
        return State(old.manifest, tuple(old.indices()))


def _judged(mine: Transaction, tip: Tip, facts: Facts) -> tuple[Transaction, frozenset[int]]:
    """Return the transaction as it may follow a version, and the fragments to merge."""
    verdict = judge(mine, tip.transaction(), facts)
    match verdict:
        case Compatible(merge):
            return mine, merge
        case Rebased(operation):
            return replace(mine, operation=operation), frozenset()
        case Conflicting(reason, retryable):
            raise ConflictError(
                f"{reason} in version {tip.snapshot.version}, after version {mine.read_version} "
                f"was read for {mine.operation_name}; "
                + ("do the work again" if retryable else "open the table again and decide anew"),
                retryable=retryable,
            )


def _reuse_of(snapshot: Snapshot, segments: "Sequence[IndexSegment]") -> "FragmentReuse | None":
    """Return the record of moved rows, ``None`` when it is one of later releases."""
    from lancetable.commit.reuse import load_reuse  # noqa: PLC0415 - seldom needed

    try:
        return load_reuse(snapshot, segments)
    except UnsupportedError:
        return None


def _index_section(tip: Tip, state: State) -> bytes | None:
    """Return the message that lists the index segments: the old bytes when nothing changed."""
    if state.indices is not None:
        return encode_index_section(state.indices) if state.indices else None
    position = tip.snapshot.manifest.index_section
    if position is None:
        return None
    return bytes(section(tip.content(), position, "index section"))


def _pause(longest: float) -> None:
    """Wait for a random time, so that writers who met once do not meet again."""
    time.sleep(random.uniform(0.0, longest))  # noqa: S311 - no secret
