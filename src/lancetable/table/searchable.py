"""Search in a version of a table."""

from typing import TYPE_CHECKING

from lancetable.errors import InputError
from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle

if TYPE_CHECKING:
    from typing import Unpack

    from lancetable.expression.analysis.analyzer import QueryToken
    from lancetable.expression.analysis.parameters import Analysis
    from lancetable.format.schema.model import Blobs
    from lancetable.index.text.documents import StatisticsOf
    from lancetable.index.vector.types import Vector
    from lancetable.query import Query
    from lancetable.scan.hybrid import Fuse
    from lancetable.scan.request import ColumnsArgument, Where
    from lancetable.scan.search import Search
    from lancetable.table.settings import ScanSettings


@explaining
class Searchable:
    """A version of a table whose rows can be searched."""

    __slots__ = ("_handle",)

    _handle: Handle

    def search(  # noqa: PLR0913 - the vocabulary of a query
        self,
        query: "str | Query | Vector | None" = None,
        *,
        vector: "Vector | None" = None,
        text: "str | Query | None" = None,
        fuse: "Fuse | None" = None,
        column: str | None = None,
        columns: "ColumnsArgument" = None,
        where: "Where" = None,
        limit: int | None = 10,
        offset: int = 0,
        prefilter: bool = True,
        indexed_only: bool = False,
        statistics: "StatisticsOf" = "all",
        analysis: "Analysis | None" = None,
        nprobes: int | None = None,
        refine_factor: int | None = None,
        ef: int | None = None,
        metric: str | None = None,
        distance_range: tuple[float | None, float | None] | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: "Blobs" = "descriptions",
        use_indices: bool = True,
        **options: "Unpack[ScanSettings]",
    ) -> "Search":
        """Describe rows to find, the best first; the result finds them when they are requested.

        Words give each row a ``_score``, a vector a ``_distance``, both together also a
        ``_relevance``. Several vectors are searched for at once: each finds its own rows, and
        ``query_index`` tells which one it was. Of equally good rows the one with the smaller row
        id is first.

        Args:
            query: words, a query of :mod:`lancetable.query`, a vector or several.
            vector: a vector, to search with ``text`` at once.
            text: words or a query, to search with ``vector`` at once.
            fuse: joins both results: ``Rrf(60)``, ``Weighted(0.7)``, or any function of ranks.
            column: the column to search in; by default all columns of texts, or the only one of
                vectors.
            columns: names and nested paths, or a dict of names and SQL expressions.
            where: a predicate; only rows that match it are found.
            limit: the most rows to return; None for all that match.
            offset: how many of the best rows to skip first.
            prefilter: False to apply ``where`` to the best rows only, of which fewer are left.
            indexed_only: leave out rows that no index describes.
            statistics: ``index`` computes the scores of rows of an index from the index alone, as
                other Lance libraries do; they cannot be compared with those of other rows then.
            analysis: how texts of columns without an index are analysed.
            nprobes: how many partitions of a vector index are searched; by default about 25, and
                more until enough rows are found.
            refine_factor: read so many times more candidates as rows are wanted, and order them by
                their exact distances.
            ef: how many candidates a search in a graph keeps.
            metric: ``l2``, ``cosine``, ``dot`` or ``hamming``; by default that of the index.
            distance_range: the least distance, and the one that is too far.
            with_row_id: add the column ``_rowid``.
            with_row_address: add the column ``_rowaddr``.
            blobs: what blob columns hold: ``descriptions`` or ``bytes``.
            use_indices: False to analyse all rows.
            **options: fields of :class:`lancetable.ScanOptions`, such as ``batch_rows``.
        """
        from lancetable.scan.request import ScanRequest, parse_columns, parse_where, scan_options
        from lancetable.scan.search import Search
        from lancetable.scan.search_request import SearchRequest
        from lancetable.scan.vector_request import VectorOptions

        if query is None:
            query = _joined(vector, text, fuse)
        elif not (vector is None and text is None and fuse is None):
            raise InputError("give either query, or vector and text with fuse")
        selection = parse_columns(columns)
        scan = ScanRequest(
            columns=selection.columns,
            expressions=selection.expressions,
            where=parse_where(where),
            limit=limit,
            offset=offset,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            blobs=blobs,
            use_indices=use_indices,
        )
        request = SearchRequest(
            query,
            scan,
            scan_options(options),
            column,
            prefilter=prefilter,
            indexed_only=indexed_only,
            statistics=statistics,
            vectors=VectorOptions(nprobes, refine_factor, ef, metric, distance_range),
            analysis=analysis,
        )
        handle = self._handle
        return Search(handle.snapshot, handle.opened(), request, handle.plans(), handle.searched)

    def tokenize(self, text: str, using: "Analysis | str | None" = None) -> "list[QueryToken]":
        """Return the words of a text as a full-text index holds them, with their places.

        Args:
            text: a text, or the text of a JSON document where the index is on such.
            using: parameters such as ``FullText(language="German")``, or the name of a full-text
                index; by default ``FullText()``.

        Raises:
            IndexNotFoundError: there is no full-text index of that name.
            UnsupportedError: this release does not have the tokenizer of the index.
        """
        from lancetable.expression.analysis.analyzer import tokenize
        from lancetable.expression.analysis.parameters import Analysis
        from lancetable.operations.index.analysis import analysis_of

        if isinstance(using, str):
            using = analysis_of(self._handle.snapshot, using)
        return tokenize(Analysis() if using is None else using, text)


def _joined(vector: "Vector | None", text: "str | Query | None", fuse: "Fuse | None") -> object:
    """Return the query that a vector and a text make."""
    if vector is None or text is None:
        if fuse is not None:
            raise InputError("fuse joins two results; give vector and text")
        if vector is None and text is None:
            raise InputError("there is nothing to search for; give words or a vector")
        return text if vector is None else vector
    from lancetable.scan.hybrid import Hybrid, Rrf

    return Hybrid(vector, text, fuse or Rrf())
