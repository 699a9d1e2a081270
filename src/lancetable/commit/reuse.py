"""Load and write the record of moved rows of a version.

It lets index segments that hold row addresses stay in use after their fragments were rewritten.
Readers translate addresses with it; a segment that is built again no longer needs it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import uuid4

from lancetable.commit.publish import discard
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import FRAGMENT_REUSE, is_known
from lancetable.format.manifest.names import index_folder
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.manifest.reuse.codec import (
    EXTERNAL_NAME,
    TYPE_URL,
    External,
    decode_details,
    decode_external,
    encode_reuse,
)
from lancetable.fragment.source import read_whole

_VERSION = 0


class WrittenReuse(NamedTuple):
    """A segment that holds the record, and the files written for it."""

    segment: IndexSegment
    written: tuple[str, ...] = ()


def reuse_segment(segments: Sequence[IndexSegment]) -> IndexSegment | None:
    """Return the segment that holds the record, if there is one."""
    return next((one for one in segments if one.name == FRAGMENT_REUSE), None)


def load_reuse(snapshot: Snapshot, segments: Sequence[IndexSegment]) -> FragmentReuse | None:
    """Return the record of a version; ``None`` when there is none.

    Raises:
        CorruptError: the record is damaged.
        UnsupportedError: a later release wrote it.
    """
    segment = reuse_segment(segments)
    if segment is None:
        return None
    if not is_known(segment):
        raise UnsupportedError(
            f"the record of moved rows has version {segment.index_version}, which this release "
            "does not know; rebuild the indices, or compact with indices='uncover'"
        )
    found = decode_details(segment.details)
    if isinstance(found, FragmentReuse):
        return found
    return _external(snapshot, segment, found)


def _external(snapshot: Snapshot, segment: IndexSegment, place: External) -> FragmentReuse:
    store, folder = snapshot.index_place(segment)
    path = f"{folder}/{place.path}"
    content = read_whole(store, path)
    end = place.offset + place.size
    if end > len(content):
        raise CorruptError(
            f"the record of moved rows ends at {end}, the file at {len(content)}",
            path=shown(store, path),
        )
    return decode_external(content[place.offset : end])


def write_reuse(
    tip: Snapshot, reuse: FragmentReuse, segment: IndexSegment | None = None
) -> WrittenReuse:
    """Return a segment with the record, which replaces an older segment.

    Raises:
        StoreError: the file of a long record cannot be written; nothing stays behind.
    """
    from lancetable.format.manifest.roaring import encode_bitmap  # noqa: PLC0415 - needs pyroaring

    encoded = encode_reuse(reuse)
    made = IndexSegment(
        uuid=str(uuid4()),
        name=FRAGMENT_REUSE,
        fields=(),
        dataset_version=tip.version,
        fragment_bitmap=encode_bitmap(sorted(reuse.new_ids())),
        type_url=TYPE_URL,
        details=encoded.details,
        index_version=_VERSION,
        created_at=datetime.now(UTC),
    )
    if segment is not None:
        made = made._replace(metadata=segment.metadata)
    if encoded.external is None:
        return WrittenReuse(made)
    path = f"{index_folder(made.uuid)}/{EXTERNAL_NAME}"
    file = tip.store.create(path)
    try:
        file.write([encoded.external])
        file.close()
    except BaseException:
        file.abort()
        discard(tip.store, [path])
        raise
    return WrittenReuse(made, (path,))
