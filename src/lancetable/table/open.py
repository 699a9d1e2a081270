"""Open, create, check and repair tables.

Nothing here loads pyarrow or numpy before it is needed, so that opening and counting stay cheap.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Unpack

from lancetable.commit import versions
from lancetable.commit.location.locate import locate
from lancetable.errors import InputError
from lancetable.store import Credentials, Durability, TableLocation
from lancetable.table.argument_errors import explains
from lancetable.table.handle import writing
from lancetable.table.maintenance import check_location
from lancetable.table.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from lancetable.commit.location.external import CommitLock
    from lancetable.commit.options import CommitOptions
    from lancetable.fragment.write.progress import ProgressCallback
    from lancetable.operations.check.model import CheckResult
    from lancetable.operations.check.repair import RepairPlan
    from lancetable.store.manifests import ManifestStore
    from lancetable.table.settings import CheckSettings, WriteSettings

_DURABILITIES = {one.value: one for one in Durability}


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

    ``storage_options`` are settings of an object store; ``credentials`` is a function that returns
    new credentials before those in use expire. ``manifest_store`` or ``commit_lock`` decide which
    writer creates a version where the store itself cannot. ``durability`` defines when a write to
    a local disk is complete: ``os`` or ``fsync``. ``allow`` lists addresses outside the table that
    its bases and external blobs may refer to.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: there is no such version, or it was cleaned up.
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
    stable_row_ids: bool = False,
    bases: "Mapping[str, str | PathLike[str]] | None" = None,
    storage_options: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
    manifest_store: "ManifestStore | None" = None,
    commit_lock: "CommitLock | None" = None,
    durability: Durability | str = Durability.OS,
    commit: "CommitOptions | str | None" = None,
    **options: "Unpack[WriteSettings]",
) -> Table:
    """Create a table from data, from a schema, or from data cast to a schema.

    Args:
        uri: where the table will be.
        data: rows of any kind: Arrow, pandas, polars, dicts, an iterator of batches.
        schema: the columns; by default those of the data.
        mode: what to do when the table exists: ``error``, ``ignore`` (open it, write nothing) or
            ``overwrite`` (a new version with these rows).
        stable_row_ids: give every row an id that it keeps when it is updated or moved.
        bases: further folders for data files by name; ``target_bases`` selects those to write to.
        storage_options: settings of the store.
        credentials: a function that returns new credentials before those in use expire.
        manifest_store: records versions where the store cannot decide who was first.
        commit_lock: a function that returns a lock for the next version, as a last resort.
        durability: when a write is complete: ``os`` or ``fsync``.
        commit: message or options of the commit.
        **options: fields of :class:`lancetable.WriteOptions`, such as ``storage_version``.

    Raises:
        ExistsError: there is a table, and ``mode`` is ``error``.
        SchemaError: a column cannot be stored, or the data does not fit the schema.
        InputError: a value does not fit, or the data holds no rows.
    """
    from lancetable.commit.options import CommitOptions, CreateMode
    from lancetable.operations.config import base_paths
    from lancetable.operations.create import CreateOptions, create

    modes = {one.value: one for one in CreateMode}
    if mode not in modes:
        raise InputError(f"mode is {mode!r}; use one of {', '.join(modes)}")
    location = _location(
        uri,
        storage_options,
        durability,
        credentials=credentials,
        manifest_store=manifest_store,
        commit_lock=commit_lock,
        allow=[str(folder) for folder in (bases or {}).values()],
    )
    with writing(options) as write:
        settled = CreateOptions(
            mode=modes[mode],
            stable_row_ids=stable_row_ids,
            bases=base_paths(location, bases or {}, first_id=1),
            write=write,
            commit=CommitOptions.of(commit),
        )
        return Table(location, create(location, data, schema=schema, options=settled).snapshot)


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
        raise InputError(f"uri is {uri!r}; give an address or a path")
    return locate(
        str(uri),
        storage_options,
        durability=wanted,
        credentials=credentials,
        manifest_store=manifest_store,
        commit_lock=commit_lock,
        allow=allow,
    )


@explains
def check_table(
    uri: "str | PathLike[str]",
    *,
    branch: str | None = None,
    progress: "bool | ProgressCallback" = False,
    storage_options: Mapping[str, str] | None = None,
    **options: "Unpack[CheckSettings]",
) -> "CheckResult":
    """Look for damage like ``table.maintenance.check``, also in a table that cannot be opened.

    Raises:
        TableNotFoundError: there is no table.
    """
    location = TableLocation(str(uri), dict(storage_options or {}))
    return check_location(location, branch, progress, options)


@explains
def repair_table(
    uri: "str | PathLike[str]",
    level: str = "files",
    *,
    branch: str | None = None,
    revive: bool = False,
    journal: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "RepairPlan":
    """Plan a repair like ``table.maintenance.repair``, also of a table that cannot be opened.

    Raises:
        TableNotFoundError: there is no table.
        CorruptError: no version can be opened.
    """
    from lancetable.operations.check.model import Level
    from lancetable.operations.check.repair import plan_repair

    return plan_repair(
        TableLocation(str(uri), dict(storage_options or {})),
        level=Level.named(level),
        branch=branch,
        revive=revive,
        journal=journal,
    )
