"""Draft the next manifest: apply an operation to the newest version."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from lancetable.commit.apply.manifest import Context, State, apply
from lancetable.commit.loop.newer_versions import Tip
from lancetable.commit.publish import this_writer
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Operation
from lancetable.errors import UnsupportedError
from lancetable.format.manifest import IndexSegment, Manifest
from lancetable.format.manifest.envelope import section
from lancetable.format.manifest.flags import Feature
from lancetable.format.manifest.indices.codec import encode_index_section
from lancetable.format.manifest.names import Scheme, manifest_path
from lancetable.format.schema.model import Schema
from lancetable.store import TableLocation

if TYPE_CHECKING:
    from lancetable.format.manifest.reuse import FragmentReuse

FIRST_STORAGE_VERSION = "2.1"


class Needs(NamedTuple):
    """Values that an operation needs beside the version it is applied to."""

    restored: State | None = None
    storage_version: str | None = None
    enable_row_ids: bool = False


def before_first(
    location: TableLocation, storage_version: str | None, *, stable_row_ids: bool
) -> Snapshot:
    """Return version 0, which is empty and never stored."""
    flags = int(Feature.STABLE_ROW_IDS) if stable_row_ids else 0
    nothing = Manifest(
        0,
        Schema(()),
        (),
        reader_flags=flags,
        writer_flags=flags,
        config={},
        table_metadata={},
        data_format=storage_version or FIRST_STORAGE_VERSION,
    )
    return Snapshot(location, location.open(), nothing, manifest_path(0, Scheme.V2))


def applied(snapshot: Snapshot, operation: Operation, transaction_file: str, needs: Needs) -> State:
    """Apply an operation to a version.

    Raises:
        InputError: the operation does not fit the version.
    """
    context = Context(
        now=datetime.now(UTC),
        writer=this_writer(),
        indices=snapshot.indices,
        reuse=lambda segments: _reuse_of(snapshot, segments),
        transaction_file=transaction_file,
        restored=needs.restored,
        storage_version=needs.storage_version,
        enable_row_ids=needs.enable_row_ids,
    )
    return apply(snapshot.manifest, operation, context)


def _reuse_of(snapshot: Snapshot, segments: Sequence[IndexSegment]) -> "FragmentReuse | None":
    """Return the record of moved rows; ``None`` when a later release wrote it."""
    from lancetable.commit.reuse import load_reuse  # noqa: PLC0415 - seldom needed

    try:
        return load_reuse(snapshot, segments)
    except UnsupportedError:
        return None


def index_section(tip: Tip, state: State) -> bytes | None:
    """Return the message that lists the index segments: the old bytes when nothing changed."""
    if state.indices is not None:
        return encode_index_section(state.indices) if state.indices else None
    position = tip.snapshot.manifest.index_section
    if position is None:
        return None
    return bytes(section(tip.content(), position, "index section"))
