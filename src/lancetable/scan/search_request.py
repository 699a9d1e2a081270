"""The request of a search: checked and frozen."""

from dataclasses import dataclass

from lancetable.errors import InputError
from lancetable.expression.analysis.parameters import Analysis
from lancetable.index.text.documents import StatisticsOf
from lancetable.options import check_options, option
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.vector_request import DEFAULTS, VectorOptions


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search for, and which rows and columns are wanted."""

    query: object
    scan: ScanRequest
    """The columns, the predicate, limit and offset."""

    options: ScanOptions
    column: str | None = None
    prefilter: bool = option(
        True,  # noqa: FBT003 - the default
        help="Find the best of the rows that match the predicate; else those of the best that do.",
    )
    indexed_only: bool = option(
        False,  # noqa: FBT003 - the default
        help="Leave out rows that no index describes.",
    )
    statistics: StatisticsOf = option(
        "all",
        help="The documents that are counted for scores: all, or for rows of an index only its "
        "own, as other Lance libraries do.",
    )
    vectors: VectorOptions = DEFAULTS
    analysis: Analysis | None = None
    """How texts of columns without an index are analysed."""

    def __post_init__(self) -> None:
        check_options(self)
        if self.column is not None and not isinstance(self.column, str):
            raise InputError(f"column is {self.column!r}; give the name of one column")
        if not (self.analysis is None or isinstance(self.analysis, Analysis)):
            raise InputError(f"analysis is {self.analysis!r}; give FullText()")
