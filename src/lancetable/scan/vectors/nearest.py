"""Find the rows whose vectors are nearest to some others.

1. Choose the index: the segments on the column whose metric is the one that is asked for.
2. With a predicate, find the rows of their fragments that match. When they are few, compare them
   all; else let the segments find only these, in the more partitions the fewer they are.
3. Search the nearest partitions of each segment, and further ones while too few rows are found.
4. Order the candidates by their exact distances, when that is asked for, or when rows that no
   segment describes are compared, too.
5. Compare the rows of all other fragments.
"""

import logging
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from lancetable.commit.snapshot import Snapshot
from lancetable.fragment.projection import ROW_ID
from lancetable.fragment.readers import Readers
from lancetable.index.vector.distance import Floats
from lancetable.index.vector.live import Live
from lancetable.index.vector.storage import Plain
from lancetable.index.vector.top import Nearest, Range, Rows, Top
from lancetable.index.vector.types import Matrix, parse_metric, queries_of
from lancetable.scan.ask_indices import FAULTS
from lancetable.scan.plans import Plans
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.scanner import Scan
from lancetable.scan.vector_request import VectorRequest
from lancetable.scan.vectors.covered import Coverage
from lancetable.scan.vectors.exact import Comparison, VectorColumn, vector_column
from lancetable.scan.vectors.probing import Probing

FEW_ROWS = 4096
"""Rows that match a predicate are all compared when they are not more."""
CANDIDATES = 10
"""How many candidates for each row wanted every vector of a query on lists of vectors names."""
_log = logging.getLogger("lancetable.scan")


