"""The class Table: one version of a table, and the operations on it.

Nothing here loads pyarrow or numpy before it is needed, so that opening and counting stay cheap.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, Unpack, cast

from lancetable.commit import versions
from lancetable.errors import InputError
from lancetable.store import TableLocation
from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle, PreparingHandle, reporting, writing

if TYPE_CHECKING:
    import pyarrow as pa

    from lancetable.commit.history.difference import Difference
    from lancetable.commit.history.history import History
    from lancetable.commit.options import CommitOptions
    from lancetable.commit.snapshot import Snapshot
    from lancetable.commit.versions import VersionInfo
    from lancetable.expression import Expression
    from lancetable.format.manifest.model import Fragment
    from lancetable.format.schema.model import Blobs
    from lancetable.fragment.blobs import BlobFile
    from lancetable.fragment.progress import ProgressCallback
    from lancetable.operations.compact.options import CompactResult
    from lancetable.operations.feed.feed import Changes
    from lancetable.operations.merge.builder import MergeBuilder
    from lancetable.operations.prepared_transaction import PreparedTransaction, Result
    from lancetable.operations.results import DeleteResult, UpdateResult, WriteResult
    from lancetable.operations.run.runner import Runner
    from lancetable.operations.uncommitted import NewFragments
    from lancetable.scan.request import ColumnsArgument, Where
    from lancetable.scan.scanner import Scan
    from lancetable.scan.take import Numbers
    from lancetable.table.bases import Bases
    from lancetable.table.columns import Columns
    from lancetable.table.config import Keys
    from lancetable.table.indices import Indices
    from lancetable.table.inspection import Inspection
    from lancetable.table.maintenance import Maintenance
    from lancetable.table.references import Branches, Tags
    from lancetable.table.settings import CompactSettings, ScanSettings, WriteSettings

P = ParamSpec("P")


def _uncommitted(
    method: "Callable[Concatenate[Table, P], Result]",
) -> "Callable[Concatenate[Table, P], PreparedTransaction[Result]]":
    """Return a method that writes the files of another one and leaves the commit to later."""

    @wraps(method)
    def run(table: "Table", *args: P.args, **kwargs: P.kwargs) -> "PreparedTransaction[Result]":
        handle = PreparingHandle(table._handle.location, table._handle.snapshot)  # noqa: SLF001
        method(Table.of(handle), *args, **kwargs)
        return cast("PreparedTransaction[Result]", handle.prepared)

    run.__name__ = f"{method.__name__}_uncommitted"
    run.__doc__ = (
        f"Write the files of a :meth:`{method.__name__}` without creating a version.\n\n"
        "        The arguments are the same; :meth:`commit_prepared` creates the version."
    )
    return cast("Callable[Concatenate[Table, P], PreparedTransaction[Result]]", run)


@explaining
class Table:
    """One version of a table; ``refresh``, ``checkout`` and every change move it to another.

    Every change takes ``commit``: a message for the history, or :class:`CommitOptions`. Options of
    writes, scans and compactions are keyword arguments; the classes ``WriteOptions``,
    ``ScanOptions`` and ``CompactOptions`` describe them.
    """

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, location: TableLocation, snapshot: "Snapshot") -> None:
        self._handle = Handle(location, snapshot)

    @classmethod
    def of(cls, handle: Handle) -> Self:
        """Return a table that shares a handle."""
        made = cls.__new__(cls)
        made._handle = handle
        return made

    # ---- facts

    @property
    def _snapshot(self) -> "Snapshot":
        return self._handle.snapshot

    @property
    def uri(self) -> str:
        """The address of the table."""
        return self._handle.location.uri

    @property
    def version(self) -> int:
        """The number of this version."""
        return self._snapshot.manifest.version

    @property
    def branch(self) -> str | None:
        """The branch; None for the main one."""
        return self._snapshot.branch

    @property
    def timestamp(self) -> datetime | None:
        """When this version was committed."""
        return self._snapshot.manifest.timestamp

    @property
    def schema(self) -> "pa.Schema":
        """The columns, as a scan returns them."""
        from lancetable.format.schema.types import arrow_schema

        return arrow_schema(self._snapshot.manifest.schema)

    @property
    def fragments(self) -> "Sequence[Fragment]":
        """The fragments in the order their rows are read."""
        return self._snapshot.manifest.fragments

    @property
    def size(self) -> int:
        """The bytes of the data files, as far as the manifest records them."""
        return self._handle.size()

    # ---- parts

    @property
    def columns(self) -> "Columns":
        """Changes of columns: add, drop, rename, reorder, cast, replace."""
        from lancetable.table.columns import Columns

        return Columns(self._handle)

    @property
    def config(self) -> "Keys":
        """The settings stored with the table."""
        from lancetable.table.config import Keys

        return Keys(self._handle, "config")

    @property
    def metadata(self) -> "Keys":
        """Notes about the table."""
        from lancetable.table.config import Keys

        return Keys(self._handle, "table_metadata")

    @property
    def schema_metadata(self) -> "Keys":
        """Metadata of the schema."""
        from lancetable.table.config import Keys

        return Keys(self._handle, "schema_metadata")

    @property
    def bases(self) -> "Bases":
        """Further folders that hold some of the files, by name."""
        from lancetable.table.bases import Bases

        return Bases(self._handle)

    @property
    def indices(self) -> "Indices":
        """The indices by name."""
        from lancetable.table.indices import Indices

        return Indices(self._handle)

    @property
    def tags(self) -> "Tags":
        """The tags by name: create, move and delete them."""
        from lancetable.table.references import Tags

        return Tags(self._handle)

    @property
    def branches(self) -> "Branches[Self]":
        """The branches by name: create, publish and delete them."""
        from lancetable.table.references import Branches

        return Branches(self._handle, lambda made: type(self)(self._handle.location, made))

    @property
    def inspect(self) -> "Inspection":
        """Versions, fragments, files and references as Arrow tables."""
        from lancetable.table.inspection import Inspection

        return Inspection(self._snapshot)

    @property
    def maintenance(self) -> "Maintenance":
        """Clean up, check and repair the table."""
        from lancetable.table.maintenance import Maintenance

        return Maintenance(self._handle)

    # ---- versions

    def versions(self, *, detail: bool = True) -> "list[VersionInfo]":
        """Return the versions that can be opened, oldest first.

        Without ``detail`` no manifest is read: numbers, paths and sizes only.
        """
        return versions.list_versions(self._snapshot, detail=detail)

    def refresh(self) -> Self:
        """Move to the latest version of the same branch."""
        latest = versions.load(self._handle.location, branch=self.branch)
        old, new = self._snapshot.manifest, latest.manifest
        # A table that was removed and created again may have a version of the same number.
        if (new.version, new.timestamp) != (old.version, old.timestamp):
            self._handle.move(latest)
        return self

    def checkout(
        self,
        version: int | None = None,
        *,
        tag: str | None = None,
        branch: str | None = None,
        as_of: datetime | str | None = None,
    ) -> Self:
        """Move to another version; of this branch unless a tag or a branch is named.

        A time ``as_of`` without an offset is local time.
        """
        if tag is None and branch is None:
            branch = self.branch
        location = self._handle.location
        self._handle.move(
            versions.load(location, version=version, tag=tag, branch=branch, as_of=as_of)
        )
        return self

    def restore(
        self, version: int, *, commit: "CommitOptions | str | None" = None
    ) -> "WriteResult":
        """Make an older version the latest; the versions in between stay."""
        from lancetable.operations.restore import restore

        return self._handle.change(
            lambda snapshot, options: restore(snapshot, version, commit=options.commit), commit
        )

    def history(self, *, limit: int | None = None) -> "History":
        """Return what each version of this branch up to this one did, newest first."""
        from lancetable.commit.history.history import read_history

        return read_history(self._snapshot, limit=limit)

    def diff(self, other: "Table") -> "Difference":
        """Return how the version of another handle differs in columns, rows and files.

        Only metadata is compared; :meth:`changes` returns the rows that changed.
        """
        from lancetable.commit.history.difference import compare

        return compare(self._snapshot, other._snapshot)

    def clone(
        self,
        uri: "str | PathLike[str]",
        *,
        deep: bool = False,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Create a table that starts with this version, and open it.

        A shallow clone refers to the files of this table and needs them; ``deep`` copies them.
        """
        from lancetable.operations.clone import clone, reaching

        here = self._handle.location
        address: object = uri
        if not isinstance(address, str | PathLike) or not str(address):
            raise InputError(f"uri is {uri!r}; give an address or a path for the clone")
        options = here.options if storage_options is None else dict(storage_options)
        location = here.moved(str(uri), options)
        if not deep:
            location = reaching(location, self._snapshot)
        return type(self)(location, clone(self._snapshot, location, deep=deep).snapshot)

    @contextmanager
    def hold(self, *, seconds: int | None = None) -> Iterator[None]:
        """Protect the files of this version from cleanup during a ``with`` block.

        Long scans do so by themselves. ``seconds`` is how long the version stays protected after
        this process exited without releasing its lease; 120 by default.
        """
        from lancetable.commit.leases import reading

        with reading(self._snapshot.store, self.version, seconds=seconds) as hold:
            hold.require()
            yield

    # ---- reading

    def count(self, where: "Where" = None) -> int:
        """Return the number of rows, or of those that match a predicate."""
        if where is not None:
            return self.scan(columns=[], where=where).count()
        return self._handle.count()

    def scan(  # noqa: PLR0913 - the vocabulary of a query
        self,
        columns: "ColumnsArgument" = None,
        *,
        where: "Where" = None,
        limit: int | None = None,
        offset: int = 0,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: "Blobs" = "descriptions",
        fragments: "Sequence[int | Fragment] | None" = None,
        include_deleted: bool = False,
        use_indices: bool = True,
        **options: "Unpack[ScanSettings]",
    ) -> "Scan":
        """Describe rows to read; the result reads them when they are requested.

        Args:
            columns: names and nested paths, or a dict of names and SQL expressions.
            where: a predicate, as SQL text or an Arrow expression.
            limit: the most rows to return.
            offset: how many rows to skip first.
            with_row_id: add the column ``_rowid``.
            with_row_address: add the column ``_rowaddr``.
            blobs: what blob columns hold: ``descriptions`` or ``bytes``.
            fragments: ids or values of the fragments to read, in the order given.
            include_deleted: also return deleted rows that are still in the data files, with a
                null ``_rowid`` and ``_rowaddr``; needs ``with_row_id``.
            use_indices: let scalar indices narrow the rows that are compared with ``where``.
            **options: fields of :class:`lancetable.ScanOptions`, such as ``batch_rows``.
        """
        from lancetable.scan.request import ScanRequest, parse_columns, parse_where, scan_options
        from lancetable.scan.scanner import Scan

        selection = parse_columns(columns)
        request = ScanRequest(
            columns=selection.columns,
            expressions=selection.expressions,
            where=parse_where(where),
            limit=limit,
            offset=offset,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            include_deleted=include_deleted,
            blobs=blobs,
            use_indices=use_indices,
        )
        if fragments is None and not include_deleted:
            readers = self._handle.opened()
        else:
            from lancetable.scan.fragments import readers_of

            readers = readers_of(self._snapshot, fragments, include_deleted=include_deleted)
        return Scan(readers, request, scan_options(options), self._handle.plans)

    def take(
        self,
        offsets: "Numbers | None" = None,
        *,
        row_ids: "Numbers | None" = None,
        row_addresses: "Numbers | None" = None,
        columns: "ColumnsArgument" = None,
    ) -> "pa.Table":
        """Return single rows in the order given, by offset, row id or row address."""
        if (offsets is None) + (row_ids is None) + (row_addresses is None) != 2:
            raise InputError("give exactly one of offsets, row_ids and row_addresses")
        taker = self._handle.taker(columns)
        if offsets is not None:
            return taker.by_offset(offsets)
        if row_ids is not None:
            return taker.by_row_id(row_ids)
        return taker.by_address(row_addresses)

    def head(self, rows: int = 10, *, columns: "ColumnsArgument" = None) -> "pa.Table":
        """Return the first rows."""
        return self.scan(columns, limit=rows).to_arrow()

    def sample(
        self, rows: int, *, seed: int | None = None, columns: "ColumnsArgument" = None
    ) -> "pa.Table":
        """Return rows chosen at random, in table order; at most all of them."""
        if rows < 0:
            raise InputError(f"rows is {rows}; give a number from 0")
        total = self.count()
        import random

        chosen = random.Random(seed).sample(range(total), min(rows, total))  # noqa: S311
        return self.take(sorted(chosen), columns=columns)

    def blobs(
        self,
        column: str,
        offsets: "Numbers | None" = None,
        *,
        row_ids: "Numbers | None" = None,
        row_addresses: "Numbers | None" = None,
        allow_external: bool = False,
    ) -> "list[BlobFile | None]":
        """Return the blobs of single rows as files, None for a null.

        ``allow_external`` also opens files outside the table; only for writers you trust.
        """
        from lancetable.format.schema.project import resolve
        from lancetable.fragment.blobs import blob_field
        from lancetable.scan.take import open_blobs

        field = blob_field(resolve(self._snapshot.manifest.schema, column))
        rows = self.take(
            offsets, row_ids=row_ids, row_addresses=row_addresses, columns=[column, "_rowaddr"]
        )
        return open_blobs(self._handle.opened(), field, rows, allow_external=allow_external)

    def changes(
        self,
        from_version: int,
        to_version: int | None = None,
        *,
        columns: "ColumnsArgument" = None,
        with_row_id: bool = False,
        blobs: "Blobs" = "descriptions",
        **options: "Unpack[ScanSettings]",
    ) -> "Changes":
        """Describe the rows that the versions after ``from_version`` changed.

        Applied in order, the changes turn the rows of ``from_version`` (0 for an empty table) into
        those of ``to_version``, by default this one. Each row has ``_change_type`` (``insert``,
        ``delete``, ``update_preimage`` or ``update_postimage``), ``_commit_version`` and
        ``_commit_timestamp``. Without stable row ids an update that moved rows is a delete and an
        insert. The other arguments are those of :meth:`scan`.
        """
        from lancetable.operations.feed.feed import Changes
        from lancetable.scan.request import ScanRequest, parse_columns, scan_options

        snapshot = self._snapshot
        if to_version is not None and to_version != snapshot.version:
            location = self._handle.location
            snapshot = versions.load(location, version=to_version, branch=self.branch)
        selection = parse_columns(columns)
        request = ScanRequest(
            columns=selection.columns,
            expressions=selection.expressions,
            with_row_id=with_row_id,
            blobs=blobs,
        )
        return Changes(snapshot, from_version, request, scan_options(options))

    # ---- writing

    def append(
        self,
        data: object,
        *,
        merge_schema: bool = False,
        commit: "CommitOptions | str | None" = None,
        **options: "Unpack[WriteSettings]",
    ) -> "WriteResult":
        """Add rows.

        Columns are matched by name; nullable ones may be missing. Types are cast when nothing is
        lost, and the result lists the casts.

        Args:
            data: rows of any kind: Arrow, pandas, polars, dicts, an iterator of batches.
            merge_schema: add the columns that the table lacks, in the same version.
            commit: message or options of the commit.
            **options: fields of :class:`lancetable.WriteOptions`, such as ``max_rows_per_file``.
        """
        from lancetable.operations.append import append

        return self._handle.change(
            lambda snapshot, change: append(
                snapshot, data, merge_schema=merge_schema, write=change.write, commit=change.commit
            ),
            commit,
            options,
        )

    def overwrite(
        self,
        data: object,
        *,
        where: "Where" = None,
        check: bool = True,
        commit: "CommitOptions | str | None" = None,
        **options: "Unpack[WriteSettings]",
    ) -> "WriteResult":
        """Replace all rows and the schema, or with ``where`` the rows that match a predicate.

        With ``where`` every new row must match the predicate too, so that repeating the call
        leaves each row once; ``check=False`` writes them unchecked. A predicate that is null for
        a row does not match it.
        """
        from lancetable.operations.overwrite import overwrite, overwrite_where
        from lancetable.scan.request import parse_where

        matching = parse_where(where)
        if matching is not None:
            return self._handle.change(
                lambda snapshot, change: overwrite_where(
                    snapshot, data, matching, change, check=check
                ),
                commit,
                options,
            )
        return self._handle.change(
            lambda snapshot, change: overwrite(
                snapshot, data, write=change.write, commit=change.commit
            ),
            commit,
            options,
        )

    def truncate(self, *, commit: "CommitOptions | str | None" = None) -> "WriteResult":
        """Remove all rows; the result counts them."""
        from lancetable.operations.overwrite import truncate

        return self._handle.change(
            lambda snapshot, change: truncate(snapshot, commit=change.commit), commit
        )

    def delete(
        self, where: "Where", *, commit: "CommitOptions | str | None" = None
    ) -> "DeleteResult":
        """Delete the rows that match a predicate; without a match there is no new version."""
        from lancetable.operations.delete import delete

        if where is None:
            raise InputError("where is None; give a predicate, or use truncate() for all rows")
        return self._handle.change(lambda snapshot, change: delete(snapshot, where, change), commit)

    def update(
        self,
        set: "Mapping[str, str | Expression]",  # noqa: A002 - the word of SQL
        where: "Where" = None,
        *,
        mode: str = "rows",
        commit: "CommitOptions | str | None" = None,
        **options: "Unpack[WriteSettings]",
    ) -> "UpdateResult":
        """Set columns to SQL expressions, in all rows or where a predicate matches.

        Args:
            set: the new value of each column, as SQL over the old values. A path such as
                ``address.city`` sets a part of a struct.
            where: which rows.
            mode: ``rows`` rewrites the changed rows; ``columns`` rewrites the changed columns of
                whole fragments, which is faster when most rows but few columns change.
            commit: message or options of the commit.
            **options: fields of :class:`lancetable.WriteOptions`.
        """
        from lancetable.operations.update import update, update_columns

        recipes = {"rows": update, "columns": update_columns}
        if mode not in recipes:
            raise InputError(f"mode is {mode!r}; use one of {', '.join(recipes)}")
        return self._handle.change(
            lambda snapshot, change: recipes[mode](snapshot, set, where, change),
            commit,
            options,
            moves_rows=True,
        )

    delete_uncommitted = _uncommitted(delete)
    update_uncommitted = _uncommitted(update)

    def merge(
        self,
        source: object,
        on: "str | Sequence[str]",
        *,
        merge_schema: bool = False,
        commit: "CommitOptions | str | None" = None,
        **options: "Unpack[WriteSettings]",
    ) -> "MergeBuilder":
        """Describe a merge of rows: add clauses to the result and call ``execute``.

        ``on`` names the key columns; ``merge_schema`` adds the columns that the table lacks.
        ``execute_uncommitted`` leaves the commit to :meth:`commit_prepared`.
        """
        from lancetable.table.merging import merge_builder

        builder = merge_builder(self._handle, source, on, commit, options)
        return builder.with_schema_evolution() if merge_schema else builder

    def compact(
        self,
        *,
        where: "Where" = None,
        dry_run: bool = False,
        progress: "bool | ProgressCallback" = False,
        runner: "Runner | None" = None,
        commit: "CommitOptions | str | None" = None,
        **options: "Unpack[CompactSettings]",
    ) -> "CompactResult":
        """Join small fragments and remove deleted rows from the files; the rows stay the same.

        Other writers may continue: rows that they delete or update meanwhile are deleted in the
        new fragments too. Without anything to do there is no new version.

        Args:
            where: rewrite only fragments with a row that matches this predicate.
            dry_run: only plan; ``explain()`` of the result returns the plan as text.
            progress: called with the number of rows rewritten; True shows a bar.
            runner: runs the tasks; by default threads of this process.
            commit: message or options of the commit.
            **options: fields of :class:`lancetable.CompactOptions`, such as ``target_rows``.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.operations.compact.options import CompactOptions
        from lancetable.operations.compact.run import CompactRun, compact, foreseen, plan_for
        from lancetable.options import parse_options

        settled = parse_options(CompactOptions, options)
        with reporting(progress, "compacting") as callback:
            run = CompactRun(runner, CommitOptions.of(commit), callback)
            if dry_run:
                return foreseen(plan_for(self._snapshot, where, settled, run))
            return self._handle.done(compact(self._snapshot, where, settled, run))

    # ---- writing in steps

    def write_fragments(self, data: object, **options: "Unpack[WriteSettings]") -> "NewFragments":
        """Write rows as fragments that :meth:`commit_fragments` adds to the table.

        The value can be pickled, so that several processes write and one commits.
        """
        from lancetable.operations.uncommitted import write_new_fragments

        with writing(options) as write:
            return write_new_fragments(self._snapshot, data, write=write)

    def commit_fragments(
        self,
        fragments: "Sequence[NewFragments]",
        *,
        mode: str = "append",
        commit: "CommitOptions | str | None" = None,
    ) -> "WriteResult":
        """Commit what :meth:`write_fragments` returned, all of it or nothing.

        ``mode`` is ``append``, or ``overwrite`` to replace all rows.
        """
        from lancetable.operations.uncommitted import NewFragments, commit_new_fragments

        if mode not in {"append", "overwrite"}:
            raise InputError(f"mode is {mode!r}; use 'append' or 'overwrite'")
        given: Any = fragments
        if not isinstance(given, Sequence) or not all(
            isinstance(one, NewFragments) for one in given
        ):
            raise InputError("fragments must be a list of what write_fragments() returned")
        return self._handle.change(
            lambda snapshot, change: commit_new_fragments(
                snapshot, fragments, overwrite=mode == "overwrite", commit=change.commit
            ),
            commit,
        )

    def commit_prepared(
        self,
        prepared: "PreparedTransaction[Result]",
        *,
        commit: "CommitOptions | str | None" = None,
    ) -> "Result":
        """Commit a prepared delete, update or merge, with the usual conflict rules.

        Its files stay when the commit fails. Files that are never committed are removed by
        a cleanup once they are older than ``unverified_after``.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.operations.prepared_transaction import PreparedTransaction, commit_prepared

        given: Any = prepared
        if not isinstance(given, PreparedTransaction):
            raise InputError(
                f"prepared is a {type(given).__name__}; give what execute_uncommitted(), "
                "delete_uncommitted() or update_uncommitted() returned"
            )
        done = commit_prepared(self._snapshot, prepared, CommitOptions.of(commit))
        self._handle.move(done.snapshot)
        return done.result

    # ---- protocols

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        from lancetable.table.repr import as_text, portrait

        return as_text(portrait(self._handle))

    def _repr_html_(self) -> str:
        from lancetable.table.repr import as_html, portrait

        return as_html(portrait(self._handle))

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self._handle.location, self.version, self.branch)


def _reopened(location: TableLocation, version: int, branch: str | None) -> Table:
    return Table(location, versions.load(location, version=version, branch=branch))
