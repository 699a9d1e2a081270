"""Sets of rows that a column of an index file holds, kept decoded."""

from collections.abc import Callable, Sequence

import numpy as np

from lancetable.format.rows import RowSet
from lancetable.index.files import KEPT_BYTES, SegmentFiles

_AT_A_TIME = 1024
_OVERHEAD = 200
"""About the bytes of a set besides its rows."""


class KeptSets:
    """The sets in a column, by row of the file; those of fragments of unknown size are None."""

    def __init__(
        self,
        files: SegmentFiles,
        name: str,
        column: str,
        decode: Callable[[bytes], RowSet | None],
    ) -> None:
        self._files = files
        self._name = name
        self._column = column
        self._decode = decode

    def warm(self) -> None:
        """Read the sets, as far as there is room."""
        for rows in self._files.portions(self._name, _AT_A_TIME, KEPT_BYTES):
            self.of(rows)

    def of(self, places: Sequence[int]) -> list[RowSet | None]:
        """Return the sets in some rows of the file, which ascend.

        Raises:
            CorruptError: one of them is damaged.
        """
        found = {place: self._files.find((self._name, place)) for place in places}
        missing = [place for place, kept in found.items() if kept is None]
        if missing:
            (sets,) = self._files.read(self._name, (self._column,), np.array(missing))
            for place, one in zip(missing, sets.to_pylist(), strict=True):
                data = one or b""
                made = (self._decode(data),)
                self._files.keep((self._name, place), made, len(data) + _OVERHEAD)
                found[place] = made
        return [found[place][0] for place in places]