class VectorSearch:
    """A search in a version, not done yet."""

    def __init__(
        self,
        readers: Readers,
        request: VectorRequest,
        kept: dict[object, Any] | None = None,
    ) -> None:
        """Prepare to search; ``kept`` is what earlier searches of the version found out.

        Raises:
            SchemaError: there is no such column, or it does not hold vectors.
            InputError: a vector has another dimension, or the metric does not fit.
        """
        self._readers = readers
        self._kept = {} if kept is None else kept
        self._plans = self._kept.setdefault("vector plans", Plans(readers.source.manifest.schema))
        self._request = request
        self.column = self._column()
        self.queries: Matrix = queries_of(request.vector, self.column.type)
        given = request.options.metric
        self._asked = None if given is None else parse_metric(given, self.column.type)
        self._passed_over: frozenset[str] = frozenset()

    def limited(self, limit: int) -> "VectorSearch":
        """Return the same search for another number of rows."""
        made = copy(self)
        made._request = replace(self._request, limit=limit)  # noqa: SLF001 - of the same class
        return made

    def _column(self) -> VectorColumn:
        key = ("vector column", self._request.column)
        found: VectorColumn | None = self._kept.get(key)
        if found is None:
            schema = self._readers.source.manifest.schema
            found = self._kept[key] = vector_column(schema, self._request.column)
        return found

    @property
    def results(self) -> int:
        """How many there are: one for each vector, one for all vectors on a column of lists."""
        return 1 if self.column.type.is_multi else len(self.queries)

    @property
    def metric(self) -> str:
        """How vectors are compared."""
        return self._asked or self._coverage.metric or self.column.type.metrics[0]

    def find(self) -> list[Nearest]:
        """Return the ids and the distances of the nearest rows for each result.

        Raises:
            CorruptError: a data file is damaged.
        """
        while True:
            coverage = self._coverage
            try:
                top = self._search(coverage)
            except _DamagedSegmentError as damage:
                _log.warning("an index segment is not used: %s", damage)
                self._passed_over |= {damage.uuid}
            else:
                return [top.found(number) for number in range(len(top))]

    def describe(self) -> list[str]:
        """Return in words how the search will be done."""
        coverage, request = self._coverage, self._request
        lines = [
            f"vectors near {self.results} in {self.column.path} by {self.metric}",
            *(f"  {note}" for note in coverage.notes),
        ]
        for part in coverage.parts:
            layout = part.opened.layout
            lines.append(
                f"  index {part.entry.name}: {layout.kind}, {len(part.opened)} partitions, "
                f"{part.opened.rows} vectors, {len(part.readers)} fragments"
            )
        if request.where is not None and coverage.parts:
            survivors = self._survivors(coverage)
            how = "all compared" if self._are_few(survivors) else "searched with the index"
            lines.append(f"  rows that match: {sum(map(len, survivors))}, {how}")
        if self._needs_exact(coverage):
            lines.append("  candidates are ordered by their exact distances")
        if coverage.uncovered and not request.indexed_only:
            lines.append(f"  compared row by row: {len(coverage.uncovered)} fragments")
        return lines

    @cached_property
    def _source(self) -> Snapshot | None:
        source = self._readers.source
        return source if isinstance(source, Snapshot) else None

    @property
    def _coverage(self) -> Coverage:
        if self._source is None or not self._request.use_indices:
            return Coverage(self._readers, self.column, self._asked)
        key = ("vector", self.column.path, self._asked, self._passed_over)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = Coverage.of(
                self._readers, self._source, self.column, self._asked, self._passed_over
            )
        return found

    def _search(self, coverage: Coverage) -> Top:
        request, options = self._request, self._request.options
        range_: Range = tuple(options.distance_range or (None, None))  # type: ignore[assignment]
        top = Top(self.results, self._most(request.limit), range_)
        if coverage.parts:
            self._search_parts(coverage, top)
        if coverage.uncovered and not request.indexed_only:
            compared = Comparison(self.column, self.queries, self.metric, top)
            compared.scan(coverage.rest, request.where)
        return top

    def _most(self, wanted: int) -> int:
        """Return how many rows to make room for."""
        return min(wanted, max(self._readers.starts[-1], 1))

    def _search_parts(self, coverage: Coverage, top: Top) -> None:
        lives: list[Live] = [part.live for part in coverage.parts]
        share = 1.0
        if self._request.where is not None:
            survivors = self._survivors(coverage)
            if self._are_few(survivors):
                for part, rows in zip(coverage.parts, survivors, strict=True):
                    self._offer(part.readers, top, rows, range(self.results))
                return
            lives = [Live.only(rows) for rows in survivors]
            share = sum(map(len, survivors)) / max(coverage.rows, 1)
        if not self._needs_exact(coverage):
            self._probe(coverage, lives, top, share)
            return
        candidates = Top(len(self.queries), self._candidates(), self._wider(top.range))
        self._probe(coverage, lives, candidates, share)
        self._refine(candidates, top)

    def _probe(self, coverage: Coverage, lives: Sequence[Live], top: Top, share: float) -> None:
        """Search the segments."""
        request = self._request
        wanted = min(request.limit, top.most)
        probings = [
            Probing(part, live, self.queries, request.options, share, wanted)
            for part, live in zip(coverage.parts, lives, strict=True)
        ]
        open_ = np.ones(len(self.queries), np.bool_)
        while open_.any() and probings:
            for probing in probings:
                try:
                    probing.search(np.flatnonzero(open_), top)
                except FAULTS as fault:
                    raise _DamagedSegmentError(probing.part.entry.uuid) from fault
            open_ &= top.counts < wanted
            probings = [one for one in probings if one.has_more]

    def _candidates(self) -> int:
        request = self._request
        factor = request.options.refine_factor
        if self.column.type.is_multi:
            return request.limit * (factor or 1) * CANDIDATES
        return self._most(request.limit * (factor or 1))

    def _needs_exact(self, coverage: Coverage) -> bool:
        """Return whether candidates are ordered by their exact distances."""
        options = self._request.options
        if not coverage.parts:
            return False
        if self.column.type.is_multi or options.refine_factor is not None:
            return True
        is_plain = all(isinstance(one.opened.layout.storage, Plain) for one in coverage.parts)
        return bool(coverage.uncovered) and not self._request.indexed_only and not is_plain

    def _wider(self, range_: Floats) -> Range:
        """Return the range of the estimated distances of candidates."""
        low = float(range_[0])
        # An estimate may be well below the distance; those of a cosine are about twice as large.
        return (low - 0.25 * abs(low) if np.isfinite(low) else None, None)

    def _refine(self, candidates: Top, top: Top) -> None:
        found = [candidates.found(query).rows for query in range(len(candidates))]
        if self.column.type.is_multi:
            self._offer(self._readers, top, np.unique(np.concatenate(found)), range(1))
            return
        for number, rows in enumerate(found):
            self._offer(self._readers, top, rows, range(number, number + 1))

    def _offer(self, readers: Readers, top: Top, rows: Rows, results: range) -> None:
        """Compare rows with the queries of some results."""
        queries = self.queries
        if not self.column.type.is_multi:
            queries = queries[results.start : results.stop]
        compared = Comparison(self.column, queries, self.metric, top, results.start)
        compared.take(readers, rows, self._plans)

    def _survivors(self, coverage: Coverage) -> list[Rows]:
        """Return the rows of the fragments of each segment that match the predicate."""
        request = ScanRequest(columns=(ROW_ID,), where=self._request.where)
        options = ScanOptions(lease_seconds=0)
        found = []
        for part in coverage.parts:
            table = Scan(part.readers, request, options).to_arrow()
            found.append(table.column(0).to_numpy())
        return found

    def _are_few(self, survivors: Sequence[Rows]) -> bool:
        return sum(map(len, survivors)) <= max(FEW_ROWS, self._candidates())


class _DamagedSegmentError(Exception):
    """A file of a segment is damaged."""

    def __init__(self, uuid: str) -> None:
        super().__init__(uuid)
        self.uuid = uuid

    def __str__(self) -> str:
        return f"{self.__cause__}"
