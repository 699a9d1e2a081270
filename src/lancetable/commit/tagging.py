"""Create, move, describe and delete tags.

A new tag is created under a name that must not exist yet, so exactly one of several creators
succeeds. A tag that is moved is replaced as a whole: readers see the old or the new version, and of
several who move it the last one wins.
"""

import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from lancetable.commit.outcome import (
    NOT_FOUND,
    create_object,
    remove_object,
    replace_object,
    unknown_outcome,
)
from lancetable.commit.refs import TagInfo, read_tag, tag_path
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.commit.versions import check_may_change
from lancetable.errors import ExistsError, StoreError, UnknownOutcomeError, VersionNotFoundError
from lancetable.format.manifest.flags import check_writable
from lancetable.store import TableLocation


class TagMove(NamedTuple):
    """A tag before and after it was moved."""

    before: TagInfo
    after: TagInfo


def create_tag(target: Snapshot, name: str, metadata: Mapping[str, str] | None = None) -> TagInfo:
    """Create a tag for a version.

    Raises:
        InputError: the name is not a valid tag name.
        ExistsError: the tag exists already.
        VersionNotFoundError: the version was cleaned away meanwhile.
        UnsupportedError: the table needs a writer feature that this release does not know.
        UnknownOutcomeError: the store failed, and the tag may or may not exist.
    """
    path = tag_path(name)
    _check_may_name(target)
    refs = target.location.open()
    now = datetime.now(UTC)
    made = _tag(target, name, now, now, metadata or {})
    creation = create_object(refs, path, _content(made))
    if creation.is_ours is None:
        raise unknown_outcome(refs, path, NOT_FOUND)
    if not creation.is_ours:
        there = read_tag(refs, name)
        raise ExistsError(
            f"tag {name!r} exists already, on version {there.version}; move it, or choose another "
            "name"
        )
    try:
        _check_still_there(target)
    except VersionNotFoundError:
        with contextlib.suppress(StoreError, UnknownOutcomeError):
            remove_object(refs, path)
        raise
    except StoreError as cause:
        raise unknown_outcome(refs, path, cause) from cause
    return made


def move_tag(target: Snapshot, name: str) -> TagMove:
    """Move a tag to another version, keeping its metadata.

    Raises:
        RefNotFoundError: there is no such tag.
        VersionNotFoundError: the version was cleaned away meanwhile; the tag is where it was.
        UnsupportedError: the table needs a writer feature that this release does not know.
        UnknownOutcomeError: the store failed, and the tag may or may not have moved.
    """
    refs = target.location.open()
    before = read_tag(refs, name)
    _check_may_name(target, before.branch)
    now = datetime.now(UTC)
    after = _tag(target, name, before.created_at or now, now, before.metadata)
    path = tag_path(name)
    replace_object(refs, path, _content(after))
    try:
        # Checked last, as a cleanup checks tags after it removed manifests.
        _check_still_there(target)
    except VersionNotFoundError:
        with contextlib.suppress(StoreError, UnknownOutcomeError):
            replace_object(refs, path, _content(before))
        raise
    except StoreError as cause:
        raise unknown_outcome(refs, path, cause) from cause
    return TagMove(before, after)


def describe_tag(location: TableLocation, name: str, metadata: Mapping[str, str]) -> TagInfo:
    """Replace the metadata of a tag.

    Raises:
        RefNotFoundError: there is no such tag.
        UnsupportedError: the table needs a writer feature that this release does not know.
    """
    refs = location.open()
    made = read_tag(refs, name)._replace(metadata=dict(metadata), updated_at=datetime.now(UTC))
    check_may_change(location, made.branch)
    replace_object(refs, tag_path(name), _content(made))
    return made


def delete_tag(location: TableLocation, name: str) -> TagInfo:
    """Remove a tag and return it; the version itself stays.

    Raises:
        RefNotFoundError: there is no such tag.
        UnsupportedError: the table needs a writer feature that this release does not know.
    """
    refs = location.open()
    gone = read_tag(refs, name)
    check_may_change(location, gone.branch)
    remove_object(refs, tag_path(name))
    return gone


def _check_may_name(target: Snapshot, *branches: str | None) -> None:
    """Check the version to be tagged, and the latest ones of the histories involved."""
    check_writable(target.manifest.reader_flags, target.manifest.writer_flags)
    check_may_change(target.location, target.branch, *branches)


def _tag(
    target: Snapshot,
    name: str,
    created_at: datetime,
    updated_at: datetime,
    metadata: Mapping[str, str],
) -> TagInfo:
    size = len(target.store.read(target.manifest_path))
    return TagInfo(
        name, target.version, target.branch, created_at, updated_at, size, dict(metadata)
    )


def _check_still_there(target: Snapshot) -> None:
    if not target.store.exists(target.manifest_path):
        raise VersionNotFoundError(
            f"{shown(target.store, target.manifest_path)}: version {target.version} was cleaned "
            "away, so it cannot be tagged"
        )


def _content(tag: TagInfo) -> bytes:
    record = {
        "branch": tag.branch,
        "version": tag.version,
        "createdAt": _time(tag.created_at),
        "updatedAt": _time(tag.updated_at),
        "manifestSize": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }
    return json.dumps(record, indent=2, ensure_ascii=False).encode()


def _time(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
