"""Columns of a table: add, drop, rename, reorder, cast and replace them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lancetable.errors import InputError
from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lancetable.commit.options import CommitOptions
    from lancetable.commit.snapshot import Snapshot
    from lancetable.expression import Expression
    from lancetable.operations.columns.add import FunctionOptions
    from lancetable.operations.results import (
        ChangeOptions,
        ColumnsResult,
        Done,
        UpdateResult,
        WriteResult,
    )


@explaining
class Columns:
    """Changes of the columns of a table; those inside structs are named by path: ``a.b.c``."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def add(
        self,
        columns: object,
        *,
        on: "str | Sequence[str] | None" = None,
        function: "FunctionOptions | None" = None,
        commit: "CommitOptions | str | None" = None,
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
            commit: message or options of the commit.

        Raises:
            SchemaError: a column is there already or cannot be stored.
            ExpressionError: an expression cannot be understood or computed.
            InputError: a stream of batches has fewer or more rows than the table.
            ConflictError: another writer added rows or columns while a stream was read.
        """
        return self._handle.change(_adding(columns, on, function), commit)

    def drop(
        self,
        names: Sequence[str],
        *,
        commit: "CommitOptions | str | None" = None,
    ) -> "ColumnsResult":
        """Drop columns; their indices go too, their bytes stay until the files are rewritten.

        Raises:
            SchemaError: a column is unknown, or nothing would be left.
        """
        from lancetable.operations.columns.alter import drop_columns

        return self._handle.change(
            lambda snapshot, options: drop_columns(snapshot, names, options), commit
        )

    def rename(
        self,
        old: str,
        new: str,
        *,
        commit: "CommitOptions | str | None" = None,
    ) -> "ColumnsResult":
        """Give a column another name; inside a struct ``new`` is the last step of its path.

        Raises:
            SchemaError: there is no such column, or the name is taken.
        """
        from lancetable.operations.columns.alter import rename_column

        return self._handle.change(
            lambda snapshot, options: rename_column(snapshot, old, new, options), commit
        )

    def reorder(
        self,
        names: Sequence[str],
        *,
        commit: "CommitOptions | str | None" = None,
    ) -> "ColumnsResult":
        """Put the columns in another order, in which each is named once.

        Raises:
            SchemaError: a column is unknown, left out or named twice.
        """
        from lancetable.operations.columns.alter import reorder_columns

        return self._handle.change(
            lambda snapshot, options: reorder_columns(snapshot, names, options), commit
        )

    def set_nullable(
        self,
        name: str,
        *,
        nullable: bool,
        commit: "CommitOptions | str | None" = None,
    ) -> "ColumnsResult":
        """Allow nulls in a column, or forbid them if there are none.

        Raises:
            SchemaError: there is no such column.
            InputError: nulls are to be forbidden, and there are some.
        """
        from lancetable.operations.columns.alter import set_nullable

        return self._handle.change(
            lambda snapshot, options: set_nullable(
                snapshot, name, nullable=nullable, options=options
            ),
            commit,
        )

    def cast(
        self,
        name: str,
        type: "pa.DataType",  # noqa: A002 - what it is
        *,
        commit: "CommitOptions | str | None" = None,
    ) -> "ColumnsResult":
        """Give a column another type; no value may be lost.

        Raises:
            SchemaError: there is no such column, or it cannot have the type.
            InputError: a value would be lost.
        """
        from lancetable.operations.columns.alter import cast_column

        return self._handle.change(
            lambda snapshot, options: cast_column(snapshot, name, type, options), commit
        )

    def replace(
        self,
        values: "Mapping[str, str | Expression] | object",
        *,
        on: "str | Sequence[str] | None" = None,
        commit: "CommitOptions | str | None" = None,
    ) -> "UpdateResult":
        """Replace whole columns, by SQL expressions or with ``on`` by those of other rows.

        Raises:
            SchemaError: a column is unknown.
            InputError: a value does not fit, or a row finds no value or several.
        """
        from lancetable.operations.columns.replace import replace_columns, replace_columns_from

        if on is not None:
            keys = _keys(on)
            return self._handle.change(
                lambda snapshot, options: replace_columns_from(snapshot, values, keys, options),
                commit,
            )
        if not isinstance(values, Mapping):
            raise InputError("give a dict of columns and SQL expressions, or rows with on=[…]")
        return self._handle.change(
            lambda snapshot, options: replace_columns(snapshot, values, options), commit
        )

    def update_metadata(
        self,
        columns: "Mapping[str, Mapping[str, str | None]]",
        *,
        replace_all: bool = False,
        commit: "CommitOptions | str | None" = None,
    ) -> "WriteResult":
        """Set metadata of columns; a value of None removes the key.

        Args:
            columns: the keys to set or to remove, by the path of the column.
            replace_all: also remove the keys that are not named.
            commit: message or options of the commit.

        Raises:
            SchemaError: there is no such column.
        """
        from lancetable.operations.config import configure, field_update

        return self._handle.change(
            lambda snapshot, options: configure(
                snapshot,
                lambda latest: field_update(latest, columns, replace=replace_all),
                commit=options.commit,
            ),
            commit,
        )


def _adding(
    columns: object, on: "str | Sequence[str] | None", function: "FunctionOptions | None"
) -> "Callable[[Snapshot, ChangeOptions], Done[ColumnsResult]]":
    """Return the operation that adds columns of any kind."""
    from lancetable.operations.columns import add

    if on is not None:
        keys = _keys(on)
        return lambda snapshot, change: add.add_joined_columns(snapshot, columns, keys, change)
    if isinstance(columns, Mapping):
        return lambda snapshot, change: add.add_computed_columns(snapshot, columns, change)
    if callable(columns):
        given = function or add.FunctionOptions()
        return lambda snapshot, change: add.add_columns_by(
            snapshot, columns, replace(given, change=change)
        )
    if _is_stream(columns):
        from lancetable.operations.columns.stream import add_streamed_columns

        return lambda snapshot, change: add_streamed_columns(snapshot, columns, change)
    schema = _null_columns(columns)
    return lambda snapshot, change: add.add_null_columns(snapshot, schema, change)


def _null_columns(columns: object) -> "pa.Schema":
    import pyarrow as pa

    fields = [columns] if isinstance(columns, pa.Field) else columns
    if not isinstance(fields, Sequence | pa.Schema) or not all(
        isinstance(one, pa.Field) for one in fields
    ):
        raise InputError(
            "give pyarrow fields, a dict of SQL expressions, a function, a reader of batches"
            " in row order, or rows with on=[…]"
        )
    return pa.schema(list(fields))


def _keys(on: "str | Sequence[str]") -> list[str]:
    return [on] if isinstance(on, str) else list(on)


def _is_stream(columns: object) -> bool:
    """Return whether new columns come as batches that are read once."""
    import pyarrow as pa

    from lancetable.scan.scanner import Scan

    return isinstance(columns, pa.RecordBatchReader | Iterator | Scan)
