"""The contents of one table version: fragments, files, deletions, row ids, indices."""

from lancetable.format.manifest.model import (
    BasePath,
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionKind,
    ExternalSequence,
    Fragment,
    IndexFile,
    IndexSegment,
    InlineSequence,
    Manifest,
    SequenceSource,
    WriterVersion,
)

__all__ = [
    "BasePath",
    "ColumnSequence",
    "DataFile",
    "DeletionFile",
    "DeletionKind",
    "ExternalSequence",
    "Fragment",
    "IndexFile",
    "IndexSegment",
    "InlineSequence",
    "Manifest",
    "SequenceSource",
    "WriterVersion",
]
