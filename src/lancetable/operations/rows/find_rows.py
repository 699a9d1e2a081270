"""Find the rows for which a predicate holds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.expression import Expression, Literal
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import Fragment
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.fragment.projection import ROW_ADDRESS
from lancetable.fragment.readers import Readers
from lancetable.operations.rows.parts import part_of, parts, suited
from lancetable.operations.rows.rowset import RowSet
from lancetable.operations.run.memory import collector_paused
from lancetable.operations.run.runner import Runner
from lancetable.operations.run.steps import run_steps
from lancetable.scan import execute
from lancetable.scan.columns import bound_predicate
from lancetable.scan.narrow import narrow
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanOptions, ScanRequest

Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class FindTask:
    """A part of a table in which rows are looked for; ``None`` finds every row."""

    part: Snapshot
    where: Expression | None
    threads: int = 1


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
    found = list(parts(snapshot if wanted is None else _narrowed(snapshot, bound)))
    threads = ScanOptions().threads if len(found) == 1 else 1
    return [FindTask(part, wanted, threads) for part in found]


def _narrowed(snapshot: Snapshot, where: Expression | None) -> Snapshot:
    """Return the version without the fragments in which indices find no match."""
    if snapshot.manifest.index_section is None:
        return snapshot
    readers = Readers(snapshot)
    narrowing = narrow(readers, where)
    if narrowing is None:
        return snapshot
    left = []
    for position, fragment in enumerate(snapshot.manifest.fragments):
        offsets = narrowing.offsets(position)
        if offsets is None or len(offsets):
            left.append(fragment)
    return part_of(snapshot, left)


def find_rows(task: FindTask) -> list[Found]:
    """Return the rows of a part for which the predicate holds, by fragment."""
    if task.where is None:
        return list(_everything(task.part))
    readers = Readers(task.part)
    planned = plan(task.part.manifest.schema, ScanRequest(columns=(ROW_ADDRESS,), where=task.where))
    options = ScanOptions(threads=task.threads)
    pieces = execute.run(planned, readers, options, is_stream=True)
    with collector_paused(len(readers)):
        chunks = [chunk for piece in pieces for chunk in piece.columns[0]]
    if not chunks:
        return []
    addresses = pa.chunked_array(chunks).to_numpy().astype(np.uint64, copy=False)
    found = []
    for id_, offsets in by_fragment(addresses).items():
        fragment = task.part.manifest.fragments[readers.positions[id_]]
        found.append(Found(fragment, RowSet.of(offsets)))
    return found


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
