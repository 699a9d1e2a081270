"""What can be done to rows that are there: delete, update, merge."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from lancetable.errors import InputError
from lancetable.table.argument_errors import explaining
from lancetable.table.writing import WritingTable, commit_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from lancetable.commit.options import CommitOptions
    from lancetable.expression import Expression
    from lancetable.fragment.writer import WriteOptions
    from lancetable.operations.merge.builder import MergeBuilder
    from lancetable.operations.merge.clauses import Clause
    from lancetable.operations.merge.run import MergeOptions
    from lancetable.operations.prepared_transaction import PreparedTransaction, Result
    from lancetable.operations.results import (
        ChangeOptions,
        DeleteResult,
        Done,
        MergeResult,
        UpdateResult,
    )
    from lancetable.scan.request import Where


def change_options(write: "WriteOptions | None", commit: "CommitOptions") -> "ChangeOptions":
    """Return how a change is made."""
    from lancetable.operations.results import ChangeOptions

    if write is not None and write.bases:
        raise InputError(
            "rows that are changed stay with the table itself; bases are for rows that are "
            "created, appended or overwritten"
        )
    return ChangeOptions(commit=commit) if write is None else ChangeOptions(write, commit)


def _update_recipe(mode: str) -> "Callable[..., Done[UpdateResult]]":
    """Return what carries an update out."""
    from lancetable.operations.update import update, update_columns

    recipes = {"rows": update, "columns": update_columns}
    if mode not in recipes:
        raise InputError(f"mode is {mode!r}; use one of {', '.join(recipes)}")
    return recipes[mode]


@explaining
class ChangingTable(WritingTable):
    """A table whose rows can be deleted, updated and merged with others."""

    __slots__ = ()

    def delete(
        self,
        where: "Where",
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "DeleteResult":
        """Delete the rows for which a predicate is true; without any there is no new version.

        Raises:
            ExpressionError: the predicate cannot be understood or does not fit the columns.
        """
        from lancetable.operations.delete import delete

        if where is None:
            raise InputError("say which rows to delete; truncate() removes all")
        options = change_options(None, commit_options(commit, commit_message, properties))
        done = delete(self._snapshot, where, options)
        self._move(done.snapshot)
        return done.result

    def delete_uncommitted(
        self,
        where: "Where",
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "PreparedTransaction[DeleteResult]":
        """Write the files of a delete without making a version; see :meth:`commit_prepared`.

        Raises:
            ExpressionError: the predicate cannot be understood or does not fit the columns.
        """
        from lancetable.operations.delete import delete
        from lancetable.operations.prepared_transaction import prepare_transaction

        if where is None:
            raise InputError("where is None; give a predicate, such as 'true' for all rows")
        options = change_options(None, commit_options(commit, commit_message, properties))
        return prepare_transaction(options, lambda change: delete(self._snapshot, where, change))

    def update(  # noqa: PLR0913 - each has a default
        self,
        set: "Mapping[str, str | Expression]",  # noqa: A002 - the word of SQL
        where: "Where" = None,
        *,
        mode: str = "rows",
        write: "WriteOptions | None" = None,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "UpdateResult":
        """Set columns to SQL expressions, in all rows or where a predicate is true.

        Args:
            set: the new value of each column, as SQL over the old values. A path such as
                ``address.city`` sets a part of a struct; a struct that is null becomes one with
                that part, unless the part is null too.
            where: which rows.
            mode: ``rows`` writes the changed rows anew; ``columns`` writes the changed columns of
                whole fragments, which pays when most rows change but few columns.
            write: how rows are divided into files.
            commit: how long to try.
            commit_message: a note for the history.
            properties: further notes for the history.

        Raises:
            SchemaError: there is no such column.
            ExpressionError: an expression cannot be understood or computed.
            InputError: a value does not fit its column.
        """
        options = change_options(write, commit_options(commit, commit_message, properties))
        done = _update_recipe(mode)(self._snapshot, set, where, options)
        self._move(done.snapshot)
        return done.result

    def update_uncommitted(  # noqa: PLR0913 - each has a default
        self,
        set: "Mapping[str, str | Expression]",  # noqa: A002 - the word of SQL
        where: "Where" = None,
        *,
        mode: str = "rows",
        write: "WriteOptions | None" = None,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "PreparedTransaction[UpdateResult]":
        """Write the files of an update without making a version; see :meth:`commit_prepared`.

        The arguments are those of :meth:`update`.

        Raises:
            SchemaError: there is no such column.
            ExpressionError: an expression cannot be understood or computed.
            InputError: a value does not fit its column.
        """
        from lancetable.operations.prepared_transaction import prepare_transaction

        recipe = _update_recipe(mode)
        options = change_options(write, commit_options(commit, commit_message, properties))
        return prepare_transaction(
            options, lambda change: recipe(self._snapshot, set, where, change)
        )

    def merge(  # noqa: PLR0913 - each has a default
        self,
        source: object,
        on: "str | Sequence[str]",
        *,
        merge_schema: bool = False,
        write: "WriteOptions | None" = None,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "MergeBuilder":
        """Describe a merge of rows into the table; its clauses say what to do, ``execute`` does it.

        ``execute_uncommitted`` does the work and leaves the commit to :meth:`commit_prepared`.

        Args:
            source: anything that holds rows.
            on: the columns that tell which rows belong together.
            merge_schema: add the columns that the table lacks, as ``with_schema_evolution()`` does.
            write: how rows are divided into files.
            commit: how long to try.
            commit_message: a note for the history.
            properties: further notes for the history.
        """
        from lancetable.operations.merge.builder import MergeBuilder
        from lancetable.operations.merge.run import MergeOptions, merge

        keys = [on] if isinstance(on, str) else list(on)

        def run(clauses: "tuple[Clause, ...]", options: "MergeOptions") -> "Done[MergeResult]":
            return merge(self._snapshot, source, keys, clauses, options)

        change = change_options(write, commit_options(commit, commit_message, properties))
        settled = MergeOptions(change, evolves_schema=merge_schema)
        return MergeBuilder(run, settled, moved=self._move)

    def commit_prepared(
        self,
        prepared: "PreparedTransaction[Result]",
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "Result":
        """Make a prepared delete, update or merge the next version.

        It builds on the version that was read when it was prepared; the usual conflict rules apply
        to versions that others made since. Its files stay when the commit fails. Those of a
        transaction that is never committed are removed by :meth:`cleanup` when they are older than
        its ``unverified_after``; a transaction has to be committed before that.

        Args:
            prepared: what ``execute_uncommitted`` of a merge, ``delete_uncommitted`` or
                ``update_uncommitted`` returned, here or elsewhere.
            commit: how long to try.
            commit_message: a note for the history, in place of the one given when preparing.
            properties: further notes for the history, beside those given when preparing.

        Raises:
            InputError: the transaction belongs to another table or is committed already.
            ConflictError: other writers changed what it builds on; prepare it again.
            UnknownOutcomeError: the store failed; committing again tells whether it was made.
        """
        from lancetable.operations.prepared_transaction import PreparedTransaction, commit_prepared

        given = cast("object", prepared)
        if not isinstance(given, PreparedTransaction):
            raise InputError(
                f"prepared is a {type(given).__name__}; give what execute_uncommitted(), "
                "delete_uncommitted() or update_uncommitted() returned"
            )
        options = commit_options(commit, commit_message, properties)
        done = commit_prepared(self._snapshot, prepared, options)
        self._move(done.snapshot)
        return done.result
