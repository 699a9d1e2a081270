"""Find out how a full-text index analyses texts."""

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import IndexNotFoundError
from lancetable.expression.analysis.parameters import Analysis
from lancetable.format.manifest.indices.kinds import kind_of
from lancetable.index.registry import TEXTS
from lancetable.index.specs import FullText


def analysis_of(snapshot: Snapshot, name: str) -> Analysis:
    """Return how a full-text index analyses texts.

    Raises:
        IndexNotFoundError: there is no full-text index of that name.
        CorruptError: a file of the index is damaged.
    """
    for segment in snapshot.indices():
        if segment.name == name and kind_of(segment).name == FullText.kind:
            return TEXTS.open(*snapshot.index_place(segment), segment).analysis
    raise IndexNotFoundError(f"there is no full-text index {name!r}")
