"""Pages of a blob column of the first generation (see ``layouts.blob``)."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import UnsupportedError
from lancetable.format.encoding.build.blocks import FixedValues, PageDraft
from lancetable.format.encoding.build.codec import encode_blob_layout
from lancetable.format.encoding.build.fullzip import build_fullzip
from lancetable.format.encoding.build.miniblock import build_miniblock
from lancetable.format.encoding.build.shred import Shredded
from lancetable.format.encoding.build.values import encode_flat
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.packed_struct import PackedStruct
from lancetable.format.encoding.repdef import Layer

LEVEL_SHIFT = 16


def build_blobs(leaf: Shredded, rows: int) -> PageDraft:
    """Build the page of positions and sizes; a missing blob has its level for a position.

    Raises:
        UnsupportedError: the blobs are items of lists.
    """
    if leaf.rep is not None:
        raise UnsupportedError(
            f"blob column {leaf.field.name!r} is inside a list, which files of version 2.1 cannot"
            " hold; use file version 2.2"
        )
    table = blob_table(leaf.values)
    if leaf.def_ is not None:
        is_missing = leaf.def_ != 0
        table[is_missing, 0] = leaf.def_[is_missing].astype(np.uint64) << np.uint64(LEVEL_SHIFT)
        table[is_missing, 1] = 0
    packed = FixedValues(table.view(np.uint8).reshape(len(table), 16), 16)
    compression = PackedStruct((64, 64), Flat(128))
    inner = Shredded(leaf.field, leaf.values, None, None, (Layer.ALL_VALID_ITEM,))
    chunks = encode_flat(packed)._replace(compression=compression)
    draft = build_miniblock(inner, chunks, rows, is_large=False)
    if draft is None:
        draft = build_fullzip(inner, packed, compression, rows)
    return draft._replace(description=encode_blob_layout(draft.description, leaf.layers))


def blob_table(array: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a row of position and size for each blob."""
    table = np.zeros((len(array), 2), np.uint64)
    for column in range(2):
        table[:, column] = array.field(column).fill_null(0).to_numpy(zero_copy_only=False)
    return table
