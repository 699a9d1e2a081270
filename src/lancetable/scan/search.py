"""The object a search is: rows in the order of their scores, not looked for yet.

A kind of search is a class that takes some kinds of query. It is listed in ``SEARCHERS`` and
follows the protocol ``Searcher``: it gives row ids and scores, and everything else is done here,
the same way for all kinds: rows that match a predicate are found first and handed to it, its best
rows are cut by limit and offset, read in their order, and get their scores as a column.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from lancetable.commit.leases import Hold, reading
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError, printable
from lancetable.expression import bind_predicate, columns, evaluate_mask, to_sql
from lancetable.format.arrays import Mask, numbers
from lancetable.fragment.projection import ROW_ID
from lancetable.fragment.readers import Readers
from lancetable.scan.columns import binding_schema
from lancetable.scan.hybrid import HybridSearcher
from lancetable.scan.plan import ScanPlan
from lancetable.scan.plans import Plans
from lancetable.scan.rebatch import exact_batches
from lancetable.scan.request import ScanRequest
from lancetable.scan.scanner import Scan
from lancetable.scan.search_request import SearchRequest
from lancetable.scan.searcher import QUERY_INDEX, Rows, Scored, Searcher
from lancetable.scan.take import Taker
from lancetable.scan.texts.searcher import TextSearcher
from lancetable.scan.vector_request import VectorOptions
from lancetable.scan.vectors.searcher import VectorSearcher

if TYPE_CHECKING:
    import pandas as pd

SEARCHERS = (TextSearcher, VectorSearcher, HybridSearcher)
"""All kinds of search; the first that takes a query is used."""


class Search:
    """Rows of a table in the order of their scores, not looked for yet.

    Anything that takes an Arrow stream takes a search.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        readers: Readers,
        request: SearchRequest,
        plans: Plans,
        kept: dict[object, Any],
    ) -> None:
        """Prepare to search; plans and ``kept`` are those of earlier searches of the version.

        Raises:
            InputError: the query is of no known kind, or cannot be evaluated.
            SchemaError: there is no such column, or it does not fit the query.
        """
        self._readers = readers
        self._request = request
        self._plans = plans
        self._kept = kept
        kind = next((one for one in SEARCHERS if one.takes(request.query)), None)
        if kind is None:
            raise InputError(
                f"{request.query!r} is not a query; give words, a query of lancetable.query, or "
                "a vector"
            )
        _check(request, kind.score)
        self._searcher: Searcher = kind(snapshot, readers, request, kept)

    @cached_property
    def _plan(self) -> ScanPlan:
        """The plan of the columns that are read, without that of the scores."""
        scan = self._request.scan
        names = scan.columns
        if names is not None:
            names = tuple(name for name in names if name != self._searcher.score)
        return self._plans.of(
            ScanRequest(
                columns=names,
                expressions=scan.expressions,
                with_row_id=scan.with_row_id,
                with_row_address=scan.with_row_address,
                blobs=scan.blobs,
            )
        )

    @cached_property
    def _place(self) -> int:
        """Where the column of scores is: where it is named, or behind the others."""
        scan = self._request.scan
        if scan.columns is not None and self._searcher.score in scan.columns:
            return scan.columns.index(self._searcher.score)
        return len(self._plan.schema) - scan.with_row_id - scan.with_row_address

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        found = self._plan.schema
        for place, field in self._added:
            found = found.insert(place, field)
        return found

    @cached_property
    def _added(self) -> list[tuple[int, pa.Field]]:
        """The columns beside those that are read, and where each is inserted in turn."""
        place = self._place
        more = [
            (0 if field.name == QUERY_INDEX else place, field)
            for field in reversed(self._searcher.more)
        ]
        return [(place, pa.field(self._searcher.score, pa.float32())), *more]

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table."""
        with self._leased():
            return self._taken(self._found())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, the best first."""
        options = self._request.options
        batches = self._batches()
        yield from exact_batches(batches, options.batch_rows) if options.strict else batches

    def _batches(self) -> Iterator[pa.RecordBatch]:
        step = self._request.options.batch_rows
        with self._leased() as hold:
            found = self._found()
            for first in range(0, len(found.rows), step):
                hold.tick()
                part = found.part(slice(first, first + step))
                yield from self._taken(part).to_batches(max_chunksize=step)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a stream of batches as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_pandas(self, **options: Any) -> "pd.DataFrame":  # noqa: ANN401 - pyarrow's options
        """Return all rows as a data frame; options are those of ``pyarrow.Table.to_pandas``."""
        return self.to_arrow().to_pandas(**options)

    def count(self) -> int:
        """Return the number of rows."""
        with self._leased():
            return len(self._found().rows)

    def _found(self) -> Scored:
        """Return the rows of the result and their scores."""
        scan = self._request.scan
        limit = None if scan.limit is None else scan.limit + scan.offset
        is_narrowed = self._request.prefilter and not self._searcher.reads_predicate
        allowed = self._allowed() if is_narrowed else None
        found = self._searcher.best(allowed, limit)
        found = found.part(slice(scan.offset, None))
        if scan.where is None or self._request.prefilter:
            return found
        return found.part(self._matching(found))

    def _allowed(self) -> Rows | None:
        """Return the rows that match the predicate, ascending; None without one."""
        scan = self._request.scan
        if scan.where is None:
            return None
        request = ScanRequest((ROW_ID,), where=scan.where, use_indices=scan.use_indices)
        chunks = Scan(self._readers, request, self._request.options, self._plans).to_arrow()
        rows = chunks.column(0).to_numpy()
        return rows if (rows[1:] > rows[:-1]).all() else np.sort(rows)

    def _matching(self, found: Scored) -> Mask:
        """Return which of some rows match the predicate, which may name the score."""
        where, score = self._request.scan.where, self._searcher.score
        assert where is not None
        schema = binding_schema(self._plans.schema)
        if score not in schema.names:
            schema = schema.append(pa.field(score, pa.float32()))
        bound = bind_predicate(where, schema)
        names = dict.fromkeys(path[0] for path in columns(bound) if path[0] != score)
        plan = self._plans.of(ScanRequest(columns=tuple(names)))
        table = Taker(plan, self._readers).by_row_id(found.rows).combine_chunks()
        table = table.append_column(score, numbers(found.scores))
        arrays = [
            column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
            for column in table.columns
        ]
        return evaluate_mask(bound, pa.RecordBatch.from_arrays(arrays, table.column_names))

    def _taken(self, found: Scored) -> pa.Table:
        """Read the columns of rows, and add the scores."""
        columns: list[pa.ChunkedArray] = []
        if self._plan.schema:
            columns = self._taker().by_row_id(found.rows).columns
        values = (found.scores, *reversed(found.more))
        for (place, field), each in zip(self._added, values, strict=True):
            valid = ~np.isnan(each) if field.nullable else None
            columns.insert(place, pa.chunked_array([numbers(each, valid)], field.type))
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _taker(self) -> Taker:
        """Return the reader of single rows; the last one is kept."""
        plan, taker = self._kept.get("taker", (None, None))
        if plan is not self._plan:
            taker = Taker(self._plan, self._readers)
            self._kept["taker"] = (self._plan, taker)
        return cast("Taker", taker)

    def _leased(self) -> AbstractContextManager[Hold]:
        source = self._readers.source
        seconds = self._request.options.lease_seconds
        return reading(source.store, source.manifest.version, seconds=seconds)

    def explain(self) -> str:
        """Return in words how the search will be done."""
        manifest, scan = self._readers.source.manifest, self._request.scan
        rows = self._readers.starts[-1]
        lines = [
            f"search in version {manifest.version}: {len(self._readers)} fragments, {rows} rows",
            f"  result: {', '.join(self.schema.names)}",
            *(f"  {line}" for line in self._searcher.describe()),
        ]
        if scan.where is not None:
            when = "before" if self._request.prefilter else "after"
            lines.append(f"  where, {when} the search: {to_sql(scan.where)}")
        lines.append(f"  limit: {'none' if scan.limit is None else scan.limit}")
        if scan.offset:
            lines.append(f"  offset: {scan.offset}")
        return "\n".join(lines)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.to_batches()

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return printable(f"<Search>\n{self.explain()}", keep="\n")


def _check(request: SearchRequest, score: str) -> None:
    """Refuse options of another kind of search."""
    if score == TextSearcher.score and request.vectors != VectorOptions():
        raise InputError(
            "nprobes, refine_factor, ef, metric and distance_range are options of a search for "
            "vectors; leave them out"
        )
    if score == VectorSearcher.score and (request.statistics != "all" or request.analysis):
        raise InputError("statistics and analysis are options of a search in texts; leave them out")
