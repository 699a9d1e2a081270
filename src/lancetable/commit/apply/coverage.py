"""Index segments after a commit: which are kept, and which fragments they still describe.

A segment names the fragments it was built from. Fragments that no longer exist need not be taken
out of that set.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime
from uuid import uuid4

from lancetable.commit.transaction import CreateIndex, Rewrite, RewrittenIndex
from lancetable.errors import InputError
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import (
    FRAGMENT_REUSE,
    MEM_WAL,
    holds_row_ids,
    is_system,
    kind_of,
)
from lancetable.format.manifest.mem_wal.codec import decode_details, encode_details
from lancetable.format.manifest.mem_wal.model import CompactedSsTable
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.schema.model import Schema

Segments = tuple[IndexSegment, ...]
LoadReuse = Callable[[Sequence[IndexSegment]], FragmentReuse | None]


def covering(segment: IndexSegment, fragment_ids: Iterable[int]) -> IndexSegment:
    """Return a segment that describes these fragments."""
    from lancetable.format.manifest.roaring import encode_bitmap  # noqa: PLC0415 - needs pyroaring

    return segment._replace(fragment_bitmap=encode_bitmap(sorted(fragment_ids)))


def without_shared(segments: Sequence[IndexSegment], shared: frozenset[int]) -> list[IndexSegment]:
    """Return index segments that do not describe fragments whose rows share their addresses.

    A segment that does not name its fragments may describe such a fragment, and covers nothing.
    """
    found = []
    for segment in segments:
        ids = segment.fragment_ids
        if ids is None:
            found.append(covering(segment, ()))
        else:
            found.append(segment if ids.isdisjoint(shared) else covering(segment, ids - shared))
    return found


def after_create(segments: Sequence[IndexSegment], operation: CreateIndex) -> Segments:
    """Return the segments after some were added and removed."""
    gone = {segment.uuid for segment in (*operation.removed_indices, *operation.new_indices)}
    kept = (segment for segment in segments if segment.uuid not in gone)
    return (*kept, *operation.new_indices)


def without_values(
    segments: Iterable[IndexSegment],
    fragment_ids: Set[int],
    fields: frozenset[int],
    load: LoadReuse | None = None,
) -> Segments:
    """Return the segments after values of some fields changed inside some fragments."""
    segments = tuple(segments)
    has_reuse = any(segment.name == FRAGMENT_REUSE for segment in segments)
    reuse = load(segments) if has_reuse and load is not None else None
    if reuse is not None:
        # A segment may describe these fragments through those that their rows came from.
        fragment_ids = reuse.origins(fragment_ids)
    found = []
    for segment in segments:
        if fields.isdisjoint(segment.fields):
            found.append(segment)
            continue
        ids = segment.fragment_ids
        if ids is None or (ids and has_reuse and reuse is None):
            # It may describe any fragment.
            found.append(covering(segment, ()))
        else:
            found.append(covering(segment, ids - fragment_ids) if ids & fragment_ids else segment)
    return tuple(found)


def with_moved_rows(
    segments: Iterable[IndexSegment],
    fragment_ids: Iterable[int],
    origins: Set[int],
    changed_fields: Iterable[int],
) -> Segments:
    """Return the segments after an update moved rows, with their row ids, to new fragments.

    A segment that holds row ids still finds them there, when it covers all fragments they came from
    and none of its fields was changed.
    """
    new, fields = frozenset(fragment_ids), frozenset(changed_fields)
    found = []
    for segment in segments:
        ids = segment.fragment_ids
        is_true = holds_row_ids(segment) and fields.isdisjoint(segment.fields)
        if is_true and ids is not None and origins <= ids:
            found.append(covering(segment, ids | new))
        else:
            found.append(segment)
    return tuple(found)


def after_rewrite(
    segments: Sequence[IndexSegment],
    operation: Rewrite,
    *,
    stable_row_ids: bool,
    load: LoadReuse | None = None,
) -> Segments:
    """Return the segments after fragments were rewritten."""
    older = load(segments) if operation.rewritten_indices and load is not None else None
    rewritten = {index.old_id: index for index in operation.rewritten_indices}
    reuse = operation.fragment_reuse
    found = []
    for segment in segments:
        index = rewritten.get(segment.uuid)
        if index is not None:
            ids = segment.fragment_ids
            if ids is not None and older is not None:
                segment = covering(segment, older.covered(ids))  # noqa: PLW2901 - as it is now
            found.append(_rewritten(_moved(segment, operation), index))
        elif segment.name == FRAGMENT_REUSE and reuse is not None:
            continue
        elif is_system(segment) or not stable_row_ids:
            found.append(segment)
        elif holds_row_ids(segment):
            found.append(_moved(segment, operation))
        else:
            found.append(_uncovered(segment, operation))
    return tuple(found) if reuse is None else (*found, reuse)


def _rewritten(segment: IndexSegment, index: RewrittenIndex) -> IndexSegment:
    return segment._replace(
        uuid=index.new_id,
        type_url=index.type_url or segment.type_url,
        details=index.details if index.type_url else segment.details,
        index_version=index.index_version or segment.index_version,
        files=index.files or segment.files,
        base_id=None,
    )


def _uncovered(segment: IndexSegment, operation: Rewrite) -> IndexSegment:
    ids = segment.fragment_ids
    gone = {fragment.id for group in operation.groups for fragment in group.old_fragments}
    return segment if ids is None or ids.isdisjoint(gone) else covering(segment, ids - gone)


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
    segments: Sequence[IndexSegment],
    schema: Schema,
    existing: Callable[[], Set[int]],
    load: LoadReuse | None = None,
) -> Segments:
    """Return the segments that still describe something.

    A segment whose field is gone is dropped, and so is one none of whose fragments exists; a scalar
    index that describes nothing any more keeps one segment as its record.
    """
    if not segments:
        return ()
    types = {field.id: field.logical_type for field in schema.walk()}
    by_name: dict[str, list[IndexSegment]] = {}
    for segment in segments:
        if is_system(segment) or all(field in types for field in segment.fields):
            by_name.setdefault(segment.name, []).append(segment)
    fragment_ids = existing()
    if any(segment.name == FRAGMENT_REUSE for segment in segments):
        reuse = None if load is None else load(segments)
        if reuse is None:
            # The fragments that segments describe are unknown, so all may be of use.
            return tuple(one for group in by_name.values() for one in group)
        fragment_ids = reuse.origins(fragment_ids)
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
        return kind_of(segment).is_vector
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
        segment._replace(
            uuid=str(uuid4()),
            dataset_version=version,
            created_at=now,
            details=encode_details(decode_details(segment.details).with_compacted(tables)),
        )
        if segment.name == MEM_WAL
        else segment
        for segment in segments
    )
