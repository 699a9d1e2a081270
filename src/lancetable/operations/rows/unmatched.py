"""Find new rows that do not match the predicate whose rows they replace.

The files of the new rows are searched as a later overwrite with the same predicate would search
them: a row that this search misses would stay beside its successor. A predicate that is unknown for
a row counts as not matching.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.expression import Expression, columns
from lancetable.format.manifest import Fragment
from lancetable.format.rows import row_address
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import quote
from lancetable.fragment.projection import SYSTEM_COLUMNS
from lancetable.fragment.readers import Readers
from lancetable.operations.rows.find_rows import find_all, plan_find
from lancetable.operations.rows.parts import part_of
from lancetable.operations.rows.rowset import RowSet
from lancetable.operations.run.runner import THREADS, Runner
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest
from lancetable.scan.take import Taker

_SHOWN = 200


class Unmatched(NamedTuple):
    """Rows that do not match: how many, and what the first of them holds."""

    number: int
    first: str


def refuse_system_columns(where: Expression, schema: Schema) -> None:
    """Check that a predicate can be evaluated for rows that are not part of the table yet.

    Raises:
        InputError: it names a column that a row gets with its place in the table.
    """
    known = {field.name for field in schema.fields}
    named = {path[0] for path in columns(where)}
    for name in SYSTEM_COLUMNS:
        if name in named and name not in known:
            raise InputError(
                f"the predicate names {name!r}, which new rows get when they are written, so they "
                "cannot be checked against it; use other columns or switch the check off"
            )


def find_unmatched(
    snapshot: Snapshot,
    fragments: Sequence[Fragment],
    where: Expression,
    runner: Runner = THREADS,
) -> Unmatched | None:
    """Return the rows of new fragments that do not match; ``None`` if all of them do.

    Args:
        snapshot: a version of the table; its schema gives the names in the predicate a meaning.
        fragments: new fragments, which need no ids yet.
        where: the predicate.
        runner: where the files are read.

    Raises:
        ExpressionError: the predicate does not fit the columns.
    """
    numbered = [one._replace(id=place) for place, one in enumerate(fragments)]
    part = part_of(snapshot, numbered)
    matched = {one.fragment.id: one.rows for one in find_all(runner, plan_find(part, where))}
    missing = {one.id: one.physical_rows - len(matched.get(one.id, ())) for one in numbered}
    count = sum(missing.values())
    if not count:
        return None
    first = next(one for one in numbered if missing[one.id])
    offset = _first_missing(matched.get(first.id), first.physical_rows)
    return Unmatched(count, _shown(part, where, row_address(first.id, offset)))


def refuse_unmatched(found: Iterable[Unmatched | None], where: str, way_out: str) -> None:
    """Raise an error about rows that do not match.

    Args:
        found: what was found in each part of the new rows.
        where: the predicate, as it is shown.
        way_out: how to write such rows on purpose.

    Raises:
        InputError: there are such rows.
    """
    some = [one for one in found if one is not None]
    if some:
        count = sum(one.number for one in some)
        raise InputError(
            f"{count} of the new rows {'does' if count == 1 else 'do'} not match the predicate "
            f"{_cut(where)} whose rows they replace, the first of them has {some[0].first}; "
            f"nothing was written; correct the rows or the predicate, or {way_out}"
        )


def _first_missing(matched: RowSet | None, rows: int) -> int:
    if matched is None:
        return 0
    is_missing = np.ones(rows, np.bool_)
    is_missing[matched.offsets()] = False
    return int(np.argmax(is_missing))


def _shown(part: Snapshot, where: Expression, address: int) -> str:
    """Return the values that one row has in the columns of the predicate."""
    paths = tuple(".".join(map(quote, path)) for path in sorted(columns(where)))
    if not paths:
        paths = tuple(quote(one.name) for one in part.manifest.schema.fields[:1])
    planned = plan(part.manifest.schema, ScanRequest(columns=paths))
    row: Mapping[str, object] = Taker(planned, Readers(part)).by_address([address]).to_pylist()[0]
    return ", ".join(f"{name} = {_cut(value)}" for name, value in row.items())


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
