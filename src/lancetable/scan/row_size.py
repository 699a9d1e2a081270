"""Choose how many rows to read at a time, so that about the wanted number of bytes is decoded."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lancetable.errors import FileNotFoundInStoreError
from lancetable.format.limits import read_limits
from lancetable.format.manifest.model import DataFile, Fragment
from lancetable.format.schema.types import arrow_type, fixed_width
from lancetable.fragment.projection import Projection
from lancetable.fragment.source import Source

TELLING_ROWS = 256
"""From so many rows on what was read says something about the others."""

DOUBTFUL_BYTES = 256 * 1024
"""From so many bytes per row on the recorded sizes of files are not taken for granted."""

UNKNOWN_WIDTH = 64
EXPANSION = 3
"""How much larger decoded text may be than its file, as a first guess."""


class Pace:
    """A guess of the bytes per row, corrected by what was really read.

    ``is_exact`` says that all rows take as many, so that there is nothing to learn from them.
    """

    __slots__ = ("_most", "is_exact", "row_bytes")

    def __init__(self, row_bytes: float, *, is_exact: bool = False) -> None:
        self.row_bytes = max(row_bytes, 0.25)
        self.is_exact = is_exact
        # Validity takes some bytes, too.
        self._most = read_limits().max_batch_bytes * 7 // 8

    def rows(self, bytes_: int) -> int:
        """Return how many rows fit in a number of bytes, and in the limit on a batch."""
        return max(int(min(bytes_, self._most) / self.row_bytes), 1)

    def learn(self, rows: int, bytes_: int) -> None:
        """Take note of rows that were read; a wide row counts at once, a narrow one slowly."""
        if rows >= TELLING_ROWS or bytes_ > rows * self.row_bytes:
            seen = bytes_ / rows if rows else self.row_bytes
            self.row_bytes = max(seen, (self.row_bytes + seen) / 2, 0.25)


def guess(projections: Iterable[Projection], fragments: Iterable[Fragment]) -> Pace:
    """Guess the bytes per row from the types, and from the file size for text and lists."""
    width, variable = _widths(projections)
    read_limits().check_row(int(width))
    if not variable:
        return Pace(width, is_exact=True)
    return Pace(width + _variable_width(variable, fragments))


def fixed_row_bytes(projections: Iterable[Projection]) -> float:
    """Return the bytes of one row, without columns whose values differ in size."""
    return _widths(projections)[0]


def _widths(projections: Iterable[Projection]) -> tuple[float, int]:
    """Return the bytes of the fixed-width columns of one row, and how many other columns are."""
    width = 0.0
    variable = 0
    for projection in projections:
        width += 8 * len(projection.system)
        for field in projection.fields:
            fixed = fixed_width(arrow_type(field))
            if fixed is None:
                variable += 1
            else:
                width += fixed
    return width, variable


def measured(projections: Sequence[Projection], source: Source) -> Pace:
    """Guess the bytes per row like :func:`guess`, without believing what is hardly so.

    A recorded size that is far too large would make every batch a single row.
    """
    fragments = source.manifest.fragments
    pace = guess(projections, fragments)
    if pace.is_exact or pace.row_bytes < DOUBTFUL_BYTES or not fragments:
        return pace
    first = fragments[0]
    return guess(projections, [first._replace(files=tuple(_sized(source, first)))])


def _sized(source: Source, fragment: Fragment) -> Iterator[DataFile]:
    """Yield the data files of a fragment with the sizes that they have."""
    for file in fragment.files:
        store, path = source.data_file_place(file)
        try:
            yield file._replace(size=store.open(path).size)
        except FileNotFoundInStoreError:  # whoever reads it will tell
            yield file


def is_fixed_width(projection: Projection) -> bool:
    """Say whether every value of the columns takes the same number of bytes."""
    return None not in [fixed_width(arrow_type(field)) for field in projection.fields]


def _variable_width(columns: int, fragments: Iterable[Fragment]) -> float:
    for fragment in fragments:
        stored = sum(file.size or 0 for file in fragment.files)
        if fragment.physical_rows and stored:
            share = min(columns / max(sum(len(file.fields) for file in fragment.files), 1), 1)
            return max(EXPANSION * share * stored / fragment.physical_rows, UNKNOWN_WIDTH)
        break
    return columns * UNKNOWN_WIDTH


def bytes_of(columns: Iterable[Iterable[pa.Array]]) -> int:
    """Return the bytes that columns occupy."""
    return sum([chunk.nbytes for column in columns for chunk in column])
