"""What can be done to the rows of a table; each change moves the handle to the version it made."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from lancetable.errors import InputError
from lancetable.table.argument_errors import explaining
from lancetable.table.reading import ReadingTable

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.commit.snapshot import Snapshot
    from lancetable.commit.transaction import UpdateConfig
    from lancetable.fragment.writer import WriteOptions
    from lancetable.operations.results import Done, WriteResult
    from lancetable.operations.uncommitted import NewFragments
    from lancetable.scan.request import Where

Entries = Mapping[str, str | None]
"""Keys to set; a value of None removes the key."""


def commit_options(
    commit: "CommitOptions | None",
    message: str | None,
    properties: Mapping[str, str] | None,
) -> "CommitOptions":
    """Return how a commit is made and what is recorded with it."""
    from lancetable.commit.options import CommitOptions

    options = commit or CommitOptions()
    if message is None and not properties:
        return options
    from dataclasses import replace

    kept = options.message if message is None else message
    return replace(options, message=kept, properties={**options.properties, **(properties or {})})


@explaining
class WritingTable(ReadingTable):
    """A table whose rows, settings and notes can be changed.

    Every change takes ``commit_message`` and ``properties``, which are kept in the history, and
    ``commit``, which says how long to try when others write at the same time.
    """

    __slots__ = ()

    def append(
        self,
        data: object,
        *,
        merge_schema: bool = False,
        write: "WriteOptions | None" = None,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Add rows.

        Columns are matched by name; nullable ones may be missing. Types are cast when nothing can
        be lost, and the result says which.

        Args:
            data: anything that holds rows: Arrow, pandas, polars, dicts, an iterator of batches.
            merge_schema: add the columns that the table lacks, in the same version.
            write: how rows are divided into files.
            commit: how long to try.
            commit_message: a note for the history.
            properties: further notes for the history.

        Raises:
            SchemaError: the columns do not fit; all that do not are named.
            InputError: a value does not fit its column.
            ConflictError: another writer replaced the table meanwhile.
        """
        from lancetable.operations.append import append
        from lancetable.operations.input.write import DEFAULT_WRITE

        options = commit_options(commit, commit_message, properties)
        return self._moved(
            append(
                self._snapshot,
                data,
                merge_schema=merge_schema,
                write=write or DEFAULT_WRITE,
                commit=options,
            )
        )

    def write_fragments(
        self, data: object, *, write: "WriteOptions | None" = None
    ) -> "NewFragments":
        """Write rows as fragments that no version names yet; :meth:`commit_fragments` adds them.

        The value can be pickled, so that several processes can write and one of them commits.

        Args:
            data: anything that holds rows; columns are matched as in :meth:`append`.
            write: how rows are divided into files.

        Raises:
            SchemaError: the columns do not fit; all that do not are named.
            InputError: a value does not fit its column.
        """
        from lancetable.operations.input.write import DEFAULT_WRITE
        from lancetable.operations.uncommitted import write_new_fragments

        return write_new_fragments(self._snapshot, data, write=write or DEFAULT_WRITE)

    def commit_fragments(
        self,
        fragments: "Sequence[NewFragments]",
        *,
        mode: str = "append",
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Make fragments of :meth:`write_fragments` the next version, all of them or none.

        Args:
            fragments: what ``write_fragments`` returned, here or elsewhere.
            mode: ``append`` adds the rows, ``overwrite`` replaces all rows by them.
            commit: how long to try.
            commit_message: a note for the history.
            properties: further notes for the history.

        Raises:
            InputError: fragments belong to another table or are committed already.
            ConflictError: the columns of the table changed since they were written, or a file is
                missing; nothing was committed.
        """
        from lancetable.operations.uncommitted import NewFragments, commit_new_fragments

        if mode not in {"append", "overwrite"}:
            raise InputError(f"mode is {mode!r}; use 'append' or 'overwrite'")
        given = cast("object", fragments)
        if not isinstance(given, Sequence) or not all(
            isinstance(one, NewFragments) for one in given
        ):
            raise InputError("fragments is a list of what write_fragments() returned")
        options = commit_options(commit, commit_message, properties)
        is_overwrite = mode == "overwrite"
        return self._moved(
            commit_new_fragments(self._snapshot, fragments, overwrite=is_overwrite, commit=options)
        )

    def overwrite(  # noqa: PLR0913 - each has a default
        self,
        data: object,
        *,
        where: "Where" = None,
        check: bool = True,
        write: "WriteOptions | None" = None,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Replace all rows and the schema, or with ``where`` the rows that match a predicate.

        The old versions stay, and can be read and restored. With ``where`` every new row must match
        the predicate, too, so that the same call made twice leaves each row once. A predicate that
        is null for a row counts as not matching. ``check=False`` writes the rows unchecked.

        Raises:
            SchemaError: a column cannot be stored, or does not fit the rows that stay.
            InputError: a value does not fit its column, or a new row does not match ``where``.
        """
        from lancetable.operations.input.write import DEFAULT_WRITE
        from lancetable.operations.overwrite import overwrite, overwrite_where
        from lancetable.operations.results import ChangeOptions
        from lancetable.scan.request import parse_where

        options = commit_options(commit, commit_message, properties)
        settled = write or DEFAULT_WRITE
        expression = parse_where(where)
        if expression is None:
            return self._moved(overwrite(self._snapshot, data, write=settled, commit=options))
        change = ChangeOptions(write=settled, commit=options)
        return self._moved(overwrite_where(self._snapshot, data, expression, change, check=check))

    def truncate(
        self,
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Remove all rows; the result counts them."""
        from lancetable.operations.overwrite import truncate

        options = commit_options(commit, commit_message, properties)
        return self._moved(truncate(self._snapshot, commit=options))

    def restore(
        self,
        version: int,
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Make an older version the latest; the versions in between stay.

        Raises:
            VersionNotFoundError: there is no such version, or it was cleaned away.
        """
        from lancetable.operations.restore import restore

        options = commit_options(commit, commit_message, properties)
        return self._moved(restore(self._snapshot, version, commit=options))

    def update_config(
        self,
        entries: Entries,
        *,
        replace_all: bool = False,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Set and remove settings; with ``replace_all`` those that are not named go too.

        Raises:
            ConflictError: another writer changed the same keys.
        """
        from lancetable.commit.transaction import UpdateConfig
        from lancetable.operations.config import map_update

        operation = UpdateConfig(config=map_update(entries, replace=replace_all))
        return self._configured(
            lambda _: operation, commit_options(commit, commit_message, properties)
        )

    def update_metadata(
        self,
        entries: Entries,
        *,
        replace_all: bool = False,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Set and remove notes about the table."""
        from lancetable.commit.transaction import UpdateConfig
        from lancetable.operations.config import map_update

        operation = UpdateConfig(table_metadata=map_update(entries, replace=replace_all))
        return self._configured(
            lambda _: operation, commit_options(commit, commit_message, properties)
        )

    def update_schema_metadata(
        self,
        entries: Entries,
        *,
        replace_all: bool = False,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Set and remove metadata of the schema."""
        from lancetable.commit.transaction import UpdateConfig
        from lancetable.operations.config import map_update

        operation = UpdateConfig(schema_metadata=map_update(entries, replace=replace_all))
        return self._configured(
            lambda _: operation, commit_options(commit, commit_message, properties)
        )

    def update_field_metadata(
        self,
        columns: Mapping[str, Entries],
        *,
        replace_all: bool = False,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "WriteResult":
        """Set and remove metadata of columns, which are named by their paths.

        Raises:
            SchemaError: there is no such column.
        """
        from lancetable.operations.config import field_update

        def describe(latest: "Snapshot") -> "UpdateConfig":
            return field_update(latest, columns, replace=replace_all)

        return self._configured(describe, commit_options(commit, commit_message, properties))

    def _configured(
        self, describe: Callable[["Snapshot"], "UpdateConfig"], options: "CommitOptions"
    ) -> "WriteResult":
        from lancetable.operations.config import configure

        return self._moved(configure(self._snapshot, describe, commit=options))

    def _moved(self, written: "Done[WriteResult]") -> "WriteResult":
        """Move to the version that a change made."""
        self._move(written.snapshot)
        return written.result
