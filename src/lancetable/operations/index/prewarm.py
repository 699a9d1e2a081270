"""Read the segments of an index into memory before searches need them."""

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.format.manifest.indices.kinds import kind_of
from lancetable.index.base import Warmed
from lancetable.index.registry import SCALAR, SEGMENTS, TEXTS, VECTORS
from lancetable.operations.index.create import missing
from lancetable.operations.index.describe import describe_indices


def prewarm_index(snapshot: Snapshot, name: str) -> None:
    """Read the segments of an index, as far as there is room for what is kept of them.

    Raises:
        IndexNotFoundError: there is no index of that name.
        InputError: it is not used.
        CorruptError: a file of it is damaged.
    """
    info = describe_indices(snapshot).get(name)
    if info is None or info.is_system:
        raise missing(snapshot, name)
    if info.unusable is not None:
        raise InputError(f"index {name!r} is not used: {info.unusable}")
    for segment in info.segments:
        kind, place = kind_of(segment), snapshot.index_place(segment)
        opened = VECTORS if kind.is_vector else SEGMENTS if kind.name in SCALAR else TEXTS
        found: object = opened.open(*place, segment)
        if isinstance(found, Warmed):
            found.warm()
