"""Divide a version into partitions, each read by one task.

Small fragments are bundled and large ones are cut, so that a task reads about the wanted number of
rows and bytes. A partition carries the description of its own fragments, not the whole manifest,
and the rows of them that indices name; fragments without a match are in no partition.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from lancetable.commit.snapshot import Snapshot
from lancetable.format.manifest import Fragment
from lancetable.operations.rows.find_rows import NamedRows, named_rows, of_part
from lancetable.operations.rows.parts import part_of
from lancetable.scan.plan import ScanPlan, windows
from lancetable.scan.row_size import measured
from lancetable.spark.options import ReadOptions


@dataclass(frozen=True, slots=True)
class Range:
    """Rows of one fragment, by its place in a part; ``stop`` of ``None`` is the end."""

    position: int
    start: int = 0
    stop: int | None = None


class LancePartition(InputPartition):
    """Some rows of one version."""

    def __init__(
        self,
        part: Snapshot,
        ranges: tuple[Range, ...],
        named: Mapping[int, NamedRows] | None = None,
    ) -> None:
        """Take rows of a part; ``named`` are those that indices name, by fragment."""
        super().__init__(None)
        self.part = part
        self.ranges = ranges
        self.named = named or {}

    def __repr__(self) -> str:
        return f"LancePartition(version={self.part.version}, ranges={self.ranges})"


def divide(snapshot: Snapshot, plan: ScanPlan, options: ReadOptions) -> list[LancePartition]:
    """Divide a version into partitions, at least one."""
    left, named = named_rows(snapshot, plan.where)
    bundles = list(_bundles(left.manifest.fragments, named, _rows_each(snapshot, plan, options)))
    made = []
    for bundle in bundles:
        part = part_of(left, [one for one, _, _ in bundle])
        made.append(LancePartition(part, _ranges(bundle), of_part(named, part)))
    return made or [LancePartition(part_of(snapshot, ()), ())]


_Piece = tuple[Fragment, int, int | None]


def _rows_each(snapshot: Snapshot, plan: ScanPlan, options: ReadOptions) -> int:
    fragments = snapshot.manifest.fragments
    row_bytes = measured((plan.early, plan.late), snapshot).row_bytes
    rows = min(options.partition_rows, max(int(options.partition_bytes / row_bytes), 1))
    if options.min_partitions > 1:
        total = sum(fragment.physical_rows for fragment in fragments)
        rows = min(rows, max(-(-total // options.min_partitions), 1))
    return rows


def _bundles(
    fragments: Sequence[Fragment], named: Mapping[int, NamedRows], each: int
) -> Iterator[list[_Piece]]:
    bundle: list[_Piece] = []
    held = 0
    for fragment in fragments:
        known = named.get(fragment.id)
        pieces = _pieces(fragment, each) if known is None else _whole(fragment, known)
        for piece, rows in pieces:
            if bundle and held + rows > each:
                yield bundle
                bundle, held = [], 0
            bundle.append(piece)
            held += rows
    if bundle:
        yield bundle


def _whole(fragment: Fragment, named: NamedRows) -> Iterator[tuple[_Piece, int]]:
    yield (fragment, 0, None), len(named.rows)


def _pieces(fragment: Fragment, each: int) -> Iterator[tuple[_Piece, int]]:
    rows = fragment.physical_rows
    if rows <= each:
        yield (fragment, 0, None), rows or each
        return
    for window in windows(0, 0, rows, each):
        yield (fragment, window.start, window.stop), window.stop - window.start


def _ranges(bundle: list[_Piece]) -> tuple[Range, ...]:
    return tuple(Range(position, start, stop) for position, (_, start, stop) in enumerate(bundle))
