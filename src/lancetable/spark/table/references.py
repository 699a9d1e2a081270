"""Tags and branches of a LanceTable."""

# ruff: noqa: N802 - the names are those PySpark users know

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from lancetable.operations.branch.cherry_pick import cherry_pick
from lancetable.operations.branch.fast_forward import fast_forward
from lancetable.spark.errors import all_coded
from lancetable.spark.runner import PATIENT, SparkRunner
from lancetable.spark.table.reports import (
    BRANCHES,
    PICKED,
    PUBLISHED,
    TAGS,
    picked,
    report_row,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lancetable.commit.refs import BranchInfo, TagInfo
    from lancetable.commit.snapshot import Snapshot
    from lancetable.commit.tagging import TagMove
    from lancetable.table import Table

Handle = TypeVar("Handle")


@all_coded
@dataclass(frozen=True, slots=True)
class LanceTags:
    """The tags of a table."""

    spark: "SparkSession"
    open: "Callable[[], Table]"

    def list(self) -> "DataFrame":
        """Return all tags in the order of their names."""
        rows = [report_row(TAGS, one) for one in self.open().tags.list()]
        return self.spark.createDataFrame(rows, TAGS)

    def create(
        self,
        name: str,
        version: int | None = None,
        *,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> "TagInfo":
        """Give a version a name; without arguments the latest one.

        Args:
            name: letters, digits, dots, dashes and underscores.
            version: a version of this branch, or of ``branch``.
            branch: another branch; its latest version unless one is named.
            metadata: notes kept with the tag.
        """
        return self.open().tags.create(name, version, branch=branch, metadata=metadata)

    def move(
        self, name: str, version: int | None = None, *, branch: str | None = None
    ) -> "TagMove":
        """Let a tag name another version; say where it was and where it is."""
        return self.open().tags.move(name, version, branch=branch)

    def delete(self, name: str) -> "TagInfo":
        """Remove a tag and return what it was; the version stays until a cleanup."""
        return self.open().tags.delete(name)


@all_coded
@dataclass(frozen=True, slots=True)
class LanceBranches(Generic[Handle]):
    """The branches of a table, the main one left out."""

    spark: "SparkSession"
    open: "Callable[[], Table]"
    snapshot: "Callable[[], Snapshot]"
    on_branch: Callable[[str], Handle]

    def list(self) -> "DataFrame":
        """Return all branches in the order of their names."""
        rows = [report_row(BRANCHES, one) for one in self.open().branches.list()]
        return self.spark.createDataFrame(rows, BRANCHES)

    def create(
        self,
        name: str,
        version: int | None = None,
        *,
        tag: str | None = None,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Handle:
        """Begin a branch and return it as a table; without arguments at the latest version.

        Args:
            name: parts of letters, digits, dots, dashes and underscores joined by slashes.
            version: a version of this branch, or of ``branch``.
            tag: a tag that names the version.
            branch: another branch; its latest version unless one is named.
            metadata: notes kept with the branch.
        """
        core = self.open()
        core.branches.create(name, version, tag=tag, branch=branch, metadata=metadata)
        return self.on_branch(name)

    def delete(self, name: str) -> "BranchInfo | None":
        """Remove a branch with all its versions and return what it was."""
        return self.open().branches.delete(name)

    def fastForward(self, name: str) -> "DataFrame":
        """Bring everything a branch did to this history, as one version; workers bring the files.

        Nobody may have written to this history since the branch began; otherwise pick its versions.
        """
        done = fast_forward(
            self.snapshot(), name, options=PATIENT, runner=SparkRunner(self.spark)
        ).result
        return self.spark.createDataFrame([report_row(PUBLISHED, done)], PUBLISHED)

    def cherryPick(self, name: str, versions: int | Sequence[int] | None = None) -> "DataFrame":
        """Replay versions of a branch on this history, all that it made unless some are named.

        Each becomes a version of its own. When one cannot be replayed, those before it stay, and
        the error names them.
        """
        wanted = [versions] if isinstance(versions, int) else versions
        done = cherry_pick(
            self.snapshot(), name, wanted, options=PATIENT, runner=SparkRunner(self.spark)
        ).result
        rows = [picked(done, one) for one in done.picks]
        return self.spark.createDataFrame(rows, PICKED)
