"""Which index segments does a commit keep, and which fragments do they still describe.

A segment names the fragments it was built from. Fragments that are gone need not be taken out of
that set: only those that still exist count.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from lancetable.commit.memwal import with_generations
from lancetable.commit.transaction import CompactedSsTable, CreateIndex, Rewrite
from lancetable.errors import InputError
from lancetable.format.manifest import IndexSegment
from lancetable.format.schema.model import Schema

SYSTEM = "__lance_"
MEM_WAL = "__lance_mem_wal"
FRAGMENT_REUSE = "__lance_frag_reuse"
_VECTOR = "VectorIndexDetails"

Segments = tuple[IndexSegment, ...]


def is_system(segment: IndexSegment) -> bool:
    """Say whether a segment is bookkeeping of the format, not an index on data."""
    return segment.name.startswith(SYSTEM)


def covering(segment: IndexSegment, fragment_ids: Iterable[int]) -> IndexSegment:
    """Return a segment that describes these fragments."""
    from lancetable.format.manifest.roaring import encode_bitmap  # noqa: PLC0415 - needs pyroaring

    return replace(segment, fragment_bitmap=encode_bitmap(sorted(fragment_ids)))


def after_create(segments: Sequence[IndexSegment], operation: CreateIndex) -> Segments:
    """Return the segments after some were added and removed."""
    gone = {segment.uuid for segment in (*operation.removed_indices, *operation.new_indices)}
    kept = (segment for segment in segments if segment.uuid not in gone)
    return (*kept, *operation.new_indices)


def without_values(
    segments: Iterable[IndexSegment], fragment_ids: Set[int], fields: frozenset[int]
) -> Segments:
    """Return the segments after values of some fields changed inside some fragments."""
    found = []
    for segment in segments:
        ids = segment.fragment_ids if fields.intersection(segment.fields) else None
        found.append(
            covering(segment, ids - fragment_ids) if ids and ids & fragment_ids else segment
        )
    return tuple(found)


def after_rewrite(
    segments: Iterable[IndexSegment], operation: Rewrite, *, stable_row_ids: bool
) -> Segments:
    """Return the segments after fragments were written anew."""
    rewritten = {index.old_id: index for index in operation.rewritten_indices}
    found = []
    for segment in segments:
        index = rewritten.get(segment.uuid)
        if index is None and not (stable_row_ids and not is_system(segment)):
            found.append(segment)
            continue
        moved = _moved(segment, operation)
        if index is not None:
            moved = replace(
                moved,
                uuid=index.new_id,
                type_url=index.type_url or moved.type_url,
                details=index.details if index.type_url else moved.details,
                index_version=index.index_version or moved.index_version,
                files=index.files or moved.files,
                base_id=None,
            )
        found.append(moved)
    return tuple(found)


def _moved(segment: IndexSegment, operation: Rewrite) -> IndexSegment:
    ids = segment.fragment_ids
    if ids is None:
        return segment
    covered = set(ids)
    for old, new in operation.groups:
        old_ids = {fragment.id for fragment in old}
        if old_ids <= ids:
            covered |= {fragment.id for fragment in new}
        covered -= old_ids
    return covering(segment, covered)


def retained(
    segments: Sequence[IndexSegment], schema: Schema, existing: Callable[[], Set[int]]
) -> Segments:
    """Return the segments that still describe something.

    A segment whose field is gone is dropped, and so is one none of whose fragments exists; of a
    scalar index that describes nothing any more one segment stays to remember it.
    """
    if not segments:
        return ()
    types = {field.id: field.logical_type for field in schema.walk()}
    by_name: dict[str, list[IndexSegment]] = {}
    for segment in segments:
        if is_system(segment) or all(field in types for field in segment.fields):
            by_name.setdefault(segment.name, []).append(segment)
    fragment_ids = existing()
    kept: set[str] = set()
    for group in by_name.values():
        live = [one for one in group if is_system(one) or _describes(one, fragment_ids)]
        if not live and not _is_vector(group[0], types.get(group[0].fields[0], "")):
            live = group[:1]
        kept.update(one.uuid for one in live)
    return tuple(segment for segment in segments if segment.uuid in kept)


def _describes(segment: IndexSegment, existing: Set[int]) -> bool:
    ids = segment.fragment_ids
    return ids is None or not ids.isdisjoint(existing)


def _is_vector(segment: IndexSegment, logical_type: str) -> bool:
    if segment.type_url:
        return segment.type_url.endswith(_VECTOR)
    return logical_type.startswith("fixed_size_list:")


def after_merge_of_log(
    segments: Sequence[IndexSegment],
    tables: Sequence[CompactedSsTable],
    *,
    version: int,
    now: datetime,
) -> Segments:
    """Return the segments after generations of the write-ahead log were merged.

    Raises:
        InputError: the table has no such log, or a generation was merged before.
    """
    if not any(segment.name == MEM_WAL for segment in segments):
        raise InputError("the table has no write-ahead log whose progress could be recorded")
    return tuple(
        replace(
            segment,
            uuid=str(uuid4()),
            dataset_version=version,
            created_at=now,
            details=with_generations(segment.details, tables),
        )
        if segment.name == MEM_WAL
        else segment
        for segment in segments
    )
