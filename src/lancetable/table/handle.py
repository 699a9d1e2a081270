"""The table a user holds, and how to get one.

Nothing here loads pyarrow or numpy before it is needed, so that opening and counting stay cheap.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING

from lancetable.commit import versions
from lancetable.commit.location.locate import locate
from lancetable.errors import InputError
from lancetable.store import Credentials, Durability, TableLocation
from lancetable.table.argument_errors import explains
from lancetable.table.compacting import CompactingTable
from lancetable.table.following import FollowingTable
from lancetable.table.upkeep import UpkeepTable
from lancetable.table.versioned import VersionedTable
from lancetable.table.writing import commit_options

if TYPE_CHECKING:
    import pyarrow as pa

    from lancetable.commit.location.commit_lock import CommitLock
    from lancetable.commit.options import CommitOptions
    from lancetable.fragment.writer import WriteOptions
    from lancetable.store.manifests import ManifestStore


_DURABILITIES = {one.value: one for one in Durability}


class Table(VersionedTable, FollowingTable, CompactingTable, UpkeepTable):
    """One version of a table. ``refresh`` and ``checkout`` move it to another, and so do writes."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self._location, self.version, self.branch)


@explains
def open_table(  # noqa: PLR0913 - each has a default
    uri: "str | PathLike[str]",
    *,
    version: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    as_of: datetime | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
    manifest_store: "ManifestStore | None" = None,
    commit_lock: "CommitLock | None" = None,
    durability: Durability | str = Durability.OS,
    allow: Iterable[str] | None = None,
) -> Table:
    """Open a table at its latest version, or at the one that is named.

    ``as_of`` opens the newest version that is not younger than a time; a time without an offset is
    local time, as everywhere in Python.

    ``storage_options`` are settings of an object store; ``credentials`` is a function that is
    asked for credentials before those in use expire. ``manifest_store`` or ``commit_lock`` decide
    who makes a version where the store itself cannot. ``durability`` says when writes through this
    handle to a local disk count as done: ``os`` or ``fsync``. ``allow`` names addresses outside of
    the table that its bases, and its external blobs, may lead to.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: it has no such version, or it was cleaned away.
        RefNotFoundError: it has no such tag or branch.
        UnsupportedError: it uses a feature this release does not know.
    """
    location = _location(
        uri,
        storage_options,
        durability,
        credentials=credentials,
        manifest_store=manifest_store,
        commit_lock=commit_lock,
        allow=allow,
    )
    snapshot = versions.load(location, version=version, tag=tag, branch=branch, as_of=as_of)
    return Table(location, snapshot)


@explains
def create_table(  # noqa: PLR0913 - each has a default
    uri: "str | PathLike[str]",
    data: object = None,
    *,
    schema: "pa.Schema | None" = None,
    mode: str = "error",
    storage_version: str | None = None,
    stable_row_ids: bool = False,
    bases: "Mapping[str, str | PathLike[str]] | None" = None,
    storage_options: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
    manifest_store: "ManifestStore | None" = None,
    commit_lock: "CommitLock | None" = None,
    durability: Durability | str = Durability.OS,
    write: "WriteOptions | None" = None,
    commit: "CommitOptions | None" = None,
    commit_message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Table:
    """Create a table from data, from a schema, or from data that is brought to a schema.

    Args:
        uri: where the table will be.
        data: anything that holds rows: Arrow, pandas, polars, dicts, an iterator of batches.
        schema: the columns; those of the data when it is left out.
        mode: what to do when there is a table: ``error``, ``ignore`` (open it, write nothing) or
            ``overwrite`` (a new version with these rows).
        storage_version: the version of data files, ``2.0``, ``2.1`` or ``2.2``; 2.1 when it is
            left out, or 2.2 when the schema needs it.
        stable_row_ids: give every row an id that it keeps when it is updated or moved.
        bases: further folders for data files by name; ``write`` says which of them are used.
        storage_options: settings of the store.
        credentials: asked for credentials of the store before those in use expire.
        manifest_store: records versions where the store cannot decide who was first.
        commit_lock: the last resort: a function that gives a lock for the version to be made.
        durability: when a write counts as done: ``os`` or ``fsync``.
        write: how rows are divided into files.
        commit: how long to try when others write at the same time.
        commit_message: a note for the history.
        properties: further notes for the history.

    Raises:
        ExistsError: there is a table, and ``mode`` is ``error``.
        SchemaError: a column cannot be stored, or the data does not fit the schema.
        InputError: a value does not fit, or the data is of no kind that holds rows.
    """
    from dataclasses import replace

    from lancetable.commit.options import CreateMode
    from lancetable.operations.bases import base_paths
    from lancetable.operations.create import CreateOptions, create
    from lancetable.operations.input.write import DEFAULT_WRITE

    modes = {one.value: one for one in CreateMode}
    if mode not in modes:
        raise InputError(f"mode is {mode!r}; use one of {', '.join(modes)}")
    settled = write or DEFAULT_WRITE
    if storage_version is not None:
        settled = replace(settled, storage_version=storage_version)
    location = _location(
        uri,
        storage_options,
        durability,
        credentials=credentials,
        manifest_store=manifest_store,
        commit_lock=commit_lock,
        allow=[str(folder) for folder in (bases or {}).values()],
    )
    options = CreateOptions(
        mode=modes[mode],
        stable_row_ids=stable_row_ids,
        bases=base_paths(location, bases or {}, first_id=1),
        write=settled,
        commit=commit_options(commit, commit_message, properties),
    )
    return Table(location, create(location, data, schema=schema, options=options).snapshot)


def _location(  # noqa: PLR0913 - what both functions above take
    uri: "str | PathLike[str]",
    storage_options: Mapping[str, str] | None,
    durability: Durability | str,
    *,
    credentials: Credentials | None,
    manifest_store: "ManifestStore | None",
    commit_lock: "CommitLock | None",
    allow: Iterable[str] | None,
) -> TableLocation:
    wanted = _DURABILITIES.get(durability) if isinstance(durability, str) else durability
    if wanted is None:
        raise InputError(f"durability is {durability!r}; use one of {', '.join(_DURABILITIES)}")
    if not isinstance(uri, str | PathLike):
        raise InputError(f"the address of a table is a text or a path, not {uri!r}")
    return locate(
        str(uri),
        storage_options,
        durability=wanted,
        credentials=credentials,
        manifest_store=manifest_store,
        commit_lock=commit_lock,
        allow=allow,
    )


def _reopened(location: TableLocation, version: int, branch: str | None) -> Table:
    return Table(location, versions.load(location, version=version, branch=branch))
