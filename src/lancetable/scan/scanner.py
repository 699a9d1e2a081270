"""The scan that a user holds: it returns a table, batches, a count or a description of its plan."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lancetable.commit.leases import Hold, reading
from lancetable.errors import LimitError, printable
from lancetable.expression import to_sql
from lancetable.fragment.readers import Readers
from lancetable.scan import execute
from lancetable.scan.plan import ScanPlan
from lancetable.scan.plans import Plans
from lancetable.scan.rebatch import exact_batches
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.result import Piece, table_of, to_table

if TYPE_CHECKING:
    import pandas as pd

    from lancetable.scan.named_rows import Named
    from lancetable.scan.narrow import Narrowing


class Scan:
    """Rows of a table, not read yet. Anything that takes an Arrow stream takes a scan.

    For example ``duckdb.sql("select * from scan")``, ``polars.from_arrow(scan)``,
    ``pyarrow.table(scan)``.
    """

    def __init__(
        self,
        readers: Readers,
        request: ScanRequest,
        options: ScanOptions,
        plans: Plans | None = None,
    ) -> None:
        """Prepare to read; ``plans`` are those of earlier scans of the same version."""
        self._readers = readers
        self._plans = Plans(readers.source.manifest.schema) if plans is None else plans
        self._request = request
        self._options = options

    @cached_property
    def _plan(self) -> ScanPlan:
        """The plan of what is scanned; without the predicate when indices name all rows."""
        if self._narrowing is not None and self._narrowing.is_complete:
            return self._plans.narrowed(self._request, None)
        return self._plans.of(self._request)

    @cached_property
    def _narrowing(self) -> "Narrowing | None":
        """What indices know about the predicate."""
        request = self._request
        if request.where is None or request.include_deleted or not request.use_indices:
            return None
        if self._readers.source.manifest.index_section is None:
            return None
        from lancetable.scan.narrow import narrow  # noqa: PLC0415 - for tables with indices

        return narrow(self._readers, self._plans.bound(request.where), self._plans)

    @property
    def _named(self) -> "Named | None":
        if self._narrowing is None:
            return None
        return self._narrowing.named(partial(self._plans.narrowed, self._request))

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._plan.schema

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table."""
        with self._leased() as hold:
            taken = self._taken()
            if taken is not None:
                return taken
            pieces = execute.run(self._plan, self._readers, self._options, named=self._named)
            return to_table(self._plan, _ticking(pieces, hold))

    def _taken(self) -> pa.Table | None:
        """Return the rows when indices name exactly them and they are few; None otherwise."""
        places = None if self._narrowing is None else self._narrowing.places()
        if places is None:
            return None
        start, limit = self._request.offset, self._request.limit
        stop = None if limit is None else start + limit
        positions, offsets = (one[start:stop] for one in places)
        try:
            return self._plans.taker(self._plan, self._readers).placed(positions, offsets)
        except LimitError:
            return None  # a scan returns rows of any size, in smaller pieces

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches; only a bounded part of them is in memory at a time."""
        batches = self._batches()
        yield from (
            exact_batches(batches, self._options.batch_rows) if self._options.strict else batches
        )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        rows = self._options.batch_rows
        with self._leased() as hold:
            # Whoever takes the batches may take any time between two of them.
            pieces = execute.run(
                self._plan,
                self._readers,
                self._options,
                named=self._named,
                is_stream=True,
                on_long=hold.start,
            )
            for piece in _ticking(pieces, hold):
                yield from table_of(self._plan, piece).to_batches(max_chunksize=rows)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a stream of batches as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_pandas(self, **options: Any) -> "pd.DataFrame":  # noqa: ANN401 - pyarrow's options
        """Return all rows as a data frame; options are those of ``pyarrow.Table.to_pandas``."""
        return self.to_arrow().to_pandas(**options)

    def count(self) -> int:
        """Return the number of rows, reading no more than the columns of the predicate."""
        if self._request.where is None:
            found = self._readers.starts[-1]
        elif self._narrowing is None:
            found = execute.count(self._plan, self._readers, self._options)
        else:
            found = self._count_named(self._narrowing)
        found = max(found - self._request.offset, 0)
        return found if self._request.limit is None else min(found, self._request.limit)

    def _count_named(self, narrowing: "Narrowing") -> int:
        known, left = narrowing.count()
        if not left:
            return known
        named = narrowing.named(partial(self._plans.narrowed, self._request), left)
        return known + execute.count(self._plan, self._readers, self._options, named)

    def _leased(self) -> AbstractContextManager[Hold]:
        source = self._readers.source
        seconds = self._options.lease_seconds
        return reading(source.store, source.manifest.version, seconds=seconds)

    def explain(self) -> str:
        """Return in words how the scan will be done."""
        readers, planned = self._readers, self._plan
        manifest, rows = readers.source.manifest, readers.starts[-1]
        lines = [
            f"scan of version {manifest.version}: {len(readers)} fragments, {rows} rows",
            f"  result: {', '.join(self.schema.names) or 'no columns'}",
        ]
        where = self._request.where
        if where is not None:
            lines.append(f"  where: {to_sql(self._plans.bound(where))}")
        if self._narrowing is not None:
            lines += [f"  {line}" for line in self._narrowing.describe()]
        if where is not None and self._plans.indices is not None:
            passed_over = self._plans.indices.passed_over(self._plans.bound(where))
            lines += [f"  {line}" for line in passed_over]
        if planned.where is not None:
            lines.append(f"  first read: {', '.join(planned.early_names) or 'nothing'}")
            late = ", ".join(planned.names[len(planned.early_names) :])
            lines.append(f"  then, for the rows that pass: {late or 'nothing more'}")
        else:
            lines.append(f"  read: {', '.join(planned.names) or 'nothing'}")
        if planned.offset:
            lines.append(f"  offset: {planned.offset}")
        if planned.limit is not None:
            lines.append(f"  limit: {planned.limit}")
        return "\n".join(lines)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.to_batches()

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return printable(f"<Scan>\n{self.explain()}", keep="\n")


def _ticking(pieces: Iterable[Piece], hold: Hold) -> Iterator[Piece]:
    """Yield the pieces; a scan that takes long gets its lease on the way."""
    for piece in pieces:
        hold.tick()
        yield piece
