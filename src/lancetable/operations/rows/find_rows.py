"""Find the rows for which a predicate holds, or new rows for which it does not.

The files of rows that replace those of a predicate are searched as a later overwrite with the same
predicate would search them: a row that this search misses would stay beside its successor. A
predicate that is unknown for a row counts as not matching.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.expression import Expression, Literal, columns
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import Fragment
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS, row_address
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import quote
from lancetable.fragment.projection import ROW_ADDRESS, SYSTEM_COLUMNS
from lancetable.fragment.readers import Readers
from lancetable.operations.rows.parts import RowSet, part_of, parts, suited
from lancetable.operations.run.memory import collector_paused
from lancetable.operations.run.runner import THREADS, Runner, run_steps
from lancetable.scan import execute
from lancetable.scan.answers import Known
from lancetable.scan.columns import bound_predicate
from lancetable.scan.named_rows import Named, Part
from lancetable.scan.narrow import narrow
from lancetable.scan.plan import plan
from lancetable.scan.plans import Plans
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.take import Taker

Addresses = npt.NDArray[np.uint64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FindTask:
    """A part of a table in which rows are looked for; ``None`` finds every row."""

    part: Snapshot
    where: Expression | None
    threads: int = 1
    named: "Mapping[int, NamedRows]" = field(default_factory=dict)
    """By fragment: the rows that indices name; fragments that are left out are scanned."""


class NamedRows(NamedTuple):
    """Rows of a fragment that indices name, and what they have still to be compared with."""

    rows: RowSet
    rest: Expression | None
    """Bound; None when all of the rows match."""


class Found(NamedTuple):
    """The live rows of one fragment that were found."""

    fragment: Fragment
    rows: RowSet


def plan_find(snapshot: Snapshot, where: Expression | None) -> list[FindTask]:
    """Return one task for each part of a version that may hold a match.

    Raises:
        ExpressionError: the predicate does not fit the columns.
    """
    bound = None if where is None else bound_predicate(where, snapshot.manifest.schema)
    if isinstance(bound, Literal) and bound.value is not True:
        return []
    wanted = None if isinstance(bound, Literal) else where
    left, named = named_rows(snapshot, None if wanted is None else bound)
    found = list(parts(left))
    threads = ScanOptions().threads if len(found) == 1 else 1
    return [FindTask(part, wanted, threads, of_part(named, part)) for part in found]


def named_rows(
    snapshot: Snapshot, where: Expression | None
) -> tuple[Snapshot, Mapping[int, NamedRows]]:
    """Return a version without the fragments in which indices find no match, and what they find.

    The predicate is bound. Fragments of which no rows are named are scanned.
    """
    narrowing = None
    if where is not None and snapshot.manifest.index_section is not None:
        narrowing = narrow(Readers(snapshot), where)
    if narrowing is None:
        return snapshot, {}
    fragments = snapshot.manifest.fragments
    named = {
        fragments[position].id: NamedRows(RowSet.of(offsets), rest)
        for position, (offsets, rest) in narrowing.parts
        if offsets is not None
    }
    return part_of(snapshot, [fragments[one.position] for one in narrowing.parts]), named


def of_part(named: Mapping[int, T], part: Snapshot) -> Mapping[int, T]:
    """Return the rows that indices name in a part of a version."""
    return {one.id: named[one.id] for one in part.manifest.fragments if one.id in named}


def scanned_fragments(tasks: Iterable[FindTask]) -> int:
    """Return the number of fragments whose rows are all compared."""
    return sum(len(task.part.manifest.fragments) - len(task.named) for task in tasks)


def find_rows(task: FindTask) -> list[Found]:
    """Return the rows of a part for which the predicate holds, by fragment."""
    if task.where is None:
        return list(_everything(task.part))
    readers = Readers(task.part)
    found = dict(_matching(readers, task)) if _is_compared(task) else {}
    for id_, named in task.named.items():
        if named.rest is None:
            found[id_] = readers[readers.positions[id_]].live_among(named.rows.offsets())
    fragments = task.part.manifest.fragments
    return [Found(one, RowSet.of(found[one.id])) for one in fragments if len(found.get(one.id, ()))]


def _is_compared(task: FindTask) -> bool:
    """Return whether some rows of a task are compared with the predicate or a part of it."""
    is_named = len(task.named) == len(task.part.manifest.fragments)
    return not is_named or any(one.rest is not None for one in task.named.values())


def _matching(readers: Readers, task: FindTask) -> dict[int, Offsets]:
    """Return the rows that match by fragment, without those that need no comparison."""
    request = ScanRequest(columns=(ROW_ADDRESS,), where=task.where)
    plans = Plans(task.part.manifest.schema)
    parts = []
    for position, fragment in enumerate(task.part.manifest.fragments):
        named = task.named.get(fragment.id)
        if named is None:
            parts.append(Part(position, Known(None, None)))
        elif named.rest is not None:
            parts.append(Part(position, Known(named.rows.offsets(), named.rest)))
    chosen = Named(parts, partial(plans.narrowed, request)) if task.named else None
    options = ScanOptions(threads=task.threads)
    pieces = execute.run(plans.of(request), readers, options, named=chosen, is_stream=True)
    with collector_paused(len(readers)):
        chunks = [chunk for piece in pieces for chunk in piece.columns[0]]
    if not chunks:
        return {}
    return by_fragment(pa.chunked_array(chunks).to_numpy().astype(np.uint64, copy=False))


def find_all(runner: Runner, tasks: Sequence[FindTask]) -> list[Found]:
    """Return what all tasks find."""
    suited_to = suited(runner, [task.part for task in tasks])
    return [one for each in run_steps(suited_to, find_rows, tasks) for one in each]


def _everything(part: Snapshot) -> Iterator[Found]:
    readers = Readers(part)
    for position, fragment in enumerate(part.manifest.fragments):
        offsets = readers[position].live_offsets(0, readers[position].opened.rows)
        if len(offsets):
            yield Found(fragment, RowSet.of(offsets))


def by_fragment(addresses: Addresses) -> dict[int, Offsets]:
    """Return ascending addresses as offsets by fragment."""
    ids = (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64)
    offsets = (addresses & np.uint64(MAX_OFFSET)).astype(np.int64)
    edges = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1]))) if len(ids) else ids
    ends = [*edges[1:].tolist(), len(ids)]
    return {
        int(ids[first]): offsets[first:end]
        for first, end in zip(edges.tolist(), ends, strict=False)
    }


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
    # The indices of the version describe other fragments with these ids.
    part = part._replace(manifest=part.manifest._replace(index_section=None))
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
