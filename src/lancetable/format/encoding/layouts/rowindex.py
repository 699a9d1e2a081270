"""The repetition index of mini-block pages, which maps rows of lists to chunks.

Two u64 per chunk: how many rows end in it, and how many entries after the last row end belong to a
row that goes on in the next chunk. A chunk starts with the rest of a row (a preamble) exactly when
the chunk before has entries left over.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers, Rows
from lancetable.format.encoding.kernels.tables import row_firsts

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowIndex:
    """``firsts[i]`` rows start before chunk i; one more number than there are chunks."""

    firsts: Integers

    def chunks_of(self, rows: Rows) -> Integers:
        """Return the chunks that hold any part of the rows."""
        if isinstance(rows, range):
            first, last = self._chunk_of(np.array([rows.start, rows.stop])).tolist()
            return np.arange(first, last + 1)
        edges = np.zeros(len(self.firsts), np.int64)
        np.add.at(edges, self._chunk_of(rows), 1)
        np.add.at(edges, self._chunk_of(rows + 1) + 1, -1)
        return np.flatnonzero(np.cumsum(edges[:-1]) > 0)

    def _chunk_of(self, rows: Integers) -> Integers:
        """Return the chunk each row starts in; the end of the page counts as the last chunk."""
        place = np.searchsorted(self.firsts, rows, side="right") - 1
        return np.minimum(place, len(self.firsts) - 2)

    def row_of(self, is_start: Mask, numbers: Integers, levels: Integers) -> Integers:
        """Return the row that each entry of some chunks belongs to."""
        seen = np.zeros(len(is_start) + 1, np.int64)
        np.cumsum(is_start, out=seen[1:])
        edges = np.zeros(len(levels) + 1, np.int64)
        np.cumsum(levels, out=edges[1:])
        if (np.diff(seen[edges]) != np.diff(self.firsts)[numbers]).any():
            raise CorruptError("the repetition index of a page does not match its levels")
        base = self.firsts[numbers] - 1 - seen[edges[:-1]]
        return np.repeat(base, levels) + seen[1:]


def parse_row_index(data: Bytes, chunks: int, rows: int) -> RowIndex:
    """Decode a repetition index.

    Raises:
        CorruptError: it does not fit the page.
    """
    quick = row_firsts(data, chunks, rows)
    if quick is not None:
        return RowIndex(quick)
    if len(data) != chunks * 16:
        raise CorruptError(f"the repetition index of {chunks} chunks has {len(data)} bytes")
    pairs = data.view("<u8").reshape(chunks, 2)
    if chunks and int(pairs.max()) > 1 << 48:
        raise CorruptError("the repetition index of a page counts more rows than can be")
    table = pairs.astype(np.int64)
    ends, leaves = table[:, 0], table[:, 1] > 0
    preamble = np.append(False, leaves[:-1])
    starting = ends + leaves - preamble
    firsts = np.zeros(chunks + 1, np.int64)
    np.cumsum(starting, out=firsts[1:])
    if (starting < 0).any() or int(firsts[-1]) != rows:
        raise CorruptError(f"the repetition index of a page of {rows} rows counts others")
    return RowIndex(firsts)
