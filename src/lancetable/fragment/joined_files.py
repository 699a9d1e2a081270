"""The live rows of several neighbouring fragments, read as if they were one."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.file import FileReader
from lancetable.file.error_context import DECODING_FAILURES
from lancetable.file.read.joined_files import can_read_together, read_together
from lancetable.fragment.projection import Projection
from lancetable.fragment.reader import FragmentReader
from lancetable.fragment.select import Columns, Mask, keep


def read_live_together(readers: Sequence[FragmentReader], projection: Projection) -> Columns | None:
    """Return all live rows of fragments, each column in one piece where that can be.

    None when their files are not made for it, or when one is damaged: read one by one they tell
    which it is.
    """
    if projection.system or not projection.fields:
        return None
    files: list[FileReader] = []
    for reader in readers:
        single = projection.plan(reader.opened.files).single_file
        file = None if single is None else reader.opened.file(single)
        if not isinstance(file, FileReader) or not can_read_together(file):
            return None
        files.append(file)
    live = _live(readers)
    columns: Columns = []
    try:
        for field in projection.fields:
            column = _whole(read_together(files, field))
            columns.append(column if live is None else keep([column], live)[0])
    except (CorruptError, *DECODING_FAILURES):
        return None
    return columns


def _whole(column: list[pa.Array]) -> list[pa.Array]:
    """Join the pieces of a column, so that others need not be cut to fit them."""
    if len(column) == 1:
        return column
    try:
        return [pa.concat_arrays(column)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # too long, or of unlike dictionaries
        return column


def _live(readers: Sequence[FragmentReader]) -> Mask | None:
    """Return which rows of all fragments are live; None when all are."""
    parts = [reader.opened.deletions for reader in readers]
    if all(part is None for part in parts):
        return None
    live = np.ones(sum(reader.opened.rows for reader in readers), np.bool_)
    first = 0
    for reader, part in zip(readers, parts, strict=True):
        if part is not None:
            live[first + part.offsets] = False
        first += reader.opened.rows
    return live
