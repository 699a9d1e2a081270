"""Options and results that the operations share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.loop.rebase import Rows
from lancetable.commit.options import CommitOptions, CommitResult
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Operation
from lancetable.fragment.write.progress import ProgressCallback
from lancetable.fragment.write.writer import WriteOptions
from lancetable.operations.run.runner import THREADS, Runner

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class VersionResult:
    """The version of a table after a change, and whether the change made it."""

    version: int
    is_new_version: bool = field(default=True, kw_only=True)
    """False when there was nothing to change, so that ``version`` is the one there was."""


class Done(NamedTuple, Generic[R]):
    """The version of a table after an operation, and the result for the caller."""

    snapshot: Snapshot
    result: R


class CastNote(NamedTuple):
    """A column whose values were stored as another type; nothing was lost."""

    column: str
    from_type: pa.DataType
    to_type: pa.DataType


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
    """Options of a change: data files, commit, and where its steps run."""

    write: WriteOptions = field(default_factory=WriteOptions)
    commit: CommitOptions = field(default_factory=CommitOptions)
    runner: Runner = THREADS
    make_version: MakeVersion = commit_operation
    """Commits the operation of a delete, an update or a merge, or records it for later."""


DEFAULTS = ChangeOptions()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Runner, commit options and progress callback of an operation on existing rows."""

    runner: Runner | None = None
    commit: CommitOptions = field(default_factory=CommitOptions)
    progress: ProgressCallback | None = None


@dataclass(frozen=True, slots=True)
class WriteResult(VersionResult):
    """Result of a write: the version it made, and how many rows it wrote."""

    rows: int = 0
    attempts: int = 1
    casts: tuple[CastNote, ...] = ()
    """Columns whose values were stored as another type, without loss."""


@dataclass(frozen=True, slots=True)
class DeleteResult(VersionResult):
    """Result of a delete; without a match there is no new version."""

    rows: int = 0
    attempts: int = 1
    fragments_scanned: int = field(default=0, compare=False)
    """Fragments whose rows were all compared; indices spare the others."""


@dataclass(frozen=True, slots=True)
class UpdateResult(VersionResult):
    """Result of an update; without a match there is no new version."""

    rows: int = 0
    attempts: int = 1
    fragments_scanned: int = field(default=0, compare=False)
    """Fragments whose rows were all compared; indices spare the others."""


@dataclass(frozen=True, slots=True)
class MergeResult(VersionResult):
    """Result of a merge; without anything to do there is no new version."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    attempts: int = 1
    casts: tuple[CastNote, ...] = ()
    """Columns of the source whose values were stored as another type, without loss."""
    fragments_scanned: int = field(default=0, compare=False)
    """Fragments whose keys were all compared, once for each part of the source; indices spare the
    others."""


@dataclass(frozen=True, slots=True)
class ColumnsResult(VersionResult):
    """Result of a change of columns."""

    columns: tuple[str, ...] = ()
    """The columns it added or changed."""
    attempts: int = 1
