"""Find the rows that came with each version, for a stream of appended rows.

A version that only moved rows or changed settings brings none. One that changed or deleted rows
has no place in such a stream: it is an error, or is skipped if the options say so.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Append, Merge, Operation, Overwrite
from lancetable.commit.versions import load
from lancetable.errors import ConflictError
from lancetable.format.manifest import Fragment
from lancetable.spark.options import VersionId
from lancetable.store import TableLocation

_WITHOUT_ROWS = frozenset(
    {
        "Clone",
        "CreateIndex",
        "Project",
        "ReserveFragments",
        "Rewrite",
        "UpdateBases",
        "UpdateConfig",
        "UpdateMemWalState",
    }
)


Offset = dict[str, Any]
"""The fields of a position, as JSON has them."""


class Position(NamedTuple):
    """The progress of a stream along the versions of a table.

    All versions before ``version`` are done, and of it the first ``done`` new fragments.
    ``snapshot`` is the version that the stream began with: all of its fragments count as new.
    ``seen`` and ``made`` identify the last version that was read, if any was.
    """

    version: int
    done: int = 0
    snapshot: int = 0
    seen: int = 0
    made: str = ""

    def after(self, snapshot: Snapshot) -> "Position":
        """Return the position with the id of a version that was read."""
        seen, made = VersionId.of(snapshot)
        return self._replace(seen=seen, made=made)

    def offset(self) -> Offset:
        """Return it in the form that Spark keeps in its log."""
        fields = self._asdict()
        return fields if self.seen else {name: fields[name] for name in self._fields[:3]}


class Unit(NamedTuple):
    """The smallest piece of a stream: one new fragment, and the position after it."""

    part: Snapshot
    fragment: Fragment
    end: Position

    @property
    def rows(self) -> int:
        """The number of rows, as far as the manifest knows it."""
        return self.fragment.live_rows or 0

    @property
    def bytes_(self) -> int:
        """The size of its files, as far as the manifest knows it."""
        return sum(file.size or 0 for file in self.fragment.files)


class Follower(NamedTuple):
    """A branch of a table that is followed."""

    location: TableLocation
    branch: str | None
    skips_changes: bool

    def latest(self) -> Snapshot:
        """Return the latest version."""
        return load(self.location, branch=self.branch)

    def check(self, *positions: Position) -> Snapshot:
        """Check that positions belong to this table; return its latest version.

        Raises:
            ConflictError: the table was removed and created again.
        """
        latest = self.latest()
        for one in positions:
            if one.seen:
                since = f"version {one.seen} was read; start the query with a new checkpoint folder"
                VersionId(one.seen, one.made).find(latest, self.branch, since)
        return latest

    def units(self, start: Position, last: int) -> Iterator[Unit]:
        """Yield what is new after a position, up to a version.

        Raises:
            ConflictError: a version changed or deleted rows.
            VersionNotFoundError: a version was cleaned away before it was read.
        """
        for version in range(start.version, last + 1):
            snapshot = load(self.location, version=version, branch=self.branch)
            first = start.done if version == start.version else 0
            new = self._new(snapshot, is_first=version == start.snapshot)
            for done, fragment in list(enumerate(new, 1))[first:]:
                end = Position(version, done, start.snapshot).after(snapshot)
                yield Unit(snapshot, fragment, end)

    def _new(self, snapshot: Snapshot, *, is_first: bool) -> list[Fragment]:
        if is_first:
            return list(snapshot.manifest.fragments)
        transaction = snapshot.transaction()
        if transaction is None:
            return self._refused(snapshot, "left no record of what it did")
        found = self._added(snapshot, transaction.operation, transaction.operation_name)
        if found is None:
            return self._refused(snapshot, f"changed rows ({transaction.operation_name})")
        return found

    def _added(self, snapshot: Snapshot, operation: Operation, name: str) -> list[Fragment] | None:
        """Return the fragments with new rows; ``None`` when rows were changed."""
        fragments = snapshot.manifest.fragments
        if name in _WITHOUT_ROWS:
            return []
        if isinstance(operation, Append):
            paths = {one.files[0].path for one in operation.fragments if one.files}
            return [one for one in fragments if one.files and one.files[0].path in paths]
        if isinstance(operation, Merge):
            before = load(self.location, version=snapshot.version - 1, branch=self.branch)
            known = {one.id for one in before.manifest.fragments}
            return [one for one in fragments if one.id not in known]
        if isinstance(operation, Overwrite) and snapshot.version == 1:
            return list(fragments)
        return None

    def _refused(self, snapshot: Snapshot, reason: str) -> list[Fragment]:
        if self.skips_changes:
            return []
        raise ConflictError(
            f"version {snapshot.version} {reason}, and this stream reads appended rows only; use "
            "the option changes=skip to leave such versions out, or start the stream after it"
        )
