"""What the recipes that change existing rows and columns share: how to work, and what they tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.options import CommitOptions, CommitResult
from lancetable.commit.rebase import Rows
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Operation
from lancetable.fragment.writer import WriteOptions
from lancetable.operations.casts import CastNote
from lancetable.operations.result import VersionResult
from lancetable.operations.runner import THREADS, Runner


class MakeVersion(Protocol):
    """Makes an operation the next version, as ``commit.committer.commit`` does."""

    def __call__(
        self,
        snapshot: Snapshot,
        operation: Operation,
        options: CommitOptions = ...,
        *,
        affected: Mapping[int, Rows] | None = None,
    ) -> CommitResult:
        """Return the version; ``affected`` names the rows that go, by fragment."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """How a change is made: into which files, with which commit, and where its steps run."""

    write: WriteOptions = field(default_factory=WriteOptions)
    commit: CommitOptions = field(default_factory=CommitOptions)
    runner: Runner = THREADS
    make_version: MakeVersion = commit_operation
    """Commits the operation of a delete, an update or a merge, or records it for later."""


DEFAULTS = ChangeOptions()


@dataclass(frozen=True, slots=True)
class DeleteResult(VersionResult):
    """What a delete did; without a match there is no new version."""

    rows: int = 0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class UpdateResult(VersionResult):
    """What an update did; without a match there is no new version."""

    rows: int = 0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class MergeResult(VersionResult):
    """What a merge did; without anything to do there is no new version."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    attempts: int = 1
    casts: tuple[CastNote, ...] = ()
    """Columns of the source whose values were stored as another type, without loss."""


@dataclass(frozen=True, slots=True)
class ColumnsResult(VersionResult):
    """What a change of columns did."""

    columns: tuple[str, ...] = ()
    """The columns it added or changed."""
    attempts: int = 1


class Deleted(NamedTuple):
    """The version after a delete, and what is told about it."""

    snapshot: Snapshot
    result: DeleteResult


class Updated(NamedTuple):
    """The version after an update, and what is told about it."""

    snapshot: Snapshot
    result: UpdateResult


class Merged(NamedTuple):
    """The version after a merge, and what is told about it."""

    snapshot: Snapshot
    result: MergeResult


class Altered(NamedTuple):
    """The version after a change of columns, and what is told about it."""

    snapshot: Snapshot
    result: ColumnsResult
