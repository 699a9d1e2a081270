"""Work with the versions of a table: tags, branches, history and changes."""

# ruff: noqa: N802 - the names are those PySpark users know

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from lancetable.commit.history.history import read_history
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.commit.versions.listing import parse_time
from lancetable.errors import InputError
from lancetable.operations.clone import clone, reaching
from lancetable.operations.restore import restore
from lancetable.spark.errors import all_coded
from lancetable.spark.runner import PATIENT
from lancetable.spark.table.base import BaseTable
from lancetable.spark.table.references import LanceBranches, LanceTags
from lancetable.spark.table.reports import (
    DESCRIBED,
    DIFFERENT,
    TOLD,
    LanceInspection,
    described,
    history_row,
    report_row,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@all_coded
class VersionedTable(BaseTable):
    """A table whose versions have names, branches and a history."""

    __slots__ = ()

    @property
    def tags(self) -> LanceTags:
        """The names of versions, and how to create, move and delete them."""
        return LanceTags(self.spark, self._core)

    @property
    def branches(self) -> LanceBranches[Self]:
        """The branches, and how to create, publish and delete them."""
        return LanceBranches(self.spark, self._core, self.snapshot, self._on_branch)

    @property
    def inspect(self) -> LanceInspection:
        """The parts of the latest version, as data frames."""
        return LanceInspection(self.spark, self._core)

    def _on_branch(self, name: str) -> Self:
        return replace(self, branch=name)

    def changes(self, fromVersion: int, toVersion: int | None = None) -> "DataFrame":  # noqa: N803
        """Return what the versions after one, up to another, changed.

        Beside the columns of the table each row has ``_change_type``, ``_commit_version`` and
        ``_commit_timestamp``. Applied in order, the changes turn the rows of one version into those
        of the other.

        Args:
            fromVersion: the version to start from; 0 is the empty table before the first.
            toVersion: the last version to tell about; the latest when left out.
        """
        last = self.snapshot().version if toVersion is None else toVersion
        if not 0 <= fromVersion <= last:
            raise InputError(
                f"changes go from a version up to a later one, not from {fromVersion} to {last}"
            )
        options = {"changes": "feed", "startingVersion": str(fromVersion + 1)}
        return self._read(last, options)

    def diff(self, fromVersion: int, toVersion: int | None = None) -> "DataFrame":  # noqa: N803
        """Return one row with the differences of two versions: columns, rows, fragments, files.

        Only metadata is read; ``changes`` returns the changed rows.

        Args:
            fromVersion: the version to start from.
            toVersion: the other one; the latest when left out.
        """
        found = self._core(fromVersion).diff(self._core(toVersion))
        return self._one_row(report_row(DIFFERENT, found), DIFFERENT)

    def clone(self, target: str, *, isShallow: bool = False) -> Self:  # noqa: N803
        """Make a new table that begins with the latest version.

        Args:
            target: where it will be.
            isShallow: refer to the files of this table instead of copying them; then the clone is
                of no use without it.
        """
        return self._clone(self.snapshot(), target, is_shallow=isShallow)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        *,
        isShallow: bool = False,  # noqa: N803
    ) -> Self:
        """Make a new table that begins with an older version."""
        old = load(self.location, version=version, branch=self.branch)
        return self._clone(old, target, is_shallow=isShallow)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        *,
        isShallow: bool = False,  # noqa: N803
    ) -> Self:
        """Make a new table that begins with the version of a time.

        A time without an offset is in the time zone of the session.
        """
        moment = _session_time(self.spark, timestamp)
        old = load(self.location, as_of=moment, branch=self.branch)
        return self._clone(old, target, is_shallow=isShallow)

    def _clone(self, source: Snapshot, target: str, *, is_shallow: bool) -> Self:
        location = self.location.moved(target)
        if is_shallow:
            location = reaching(location, source)
        clone(source, location, deep=not is_shallow, runner=self._runner())
        return type(self)(self.spark, location)

    def restoreToVersion(self, version: int) -> int:
        """Make an older version the latest; return the number of the new version."""
        return restore(self.snapshot(), version, commit=PATIENT).result.version

    def restoreToTimestamp(self, timestamp: str) -> int:
        """Make the version of a time the latest; return the number of the new version.

        A time without an offset is in the time zone of the session.
        """
        moment = _session_time(self.spark, timestamp)
        old = load(self.location, branch=self.branch, as_of=moment)
        return restore(self.snapshot(), old.version, commit=PATIENT).result.version

    def history(self, limit: int | None = None) -> "DataFrame":
        """Return the versions that are kept and what each did, latest first."""
        rows = [history_row(one) for one in read_history(self.snapshot(), limit=limit)]
        return self.spark.createDataFrame(rows, TOLD)

    def detail(self) -> "DataFrame":
        """Return one row that describes the latest version."""
        snapshot = self.snapshot()
        row = described(snapshot, self._core(snapshot.version).count())
        return self._one_row(row, DESCRIBED)

    def enableStableRowIds(self) -> int:
        """Give every row an id that it keeps when it is updated or moved; return the new version.

        Older versions stay without ids and cannot be restored any more.
        """
        return self._core().maintenance.enable_stable_row_ids(commit=PATIENT).version


def _session_time(spark: "SparkSession", text: str | datetime) -> datetime:
    """Return a time with an offset; Spark converts one without, as its own functions do.

    Raises:
        InputError: it is neither a datetime nor its ISO text.
    """
    time = parse_time(text)
    if time.tzinfo is not None:
        return time
    rows = spark.sql(
        "SELECT unix_micros(CAST(:time AS TIMESTAMP))", args={"time": time.isoformat(" ")}
    ).collect()
    return _EPOCH + timedelta(microseconds=rows[0][0])
