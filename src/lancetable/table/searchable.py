"""Search in a version of a table."""

from typing import TYPE_CHECKING

from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle

if TYPE_CHECKING:
    from typing import Unpack

    from lancetable.expression.analysis.parameters import Analysis
    from lancetable.format.schema.model import Blobs
    from lancetable.index.text.documents import StatisticsOf
    from lancetable.query import Query
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
        query: "str | Query",
        *,
        column: str | None = None,
        columns: "ColumnsArgument" = None,
        where: "Where" = None,
        limit: int | None = 10,
        offset: int = 0,
        prefilter: bool = True,
        indexed_only: bool = False,
        statistics: "StatisticsOf" = "all",
        analysis: "Analysis | None" = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: "Blobs" = "descriptions",
        use_indices: bool = True,
        **options: "Unpack[ScanSettings]",
    ) -> "Search":
        """Describe rows to find, the best first; the result finds them when they are requested.

        Each row gets a ``_score``. Of rows with equal scores the one with the smaller row id is
        first.

        Args:
            query: words, or a query of :mod:`lancetable.query`.
            column: the column to search in; by default all columns of texts.
            columns: names and nested paths, or a dict of names and SQL expressions.
            where: a predicate; only rows that match it are found.
            limit: the most rows to return; None for all that match.
            offset: how many of the best rows to skip first.
            prefilter: False to apply ``where`` to the best rows only, of which fewer are left.
            indexed_only: leave out rows that no index describes.
            statistics: ``index`` computes the scores of rows of an index from the index alone, as
                other Lance libraries do; they cannot be compared with those of other rows then.
            analysis: how texts of columns without an index are analysed.
            with_row_id: add the column ``_rowid``.
            with_row_address: add the column ``_rowaddr``.
            blobs: what blob columns hold: ``descriptions`` or ``bytes``.
            use_indices: False to analyse all rows.
            **options: fields of :class:`lancetable.ScanOptions`, such as ``batch_rows``.
        """
        from lancetable.scan.request import ScanRequest, parse_columns, parse_where, scan_options
        from lancetable.scan.search import Search
        from lancetable.scan.search_request import SearchRequest

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
            analysis=analysis,
        )
        handle = self._handle
        return Search(handle.snapshot, handle.opened(), request, handle.plans(), handle.searched)
