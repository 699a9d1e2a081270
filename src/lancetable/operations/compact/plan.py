"""Choose the fragments that a compaction rewrites, and group them.

Fragments are taken in their order. One is worth it when it is small, or when much of it is deleted.
Neighbours that are worth it make a group, unless different index segments describe them; a group is
cut where it has rows and bytes enough. A group that would give as many fragments as it takes, and
nothing back, is left alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from lancetable.commit.blob_dataset import check_rows_stay
from lancetable.commit.reuse import load_reuse, reuse_segment
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.format.manifest import Fragment, IndexSegment
from lancetable.format.manifest.indices.kinds import is_system, kind_of
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.schema.project import resolve
from lancetable.fragment.readers import Readers
from lancetable.index.vector.codec import decode_details
from lancetable.operations.compact.options import (
    KEY_COPIES,
    ORDER_BYTES,
    CompactOptions,
    IndexHandling,
)
from lancetable.operations.input.write import storage_version
from lancetable.operations.rows.move_rows import has_stable_row_ids
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest
from lancetable.scan.row_size import bytes_of, guess, is_fixed_width

_SAMPLED_ROWS = 1024


class CompactGroup(NamedTuple):
    """Fragments that become others together."""

    fragments: tuple[Fragment, ...]
    rows: int
    """Live rows."""
    deleted_rows: int
    bytes_: int
    new_fragments: int

    @property
    def rows_per_file(self) -> int:
        """Number of rows of each new fragment; the last one may get fewer."""
        return max(-(-self.rows // max(self.new_fragments, 1)), 1)


@dataclass(frozen=True, slots=True)
class CompactPlan:
    """Planned compaction of one version; it is committed from that version only."""

    snapshot: Snapshot
    groups: tuple[CompactGroup, ...]
    options: CompactOptions
    indices: IndexHandling
    """What becomes of index segments; ``uncover`` also when no segment is touched."""

    @property
    def version(self) -> int:
        """The version that the plan was made for."""
        return self.snapshot.version

    @property
    def rows(self) -> int:
        """Live rows that are to be written."""
        return sum(group.rows for group in self.groups)

    def explain(self) -> str:
        """Return the plan as text, one line for each group."""
        total = len(self.snapshot.manifest.fragments)
        if not self.groups:
            return f"version {self.version}: nothing to compact in {total} fragments"
        taken = sum(len(group.fragments) for group in self.groups)
        given = sum(group.new_fragments for group in self.groups)
        head = (
            f"version {self.version}: {taken} of {total} fragments become {given}, "
            f"{self.rows} rows, index segments: {self.indices}"
        )
        return "\n".join([head, *(f"  {_line(group)}" for group in self.groups)])


def _line(group: CompactGroup) -> str:
    ids = [fragment.id for fragment in group.fragments]
    named = f"fragments {ids[0]} to {ids[-1]}" if len(ids) > 1 else f"fragment {ids[0]}"
    return (
        f"{named} ({len(ids)}): {group.rows} rows, {group.deleted_rows} deleted, "
        f"{group.bytes_} bytes, into {group.new_fragments}"
    )


def plan_compaction(
    snapshot: Snapshot, options: CompactOptions, chosen: frozenset[int] | None = None
) -> CompactPlan:
    """Plan a compaction; ``chosen`` limits it to some fragments.

    Raises:
        SchemaError: there is no such column to sort by.
        UnsupportedError: the table's files, or its record of moved rows, cannot be written.
    """
    storage_version(snapshot.manifest)
    check_rows_stay(snapshot.manifest, "move rows")
    for name in (*options.sort_by, *options.z_order_by):
        resolve(snapshot.manifest.schema, name)
    segments = [one for one in snapshot.indices() if not is_system(one)]
    handling, reuse = _handling(snapshot, options, segments)
    is_kept = handling != "uncover" or has_stable_row_ids(snapshot.manifest)
    candidates = list(
        _candidates(snapshot, options, chosen, _Cover(segments, reuse) if is_kept else None)
    )
    groups: list[CompactGroup] = []
    for key, run in groupby(candidates, key=lambda one: one.key):
        if key is not None:
            groups += _groups(list(run), options, _most_sorted(snapshot, options))
    if handling != "uncover" and not _touches(groups, segments, reuse):
        handling = "uncover"
    return CompactPlan(snapshot, tuple(groups), options, handling)


def _handling(
    snapshot: Snapshot, options: CompactOptions, segments: Sequence[IndexSegment]
) -> tuple[IndexHandling, FragmentReuse | None]:
    """Return what becomes of index segments, and the record of moved rows that there is."""
    wanted = options.indices
    if has_stable_row_ids(snapshot.manifest):
        if wanted == "reuse":
            raise InputError(
                "the table has stable row ids: index segments that hold them stay in use by "
                "themselves, and a record of moved rows cannot be combined with them; omit indices="
            )
        return wanted or "uncover", None
    if wanted == "uncover" or not segments:
        return "uncover", None
    every = snapshot.indices()
    try:
        reuse = load_reuse(snapshot, every)
    except UnsupportedError:
        if wanted is not None:
            raise
        return "uncover", None
    if wanted is None:
        wanted = "remap" if any(map(_has_graphs, segments)) else "reuse"
        wanted = "uncover" if options.is_sorted else wanted
    return wanted, reuse if reuse_segment(every) is not None else None


def _has_graphs(segment: IndexSegment) -> bool:
    """Return whether other libraries cannot search a segment some of whose rows are gone."""
    try:
        return kind_of(segment).is_vector and decode_details(segment.details).hnsw is not None
    except CorruptError:
        return False


class _Cover:
    """Index segments that describe each fragment."""

    def __init__(self, segments: Sequence[IndexSegment], reuse: FragmentReuse | None) -> None:
        self._by_uuid = {}
        for one in segments:
            ids = one.fragment_ids
            if ids is not None:
                self._by_uuid[one.uuid] = ids if reuse is None else reuse.covered(ids)

    def of(self, id_: int) -> frozenset[str]:
        """Return the ids of the segments."""
        return frozenset(uuid for uuid, ids in self._by_uuid.items() if id_ in ids)


def _touches(
    groups: Sequence[CompactGroup], segments: Sequence[IndexSegment], reuse: FragmentReuse | None
) -> bool:
    cover = _Cover(segments, reuse)
    return any(cover.of(one.id) for group in groups for one in group.fragments)


class _Candidate(NamedTuple):
    """A fragment as the plan sees it; those without a key are left alone."""

    fragment: Fragment
    live: int
    bytes_: int
    key: tuple[int, frozenset[str]] | None

    @property
    def live_bytes(self) -> int:
        """About how many bytes the live rows take."""
        return -(-self.bytes_ * self.live // max(self.fragment.physical_rows, 1))


class _Held(NamedTuple):
    """Running totals of a group."""

    rows: int = 0
    bytes_: int = 0
    live_bytes: int = 0

    def plus(self, one: _Candidate) -> "_Held":
        """Return the same with one more fragment."""
        return _Held(
            self.rows + one.live, self.bytes_ + one.bytes_, self.live_bytes + one.live_bytes
        )


def _candidates(
    snapshot: Snapshot,
    options: CompactOptions,
    chosen: frozenset[int] | None,
    cover: _Cover | None,
) -> Iterator[_Candidate]:
    readers = Readers(snapshot)
    part = 0
    for position, fragment in enumerate(snapshot.manifest.fragments):
        if chosen is not None and fragment.id not in chosen:
            part += 1
            yield _Candidate(fragment, 0, 0, None)
            continue
        live = readers.live_rows(position)
        rows = fragment.physical_rows or readers[position].opened.rows
        bytes_ = sum(file.size or 0 for file in fragment.files)
        is_small = live < options.target_rows and bytes_ < options.target_bytes
        is_worn = rows - live > options.deleted_share * rows
        if not (is_small or is_worn or options.is_sorted):
            part += 1
            yield _Candidate(fragment, live, bytes_, None)
            continue
        key = (part, cover.of(fragment.id) if cover is not None else frozenset())
        yield _Candidate(fragment._replace(physical_rows=rows), live, bytes_, key)


def _most_sorted(snapshot: Snapshot, options: CompactOptions) -> int | None:
    """Return how many rows can be sorted in the memory of one task, which holds their keys."""
    if not options.is_sorted:
        return None
    manifest = snapshot.manifest
    keys = plan(manifest.schema, ScanRequest((*options.sort_by, *options.z_order_by)))
    # Of keys with a fixed width, to which recorded file sizes do not matter.
    width = guess((keys.early, keys.late), manifest.fragments).row_bytes
    if manifest.fragments and not is_fixed_width(keys.late):
        # A sample of rows estimates the size of one column better than the size of its file.
        reader = Readers(snapshot)[0]
        rows = min(reader.opened.rows, _SAMPLED_ROWS)
        width = bytes_of(reader.read(keys.late, range(rows))) / max(rows, 1)
    return max(int(options.task_bytes / (KEY_COPIES * width + ORDER_BYTES)), 1)


def _groups(
    candidates: Sequence[_Candidate], options: CompactOptions, most: int | None
) -> Iterator[CompactGroup]:
    """Cut neighbours into groups that are large enough."""
    enough = options.target_rows if most is None else most
    runs: list[list[_Candidate]] = [[]]
    held = _Held()
    for one in candidates:
        if runs[-1] and _overflows(held.plus(one), options, most):
            runs.append([])
            held = _Held()
        runs[-1].append(one)
        held = held.plus(one)
        if held.rows >= enough or held.bytes_ >= options.target_bytes:
            runs.append([])
            held = _Held()
    if most is None and len(runs) > 1 and runs[-1] and 2 * held.rows < options.target_rows:
        before = sum(one.live_bytes for one in runs[-2])
        if _fits_a_file(before + held.live_bytes, options):
            last = runs.pop()
            runs[-1] += last
    for run in runs:
        group = _group(run, options)
        if run and (options.is_sorted or _is_worth_it(run, group, options)):
            yield group


def _overflows(held: _Held, options: CompactOptions, most: int | None) -> bool:
    """Say whether a group has too much."""
    if most is not None:
        return held.rows > most
    return held.bytes_ > 2 * options.target_bytes or not _fits_a_file(held.live_bytes, options)


def _fits_a_file(bytes_: int, options: CompactOptions) -> bool:
    return options.max_bytes_per_file is None or bytes_ <= options.max_bytes_per_file


def _group(run: Sequence[_Candidate], options: CompactOptions) -> CompactGroup:
    rows = sum(one.live for one in run)
    stored = sum(one.fragment.physical_rows for one in run)
    bytes_ = sum(one.bytes_ for one in run)
    new = max(round(rows / options.target_rows), round(bytes_ / options.target_bytes), 1)
    new = min(new, len(run))
    if options.max_bytes_per_file is not None:
        live_bytes = sum(one.live_bytes for one in run)
        new = max(new, -(-live_bytes // options.max_bytes_per_file))
    fragments = tuple(one.fragment for one in run)
    return CompactGroup(fragments, rows, stored - rows, bytes_, min(new, rows))


def _is_worth_it(run: Sequence[_Candidate], group: CompactGroup, options: CompactOptions) -> bool:
    if group.new_fragments < len(group.fragments):
        return True
    return any(
        one.fragment.physical_rows - one.live > options.deleted_share * one.fragment.physical_rows
        for one in run
    )
