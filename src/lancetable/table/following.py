"""What can be asked about the changes between versions of a table."""

from typing import TYPE_CHECKING

from lancetable.commit import versions
from lancetable.table.argument_errors import explaining
from lancetable.table.reading import ReadingTable

if TYPE_CHECKING:
    from lancetable.format.schema.model import Blobs
    from lancetable.operations.feed.feed import Changes
    from lancetable.scan.request import ColumnsArgument


@explaining
class FollowingTable(ReadingTable):
    """A table whose changes can be followed from version to version."""

    __slots__ = ()

    def changes(
        self,
        from_version: int,
        to_version: int | None = None,
        *,
        columns: "ColumnsArgument" = None,
        with_row_id: bool = False,
        blobs: "Blobs" = "descriptions",
        **options: int,
    ) -> "Changes":
        """Describe what the versions after one, up to another, changed; nothing is read yet.

        Applied in order, the changes turn the rows of ``from_version`` into those of
        ``to_version``. Each row has the columns of the last version, and:

        * ``_change_type``: ``insert``, ``delete``, ``update_preimage`` or ``update_postimage``;
        * ``_commit_version`` and ``_commit_timestamp``: which commit did it, and when.

        With stable row ids an update gives both images, which share their ``_rowid``. Without
        them an update that moved rows is a delete and an insert; one that wrote whole columns
        gives both images all the same. An overwrite deletes all old rows and inserts all new
        ones. Compaction changes nothing.

        Args:
            from_version: the version to start from; 0 is the empty table before the first.
            to_version: the last version to tell about; the one that is open when left out.
            columns: names and nested paths, or a dict of names and SQL expressions.
            with_row_id: add the column ``_rowid``.
            blobs: what blob columns hold: ``descriptions`` or ``bytes``.
            options: fields of :class:`lancetable.scan.request.ScanOptions`.

        Raises:
            InputError: the versions are in the wrong order.
            VersionNotFoundError: a version was cleaned away; others of the range may come later.
        """
        from lancetable.operations.feed.feed import Changes
        from lancetable.scan.request import ScanRequest, parse_columns, parse_options

        snapshot = self._snapshot
        if to_version is not None and to_version != snapshot.version:
            snapshot = versions.load(self._location, version=to_version, branch=self.branch)
        selection = parse_columns(columns)
        request = ScanRequest(
            columns=selection.columns,
            expressions=selection.expressions,
            with_row_id=with_row_id,
            blobs=blobs,
        )
        return Changes(snapshot, from_version, request, parse_options(options))
