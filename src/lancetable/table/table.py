"""The class Table: one version of a table, and the operations that change it."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, Unpack, cast

from lancetable.commit import versions
from lancetable.errors import InputError
from lancetable.store import TableLocation
from lancetable.table.argument_errors import explaining
from lancetable.table.config import Bases, Keys
from lancetable.table.handle import PreparingHandle, reporting, writing
from lancetable.table.version import TableVersion

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.expression import Expression
    from lancetable.fragment.write.progress import ProgressCallback
    from lancetable.operations.compact.options import CompactResult
    from lancetable.operations.merge.run import MergeBuilder
    from lancetable.operations.prepared_transaction import NewFragments, PreparedTransaction, Result
    from lancetable.operations.results import DeleteResult, UpdateResult, WriteResult
    from lancetable.operations.run.runner import Runner
    from lancetable.scan.request import Where
    from lancetable.table.columns import Columns
    from lancetable.table.indices import Indices
    from lancetable.table.maintenance import Maintenance
    from lancetable.table.references import Branches, Tags
    from lancetable.table.settings import CompactSettings, WriteSettings

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
class Table(TableVersion):
    """One version of a table; ``refresh``, ``checkout`` and every change move it to another.

    Every change takes ``commit``: a message for the history, or :class:`CommitOptions`. Options of
    writes, scans and compactions are keyword arguments; the classes ``WriteOptions``,
    ``ScanOptions`` and ``CompactOptions`` describe them.
    """

    __slots__ = ()

    # ---- parts

    @property
    def columns(self) -> "Columns":
        """Changes of columns: add, drop, rename, reorder, cast, replace."""
        from lancetable.table.columns import Columns

        return Columns(self._handle)

    @property
    def config(self) -> Keys:
        """The settings stored with the table."""
        return Keys(self._handle, "config")

    @property
    def metadata(self) -> Keys:
        """Notes about the table."""
        return Keys(self._handle, "table_metadata")

    @property
    def schema_metadata(self) -> Keys:
        """Metadata of the schema."""
        return Keys(self._handle, "schema_metadata")

    @property
    def bases(self) -> Bases:
        """Further folders that hold some of the files, by name."""
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
    def maintenance(self) -> "Maintenance":
        """Clean up, check and repair the table."""
        from lancetable.table.maintenance import Maintenance

        return Maintenance(self._handle)

    # ---- versions

    def restore(
        self, version: int, *, commit: "CommitOptions | str | None" = None
    ) -> "WriteResult":
        """Make an older version the latest; the versions in between stay."""
        from lancetable.operations.restore import restore

        return self._handle.change(
            lambda snapshot, options: restore(snapshot, version, commit=options.commit), commit
        )

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
        from lancetable.operations.compact.run import compact, foreseen, plan_for
        from lancetable.operations.results import RunOptions
        from lancetable.options import parse_options

        settled = parse_options(CompactOptions, options)
        with reporting(progress, "compacting") as callback:
            run = RunOptions(runner, CommitOptions.of(commit), callback)
            if dry_run:
                return foreseen(plan_for(self._snapshot, where, settled, run))
            return self._handle.done(compact(self._snapshot, where, settled, run))

    # ---- writing in steps

    def write_fragments(self, data: object, **options: "Unpack[WriteSettings]") -> "NewFragments":
        """Write rows as fragments that :meth:`commit_fragments` adds to the table.

        The value can be pickled, so that several processes write and one commits.
        """
        from lancetable.operations.prepared_transaction import write_new_fragments

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
        from lancetable.operations.prepared_transaction import NewFragments, commit_new_fragments

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

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self._handle.location, self.version, self.branch)


def _reopened(location: TableLocation, version: int, branch: str | None) -> Table:
    return Table(location, versions.load(location, version=version, branch=branch))
