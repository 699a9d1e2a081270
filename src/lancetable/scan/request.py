"""Parse and check the request and the options of a scan."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias, get_args

import pyarrow.compute as pc

from lancetable.errors import InputError
from lancetable.expression import Expression, from_arrow, parse
from lancetable.format.schema.model import Blobs
from lancetable.options import check_options, option, parse_options

Where: TypeAlias = str | pc.Expression | Expression | None
ColumnsArgument: TypeAlias = Sequence[str] | Mapping[str, str | Expression] | None

KiB = 1024
MiB = 1024 * KiB


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """Options of a scan; none of them changes the rows that it returns."""

    batch_rows: int = option(64 * KiB, minimum=1, help="The most rows of one batch.")
    batch_bytes: int = option(
        8 * MiB,
        unit="bytes",
        minimum=1,
        help="About the most bytes that are decoded at a time; no batch is much larger.",
    )
    memory_bytes: int = option(
        64 * MiB,
        unit="bytes",
        minimum=1,
        help="About the most bytes decoded ahead of the reader of the batches.",
    )
    strict: bool = option(
        False,  # noqa: FBT003 - the default
        help="Return batches of exactly batch_rows rows, except the last, whatever their bytes.",
    )
    threads: int = option(
        default_factory=lambda: min(os.cpu_count() or 1, 8),
        minimum=1,
        help="How many threads decode; tables of a few megabytes are read by the calling thread.",
    )
    lease_seconds: int | None = option(
        None,
        minimum=0,
        help="How long the lease of a long scan is valid after its last renewal; 0 for no lease. "
        "By default LANCETABLE_LEASE_SECONDS, or 120.",
    )

    def __post_init__(self) -> None:
        check_options(self)


DEFAULTS = ScanOptions()


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """The columns and rows that are wanted."""

    columns: tuple[str, ...] | None = None
    """Names and nested paths; None for all columns."""

    expressions: tuple[tuple[str, Expression], ...] | None = None
    """Names and the expressions that compute them, in place of ``columns``."""

    where: Expression | None = None
    limit: int | None = None
    offset: int = 0
    with_row_id: bool = False
    with_row_address: bool = False
    include_deleted: bool = False
    """True for rows that are deleted and still in the files, too; their row ids are null."""

    blobs: Blobs = "descriptions"
    use_indices: bool = True
    """False to scan all rows, whatever indices the table has."""

    def __post_init__(self) -> None:
        _check_number("limit", 0 if self.limit is None else self.limit)
        _check_number("offset", self.offset)
        if self.blobs not in get_args(Blobs):
            raise InputError(f"blobs must be 'descriptions' or 'bytes', not {self.blobs!r}")
        if self.include_deleted and not self.with_row_id:
            raise InputError(
                "include_deleted needs the column '_rowid', which is null for deleted rows;"
                " give with_row_id=True"
            )


def _check_number(name: str, value: object) -> None:
    """Refuse a limit or an offset that counts no rows."""
    if type(value) is int and value >= 0:  # asking a protocol takes longer than a small read
        return
    if not isinstance(value, SupportsIndex) or isinstance(value, bool):
        raise InputError(f"{name} must be a whole number, it is {value!r}")
    if value.__index__() < 0:
        raise InputError(f"{name} must not be negative, it is {value!r}")


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns part of a request."""

    columns: tuple[str, ...] | None = None
    expressions: tuple[tuple[str, Expression], ...] | None = None


def parse_columns(columns: ColumnsArgument) -> Selection:
    """Take the ``columns`` argument apart: names and paths, or a dict of SQL expressions.

    Raises:
        InputError: the argument is neither, or names a column twice.
    """
    if columns is None:
        return Selection()
    if isinstance(columns, str):
        raise InputError(f"columns must be a list of names; write [{columns!r}]")
    if isinstance(columns, Mapping):
        pairs = [
            (str(name), parse(text) if isinstance(text, str) else text)
            for name, text in columns.items()
        ]
        return Selection(expressions=tuple(pairs))
    names = tuple(columns)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"columns must be names, not {name!r}")
    if len(set(names)) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise InputError(f"column {twice!r} is asked for twice; name it once")
    return Selection(columns=names)


def scan_options(options: Mapping[str, object]) -> ScanOptions:
    """Return the options with the given ones in place of the defaults.

    Raises:
        InputError: there is no such option, or a value is not valid.
    """
    return parse_options(ScanOptions, options) if options else DEFAULTS


def parse_where(where: Where) -> Expression | None:
    """Turn SQL text or an Arrow expression into our own tree, not yet bound to a schema.

    Raises:
        ExpressionError: the text cannot be understood.
    """
    if where is None:
        return None
    if isinstance(where, str):
        return parse(where)
    if isinstance(where, pc.Expression):
        return from_arrow(where)
    if isinstance(where, Expression):
        return where
    raise InputError(f"where must be SQL text or an Arrow expression, not {where!r}")
