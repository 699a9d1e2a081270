"""What can be done to rows that are there: delete, update, merge."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lancetable.errors import InputError
from lancetable.table.door import explaining
from lancetable.table.writing import WritingTable, commit_options

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.expression import Expression
    from lancetable.fragment.writer import WriteOptions
    from lancetable.operations.changes import (
        ChangeOptions,
        DeleteResult,
        MergeResult,
        UpdateResult,
    )
    from lancetable.operations.clauses import Clause
    from lancetable.operations.merge import MergeOptions
    from lancetable.operations.merge_builder import MergeBuilder
    from lancetable.scan.request import Where


def change_options(write: "WriteOptions | None", commit: "CommitOptions") -> "ChangeOptions":
    """Return how a change is made."""
    from lancetable.operations.changes import ChangeOptions

    if write is not None and write.bases:
        raise InputError(
            "rows that are changed stay with the table itself; bases are for rows that are "
            "created, appended or overwritten"
        )
    return ChangeOptions(commit=commit) if write is None else ChangeOptions(write, commit)


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
        from lancetable.operations.update import update
        from lancetable.operations.update_columns import update_columns

        recipes = {"rows": update, "columns": update_columns}
        if mode not in recipes:
            raise InputError(f"mode is {mode!r}; use one of {', '.join(recipes)}")
        options = change_options(write, commit_options(commit, commit_message, properties))
        done = recipes[mode](self._snapshot, set, where, options)
        self._move(done.snapshot)
        return done.result

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

        Args:
            source: anything that holds rows.
            on: the columns that tell which rows belong together.
            merge_schema: add the columns that the table lacks, as ``with_schema_evolution()`` does.
            write: how rows are divided into files.
            commit: how long to try.
            commit_message: a note for the history.
            properties: further notes for the history.
        """
        from lancetable.operations.merge import MergeOptions, merge
        from lancetable.operations.merge_builder import MergeBuilder

        keys = [on] if isinstance(on, str) else list(on)

        def run(clauses: "tuple[Clause, ...]", options: "MergeOptions") -> "MergeResult":
            done = merge(self._snapshot, source, keys, clauses, options)
            self._move(done.snapshot)
            return done.result

        change = change_options(write, commit_options(commit, commit_message, properties))
        return MergeBuilder(run, MergeOptions(change, evolves_schema=merge_schema))
