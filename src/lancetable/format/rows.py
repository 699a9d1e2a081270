"""Row addresses, and sets of rows.

========  ======================================
bits      meaning of an address
========  ======================================
63 … 32   fragment id
31 … 0    offset of the row within the fragment
========  ======================================
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pyroaring import BitMap64

OFFSET_BITS = 32
MAX_OFFSET = (1 << OFFSET_BITS) - 1
MAX_FRAGMENT_ID = (1 << 32) - 1


def row_address(fragment_id: int, offset: int) -> int:
    """Return the address of one row."""
    return fragment_id << OFFSET_BITS | offset


class RowSet:
    """A set of row addresses or of row ids: all rows that match something, exactly or at most.

    When ``is_exact`` is false the set may also contain rows that do not match, and its user has to
    check them. Every operation keeps all rows that match.
    """

    # Not a dataclass: opening a table does without that module.
    __slots__ = ("_rows", "is_exact")

    def __init__(self, rows: "BitMap64", is_exact: bool = True) -> None:  # noqa: FBT001, FBT002
        self._rows = rows
        self.is_exact = is_exact

    def __eq__(self, other: object) -> bool:
        """Return whether two sets hold the same rows, both exactly or both at most."""
        if not isinstance(other, RowSet):
            return NotImplemented
        return self.is_exact == other.is_exact and bool(self._rows == other._rows)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def from_addresses(
        cls, addresses: "npt.NDArray[np.uint64] | Iterable[int]", *, is_exact: bool = True
    ) -> "RowSet":
        """Return the set of some addresses or ids, in any order."""
        import numpy as np  # noqa: PLC0415 - opening a table does without it
        from pyroaring import BitMap64  # noqa: PLC0415

        # A bitmap takes an array as a whole, and anything else one by one; the ascending five times
        # as fast, sorting included.
        if isinstance(addresses, np.ndarray):
            ascending = np.sort(addresses.astype(np.uint64, copy=False))
            addresses = array("Q", ascending.tobytes())
        return cls(BitMap64(addresses), is_exact)

    @classmethod
    def from_ranges(cls, ranges: Iterable[tuple[int, int]], *, is_exact: bool = True) -> "RowSet":
        """Return the set of all addresses or ids from each start up to its stop, exclusive."""
        from pyroaring import BitMap64  # noqa: PLC0415

        rows = BitMap64()
        for start, stop in ranges:
            if start < stop:
                # The largest value on its own: a range cannot end behind it.
                rows.add_range(start, stop - 1)
                rows.add(stop - 1)
        return cls(rows, is_exact)

    @classmethod
    def from_fragments(cls, fragments: Mapping[int, int], *, is_exact: bool = True) -> "RowSet":
        """Return the set of all rows of fragments, given as {fragment id: physical rows}."""
        firsts = ((id_ << OFFSET_BITS, count) for id_, count in fragments.items())
        return cls.from_ranges(((at, at + count) for at, count in firsts), is_exact=is_exact)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __contains__(self, address: object) -> bool:
        """Return whether a row is in the set."""
        return isinstance(address, int) and 0 <= address < 1 << 64 and address in self._rows

    def __and__(self, other: "RowSet") -> "RowSet":
        """Return the rows in both sets."""
        return RowSet(self._rows & other._rows, self.is_exact and other.is_exact)

    def __or__(self, other: "RowSet") -> "RowSet":
        """Return the rows in either set."""
        return RowSet(self._rows | other._rows, self.is_exact and other.is_exact)

    def __sub__(self, other: "RowSet") -> "RowSet":
        """Return the rows that are not in another set; none is removed by one that is not exact."""
        if not other.is_exact:
            return RowSet(self._rows, is_exact=False)
        return RowSet(self._rows - other._rows, self.is_exact)

    def complement(self, fragments: Mapping[int, int]) -> "RowSet":
        """Return all other rows of fragments, given as {fragment id: physical rows}."""
        return RowSet.from_fragments(fragments) - self

    def addresses(self) -> "npt.NDArray[np.uint64]":
        """Return the rows in ascending order."""
        import numpy as np  # noqa: PLC0415

        return np.frombuffer(self._rows.to_array(), np.uint64)

    def at_most(self) -> "RowSet":
        """Return the set as one that may contain rows that do not match."""
        return RowSet(self._rows, is_exact=False)

    def within(self, fragments: Iterable[int]) -> "RowSet":
        """Return the rows of some fragments, given by their ids."""
        wanted = frozenset(fragments)
        spans = list(self._spans())
        if all(id_ in wanted for id_, _, _ in spans):
            return self
        kept = type(self._rows)()
        for id_, first, last in spans:
            if id_ in wanted:
                kept |= self._rows[first:last]
        return RowSet(kept, self.is_exact)

    def _spans(self) -> "Iterator[tuple[int, int, int]]":
        """Yield each fragment that has rows, and where they begin and end among all rows."""
        first, count = 0, len(self._rows)
        while first < count:
            id_ = self._rows[first] >> OFFSET_BITS
            last = self._rows.rank(id_ << OFFSET_BITS | MAX_OFFSET)
            yield id_, first, last
            first = last

    def by_fragment(self) -> "dict[int, npt.NDArray[np.int64]]":
        """Return the offsets of the rows of each fragment that has some, in ascending order."""
        import numpy as np  # noqa: PLC0415

        rows = self.addresses()
        if not len(rows):
            return {}
        offsets = (rows & np.uint64(MAX_OFFSET)).astype(np.int64)
        first, last = int(rows[0]) >> OFFSET_BITS, int(rows[-1]) >> OFFSET_BITS
        if first == last:
            return {first: offsets}
        ids = rows >> np.uint64(OFFSET_BITS)
        edges = np.flatnonzero(ids[1:] != ids[:-1]) + 1
        firsts = [0, *edges.tolist()]
        return dict(zip(ids[firsts].tolist(), np.split(offsets, edges), strict=True))

    def of_fragment(self, fragment_id: int) -> "npt.NDArray[np.int64]":
        """Return the offsets of the rows of one fragment, in ascending order."""
        import numpy as np  # noqa: PLC0415

        first = fragment_id << OFFSET_BITS
        start = self._rows.rank(first - 1) if first else 0
        rows = self._rows[start : self._rows.rank(first | MAX_OFFSET)]
        return (np.frombuffer(rows.to_array(), np.uint64) & np.uint64(MAX_OFFSET)).astype(np.int64)
