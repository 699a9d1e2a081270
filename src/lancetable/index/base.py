"""The contract of a kind of index: search, build and merge segments.

An index holds values of one column. A part of a predicate that reads this column only is evaluated
on the values of the index by the same code that evaluates it on rows, so both agree on nulls, NaN
and the two zeros.

A build receives the live rows of some fragments as batches of two columns, in table order:

=========  ====================================================================================
``value``  the column, in its Arrow type
``row``    uint64: row ids when the table has stable row ids and the written version of the kind
           holds them (``Kind.row_ids``); else row addresses, in ascending order
=========  ====================================================================================
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.expression import Column, Expression, evaluate_mask
from lancetable.expression.tree import rebuild
from lancetable.format.arrays import Mask
from lancetable.format.rows import RowSet
from lancetable.index.files import SegmentFiles
from lancetable.index.specs import Spec

VALUE, ROW = "value", "row"
Numbers: TypeAlias = npt.NDArray[np.uint64]
NO_METADATA: Mapping[str, str] = {}


class ScalarIndex(Protocol):
    """One opened segment of an index on a column."""

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments among those of the segment that its files describe."""
        ...

    def search(self, part: Expression) -> RowSet | None:
        """Return all rows for which a part of a predicate is true, exactly or at most.

        The part reads the column ``value`` only. None when the index cannot answer it.

        Raises:
            CorruptError: a file of the segment is damaged.
        """
        ...


@runtime_checkable
class Warmed(Protocol):
    """An opened segment that can read what searches will need before they do."""

    def warm(self) -> None:
        """Read into memory, as far as there is room.

        Raises:
            CorruptError: a file of the segment is damaged.
        """
        ...


class Sink(Protocol):
    """The folder of a new segment."""

    def write(
        self,
        name: str,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        metadata: Mapping[str, str] = NO_METADATA,
        buffers: Sequence[bytes] = (),
    ) -> None:
        """Write a file; fields keep their nullability and their metadata.

        ``buffers`` become the global buffers 1, 2 … Metadata and buffers are read after the last
        batch, so a build may complete them while it yields batches.

        Raises:
            StoreError: the file cannot be written; nothing of it stays behind.
        """
        ...

    def spill(self) -> IO[bytes]:
        """Return a new local file without a name; it is closed, and so gone, after the build."""
        ...


class Source(NamedTuple):
    """One old segment in a merge; a remap is a merge of one."""

    files: SegmentFiles
    translate: Callable[[Numbers], tuple[Numbers, Mask]]
    """Return rows of the segment as the new segment holds them, and which of them it holds: rows
    that were deleted, or whose fragment the segment no longer describes, are dropped."""


class IndexKind(Protocol):
    """One kind of index that is built and merged, listed in ``index.registry``."""

    @property
    def name(self) -> str:
        """Its key in ``format.manifest.indices.kinds.KINDS``."""
        ...

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index; None when they can."""
        ...

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment and return its details message, which may be empty."""
        ...

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several and return its details message.

        None, with nothing written, when segments of this kind must be built from data.

        Raises:
            CorruptError: a file of a segment is damaged.
        """
        ...

    def spec(self, files: SegmentFiles) -> Spec:
        """Return the parameters that a segment was built with.

        Raises:
            CorruptError: the segment does not record them properly.
        """
        ...


class ScalarKind(IndexKind, Protocol):
    """One kind of index that answers parts of predicates."""

    def open(self, files: SegmentFiles) -> ScalarIndex:
        """Return an opened segment.

        Raises:
            CorruptError: a file of the segment is damaged.
        """
        ...


def in_terms_of_values(part: Expression) -> Expression:
    """Return a part of a predicate on one column as one on the column ``value``."""
    if isinstance(part, Column):
        return Column((VALUE,))
    return rebuild(part, in_terms_of_values)


def matching(part: Expression, values: pa.Array) -> Mask:
    """Return for which of some values a part of a predicate is true."""
    if not len(values):
        return np.zeros(0, np.bool_)
    return evaluate_mask(part, pa.RecordBatch.from_arrays([values], [VALUE]))
