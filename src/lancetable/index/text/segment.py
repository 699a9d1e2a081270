"""A segment of a full-text index: how texts were analysed, and its partitions.

``metadata.lance`` lists the partitions and the parameters of the analysis in its schema metadata,
and has one row, ``deleted_fragments``, a bitmap of fragments whose rows are not to be found.
"""

import json
from functools import cached_property

from lancetable.errors import CorruptError
from lancetable.expression.analysis.parameters import Analysis
from lancetable.format.manifest.model import MAX_COVERED
from lancetable.format.manifest.roaring import decode_bitmap
from lancetable.index.files import SegmentFiles
from lancetable.index.text.partition import StoredPartition

METADATA = "metadata.lance"


class TextSegment:
    """An opened segment."""

    def __init__(self, files: SegmentFiles) -> None:
        """Read what describes the segment.

        Raises:
            CorruptError: it is damaged.
        """
        found = files.metadata(METADATA)
        self.analysis = Analysis.from_json(found.get("params", "{}"))
        """How texts were analysed."""

        self._files = files
        self._token_format = found.get("token_set_format", "arrow")
        self._numbers = _partition_numbers(found.get("partitions", "[0]"))

    @cached_property
    def partitions(self) -> list[StoredPartition]:
        """The partitions.

        Raises:
            CorruptError: one is damaged.
        """
        return [StoredPartition(self._files, one, self._token_format) for one in self._numbers]

    @cached_property
    def removed(self) -> frozenset[int]:
        """The fragments whose rows are not to be found."""
        if "deleted_fragments" not in self._files.columns(METADATA):
            return frozenset()
        (found,) = self._files.read(METADATA, ("deleted_fragments",))
        ids: set[int] = set()
        for one in found.to_pylist():
            if one:
                ids.update(decode_bitmap(one, most=MAX_COVERED).tolist())
        return frozenset(ids)


def _partition_numbers(text: str) -> list[int]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, int) and one >= 0 for one in found):
        raise CorruptError(f"the list of partitions of a full-text index is {text!r}")
    if len(set(found)) < len(found):
        raise CorruptError(f"the list of partitions of a full-text index has one twice: {text}")
    return found
