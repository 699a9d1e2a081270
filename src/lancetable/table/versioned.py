"""What can be done with the versions of a table: naming them, branching off."""

from os import PathLike
from typing import TYPE_CHECKING, Self

from lancetable.errors import InputError
from lancetable.table.argument_errors import explaining
from lancetable.table.columns import ColumnsTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lancetable.commit.history.difference import Difference
    from lancetable.commit.history.history import History
    from lancetable.commit.options import CommitOptions
    from lancetable.commit.snapshot import Snapshot
    from lancetable.format.manifest import BasePath
    from lancetable.operations.results import WriteResult
    from lancetable.operations.row_ids import RowIdsResult
    from lancetable.table.inspection import Inspection
    from lancetable.table.references import Branches, Tags


@explaining
class VersionedTable(ColumnsTable):
    """A table whose versions have names, branches and a history."""

    __slots__ = ()

    @property
    def tags(self) -> "Tags":
        """The tags by name, and how to create, move and delete them."""
        from lancetable.table.references import Tags

        return Tags(self._snapshot)

    @property
    def branches(self) -> "Branches[Self]":
        """The branches by name, and how to create, publish and delete them."""
        from lancetable.table.references import Branches

        return Branches(self._snapshot, self._opened_at, self._move)

    @property
    def inspect(self) -> "Inspection":
        """What the table consists of, as Arrow tables."""
        from lancetable.table.inspection import Inspection

        return Inspection(self._snapshot)

    def history(self, *, limit: int | None = None) -> "History":
        """Return what each version did, newest first: when, by whom, which rows and fragments.

        ``History.to_arrow`` gives it as a table. Only versions of this branch up to the one of
        the handle are told; those that were cleaned away are left out.

        Args:
            limit: the most versions to return.

        Raises:
            CorruptError: a manifest or a transaction is damaged.
        """
        from lancetable.commit.history.history import read_history

        return read_history(self._snapshot, limit=limit)

    def diff(self, other: "VersionedTable") -> "Difference":
        """Return what changed from this version to that of another handle: columns, rows, files.

        Only metadata is looked at. ``changes`` tells which rows changed, and how.

        Raises:
            CorruptError: an index section is damaged.
        """
        from lancetable.commit.history.difference import compare

        return compare(self._snapshot, other._snapshot)  # noqa: SLF001 - of the same class

    def clone(
        self,
        uri: "str | PathLike[str]",
        *,
        deep: bool = False,
        storage_options: "Mapping[str, str] | None" = None,
    ) -> Self:
        """Make a new table that begins with this version, and open it.

        Args:
            uri: where the clone will be.
            deep: copy every file, so that the clone stands on its own. A shallow clone refers to
                the files of this table and is of no use without them.
            storage_options: settings of the store of the clone.

        Raises:
            ExistsError: there is a table.
            FileNotFoundInStoreError: a file of this version is missing.
        """
        from lancetable.operations.clone import clone, reaching

        options = self._location.options if storage_options is None else dict(storage_options)
        address: object = uri
        if not isinstance(address, str | PathLike) or not str(address):
            raise InputError(f"a clone needs an address or a path, not {uri!r}")
        location = self._location.moved(str(uri), options)
        if not deep:
            location = reaching(location, self._snapshot)
        return type(self)(location, clone(self._snapshot, location, deep=deep).snapshot)

    def enable_stable_row_ids(
        self,
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: "Mapping[str, str] | None" = None,
    ) -> "RowIdsResult":
        """Give every row an id that it keeps when it is updated or moved.

        The ids are the present row addresses, so indices and whoever remembers addresses stay
        right. Older versions stay without ids; they can be read and cloned, but not restored any
        more. Rows that are there count as created in version 1.

        Raises:
            UnsupportedError: the table has files of version 0.1, or its indices wait for an update
                after a compaction.
            ConflictError: others kept changing rows.
        """
        from lancetable.operations.row_ids import enable_stable_row_ids
        from lancetable.table.writing import commit_options

        options = commit_options(commit, commit_message, properties)
        done = enable_stable_row_ids(self._snapshot, commit_options=options)
        self._move(done.snapshot)
        return done.result

    @property
    def bases(self) -> "tuple[BasePath, ...]":
        """The folders beside the table's own that hold some of its files."""
        return self._snapshot.manifest.base_paths

    def add_bases(
        self,
        folders: "Mapping[str, str | PathLike[str]]",
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: "Mapping[str, str] | None" = None,
    ) -> "WriteResult":
        """Add named folders for data files, such as other disks.

        Rows that are created, appended or overwritten go there when ``WriteOptions.bases`` names
        them. The paths are kept as they are, so the folders must not move.

        Raises:
            InputError: a name or a folder is in use.
        """
        from lancetable.operations.bases import add_bases
        from lancetable.table.writing import commit_options

        options = commit_options(commit, commit_message, properties)
        location = self._location.allowing(*map(str, folders.values()))
        snapshot = self._snapshot._replace(location=location)
        written = add_bases(snapshot, folders, commit=options)
        self._location = location
        return self._moved(written)

    def _opened_at(self, snapshot: "Snapshot") -> Self:
        return type(self)(self._location, snapshot)
