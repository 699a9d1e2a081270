"""The request and the options of a search for near vectors."""

from dataclasses import dataclass
from numbers import Real

from lancetable.errors import InputError
from lancetable.expression import Expression
from lancetable.index.vector.types import Vector
from lancetable.options import check_options, option


@dataclass(frozen=True, slots=True)
class VectorOptions:
    """Options of a search for near vectors."""

    nprobes: int | None = option(
        None,
        minimum=1,
        help="How many partitions of each segment are searched; by default about 25, and more "
        "until enough rows are found.",
    )
    refine_factor: int | None = option(
        None,
        minimum=1,
        help="Read so many times more candidates as rows are wanted, and order them by their exact "
        "distances.",
    )
    ef: int | None = option(
        None,
        minimum=1,
        help="How many candidates a search in a graph keeps; by default one and a half times as "
        "many as are wanted.",
    )
    metric: str | None = option(
        None,
        help="l2, cosine, dot or hamming; by default that of the index, or l2. An index of another "
        "metric is not used.",
    )
    distance_range: tuple[float | None, float | None] | None = option(
        None, help="The least distance, and the one that is too far.", in_cli=False
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.distance_range is not None and not _is_range(self.distance_range):
            raise InputError(
                f"distance_range is {self.distance_range!r}; give a pair such as (0, 0.5)"
            )


def _is_range(value: object) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    return all(one is None or isinstance(one, Real) for one in value)


DEFAULTS = VectorOptions()


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """Vectors to look for in a column, and how many rows are wanted for each."""

    column: str | None
    """None for the only column of vectors."""
    vector: Vector
    limit: int = 10
    where: Expression | None = None
    """Only rows for which this is true are found."""
    options: VectorOptions = DEFAULTS
    use_indices: bool = True
    indexed_only: bool = False
    """True to leave out rows that no index describes."""

    def __post_init__(self) -> None:
        if type(self.limit) is not int or self.limit < 1:
            raise InputError(f"limit is {self.limit!r}; give a whole number from 1")
