"""What can be done to the columns of a table; each change moves the handle to its version."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lancetable.errors import InputError
from lancetable.table.argument_errors import explaining
from lancetable.table.changing import ChangingTable, change_options
from lancetable.table.writing import commit_options

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lancetable.commit.options import CommitOptions
    from lancetable.expression import Expression
    from lancetable.operations.columns.add import FunctionOptions
    from lancetable.operations.results import ChangeOptions, ColumnsResult, Done, UpdateResult


@explaining
class ColumnsTable(ChangingTable):
    """A table whose columns can be added, changed and dropped.

    Columns inside structs are named by their path, such as ``a.b.c``.
    """

    __slots__ = ()

    def add_columns(
        self,
        columns: object,
        *,
        on: "str | Sequence[str] | None" = None,
        function: "FunctionOptions | None" = None,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "ColumnsResult":
        """Add columns.

        Args:
            columns: a pyarrow field or schema for columns of nulls, a dict of names and SQL
                expressions, a function from a batch to new columns, or with ``on`` other rows.
                A ``pyarrow.RecordBatchReader``, a scan, or an iterator of batches gives new
                columns without a key: one row for each row of the table, in the order of a scan
                of this version. It is read once, and only a part of it is in memory at a time.
            on: key columns that tell which of the other rows belong to which row; ``_rowaddr``
                and ``_rowid`` stand for the row itself.
            function: what the function gets, what it gives, and where its results are kept.
            commit: how long to try.
            commit_message: a note for the history.
            properties: further notes for the history.

        Raises:
            SchemaError: a column is there already or cannot be stored.
            ExpressionError: an expression cannot be understood or computed.
            InputError: a stream of batches has fewer or more rows than the table.
            ConflictError: another writer added rows or columns while a stream was read.
        """
        options = change_options(None, commit_options(commit, commit_message, properties))
        if on is not None:
            from lancetable.operations.columns.add import add_joined_columns

            keys = [on] if isinstance(on, str) else list(on)
            return self._altered(add_joined_columns(self._snapshot, columns, keys, options))
        if isinstance(columns, Mapping):
            from lancetable.operations.columns.add import add_computed_columns

            return self._altered(add_computed_columns(self._snapshot, columns, options))
        if callable(columns):
            return self._altered(self._add_by(columns, function, options))
        if _is_stream(columns):
            from lancetable.operations.columns.stream import add_streamed_columns

            return self._altered(add_streamed_columns(self._snapshot, columns, options))
        return self._altered(self._add_nulls(columns, options))

    def _add_by(
        self,
        columns: "Callable[[pa.RecordBatch], object]",
        function: "FunctionOptions | None",
        options: "ChangeOptions",
    ) -> "Done[ColumnsResult]":
        from dataclasses import replace

        from lancetable.operations.columns.add import FunctionOptions, add_columns_by

        settled = replace(function or FunctionOptions(), change=options)
        return add_columns_by(self._snapshot, columns, settled)

    def _add_nulls(self, columns: object, options: "ChangeOptions") -> "Done[ColumnsResult]":
        import pyarrow as pa

        from lancetable.operations.columns.add import add_null_columns

        fields = [columns] if isinstance(columns, pa.Field) else columns
        if not isinstance(fields, Sequence | pa.Schema) or not all(
            isinstance(one, pa.Field) for one in fields
        ):
            raise InputError(
                "give pyarrow fields, a dict of SQL expressions, a function, a reader of batches"
                " in row order, or rows with on=[…]"
            )
        return add_null_columns(self._snapshot, pa.schema(list(fields)), options)

    def drop_columns(
        self,
        names: Sequence[str],
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "ColumnsResult":
        """Drop columns; their indices go too, their bytes stay until the files are rewritten.

        Raises:
            SchemaError: a column is unknown, or nothing would be left.
        """
        from lancetable.operations.columns.alter import drop_columns

        options = change_options(None, commit_options(commit, commit_message, properties))
        return self._altered(drop_columns(self._snapshot, names, options))

    def rename_column(
        self,
        old: str,
        new: str,
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "ColumnsResult":
        """Give a column another name; inside a struct ``new`` is the last step of its path.

        Raises:
            SchemaError: there is no such column, or the name is taken.
        """
        from lancetable.operations.columns.alter import rename_column

        options = change_options(None, commit_options(commit, commit_message, properties))
        return self._altered(rename_column(self._snapshot, old, new, options))

    def reorder_columns(
        self,
        names: Sequence[str],
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "ColumnsResult":
        """Put the columns in another order, in which each is named once.

        Raises:
            SchemaError: a column is unknown, left out or named twice.
        """
        from lancetable.operations.columns.alter import reorder_columns

        options = change_options(None, commit_options(commit, commit_message, properties))
        return self._altered(reorder_columns(self._snapshot, names, options))

    def set_nullable(
        self,
        name: str,
        *,
        nullable: bool,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "ColumnsResult":
        """Allow nulls in a column, or forbid them if there are none.

        Raises:
            SchemaError: there is no such column.
            InputError: nulls are to be forbidden, and there are some.
        """
        from lancetable.operations.columns.alter import set_nullable

        options = change_options(None, commit_options(commit, commit_message, properties))
        return self._altered(set_nullable(self._snapshot, name, nullable=nullable, options=options))

    def cast_column(
        self,
        name: str,
        type: "pa.DataType",  # noqa: A002 - what it is
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "ColumnsResult":
        """Give a column another type; no value may be lost.

        Raises:
            SchemaError: there is no such column, or it cannot have the type.
            InputError: a value would be lost.
        """
        from lancetable.operations.columns.cast import cast_column

        options = change_options(None, commit_options(commit, commit_message, properties))
        return self._altered(cast_column(self._snapshot, name, type, options))

    def replace_columns(
        self,
        values: "Mapping[str, str | Expression] | object",
        *,
        on: "str | Sequence[str] | None" = None,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "UpdateResult":
        """Replace whole columns, by SQL expressions or with ``on`` by those of other rows.

        Raises:
            SchemaError: a column is unknown.
            InputError: a value does not fit, or a row finds no value or several.
        """
        from lancetable.operations.columns.replace import replace_columns, replace_columns_from

        options = change_options(None, commit_options(commit, commit_message, properties))
        if on is not None:
            keys = [on] if isinstance(on, str) else list(on)
            done = replace_columns_from(self._snapshot, values, keys, options)
        elif isinstance(values, Mapping):
            done = replace_columns(self._snapshot, values, options)
        else:
            raise InputError("give a dict of columns and SQL expressions, or rows with on=[…]")
        self._move(done.snapshot)
        return done.result

    def _altered(self, done: "Done[ColumnsResult]") -> "ColumnsResult":
        self._move(done.snapshot)
        return done.result


def _is_stream(columns: object) -> bool:
    """Say whether new columns come as batches that are read once."""
    import pyarrow as pa

    from lancetable.scan.scanner import Scan

    return isinstance(columns, pa.RecordBatchReader | Iterator | Scan)
