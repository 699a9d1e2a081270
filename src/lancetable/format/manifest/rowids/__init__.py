"""Numbers that belong to the rows of a fragment: stable row ids and versions."""

from lancetable.format.manifest.rowids.expand import (
    IdSpans,
    decode_id_spans,
    decode_row_ids,
    decode_versions,
    encode_row_id_runs,
    encode_row_ids,
    encode_versions,
    largest_row_id,
    spans_of,
)

__all__ = [
    "IdSpans",
    "decode_id_spans",
    "decode_row_ids",
    "decode_versions",
    "encode_row_id_runs",
    "encode_row_ids",
    "encode_versions",
    "largest_row_id",
    "spans_of",
]
