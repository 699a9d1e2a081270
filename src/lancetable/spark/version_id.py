"""Recognize a version again, also after its table was removed and created again.

Such a table counts its versions from one again, so a number alone could mean another version. The
time of a version and the name of its transaction, which holds a random id, tell the two apart.
"""

from typing import NamedTuple

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, VersionNotFoundError


class VersionId(NamedTuple):
    """The number of a version, and a text that no other version of that number has."""

    version: int = 0
    made: str = ""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "VersionId":
        """Return the id of a version."""
        manifest = snapshot.manifest
        return cls(manifest.version, f"{manifest.timestamp} {manifest.transaction_file}")

    def check(self, snapshot: Snapshot, since: str) -> None:
        """Check that a snapshot is this version; ``since`` ends the message if it is not.

        Raises:
            ConflictError: the table was removed and created again.
        """
        if VersionId.of(snapshot) != self:
            raise ConflictError(
                f"the table at {snapshot.location.uri} was removed and created again since {since}"
            )

    def find(self, latest: Snapshot, branch: str | None, since: str) -> Snapshot | None:
        """Return this version of a table whose latest one is known; ``None`` if cleaned away.

        Raises:
            ConflictError: the table was removed and created again.
        """
        found = latest
        if self.version < latest.version:
            try:
                found = load(latest.location, version=self.version, branch=branch)
            except VersionNotFoundError:
                return None
        self.check(found, since)
        return found
