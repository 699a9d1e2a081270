"""Parameters of new vector indices, a class for each kind, and what was learned from a sample."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.errors import InputError
from lancetable.options import check_options, option

Metric: TypeAlias = Literal["l2", "cosine", "dot", "hamming"]


class Model(NamedTuple):
    """What was learned from a sample: all segments of an index share it."""

    centroids: npt.NDArray[Any]
    codebook: npt.NDArray[np.float32] | None = None
    """Of product codes: (parts, codes, dimensions of a part)."""
    bounds: tuple[float, float] | None = None
    """Of scalar codes."""
    signs: npt.NDArray[np.uint8] | None = None
    """Of the rotation of rotated codes."""
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class IvfFlat:
    """Partitions of near vectors, which are held as they are: exact within what is searched."""

    kind: ClassVar[str] = "vector"
    name: ClassVar[str] = "IVF_FLAT"
    version: ClassVar[int] = 1
    target: ClassVar[int] = 4096
    metric: Metric = option("l2", help="How vectors are compared.")
    partitions: int | None = option(
        None, minimum=1, help="How many partitions; by default as many as target_rows asks for."
    )
    target_rows: int | None = option(
        None, minimum=1, help="About how many rows a partition has; 4096, or 8192 for codes."
    )
    sample_rate: int = option(
        256, minimum=2, help="How many rows for each partition the centroids are learned from."
    )
    model: Model | None = field(default=None, compare=False, repr=False)
    """Own or earlier centroids and codes; by default they are learned from a sample."""

    def __post_init__(self) -> None:
        check_options(self)

    def with_model(self, model: Model | None) -> Self:
        """Return the same with a model, or without one so that it is learned anew."""
        return replace(self, model=model)

    @property
    def graph(self) -> tuple[int, int, int] | None:
        """The parameters of the graphs of partitions; None without graphs."""
        return None

    def partitions_for(self, rows: int) -> int:
        """Return how many partitions so many rows are divided into."""
        wanted = self.partitions or round(rows / (self.target_rows or self.target))
        return max(1, min(wanted, rows))


@dataclass(frozen=True, slots=True)
class IvfPq(IvfFlat):
    """Partitions of near vectors, held as short codes of their parts: smallest, then SQ."""

    name: ClassVar[str] = "IVF_PQ"
    target: ClassVar[int] = 8192
    sub_vectors: int | None = option(
        None, minimum=1, help="How many parts a vector has; by default one for 16 or 8 dimensions."
    )
    bits: int = option(8, minimum=4, maximum=8, help="The bits of a code: 8 or 4.")

    def __post_init__(self) -> None:
        IvfFlat.__post_init__(self)
        if self.bits not in {4, 8}:
            raise InputError(f"bits is {self.bits}; give 8 or 4")

    def parts_for(self, dim: int) -> int:
        """Return how many parts a vector has.

        Raises:
            InputError: the dimensions cannot be divided into so many parts.
        """
        sizes = (size for size in (16, 8) if not dim % size)
        parts = self.sub_vectors or next((dim // size for size in sizes), dim)
        if dim % parts or parts * self.bits % 8:
            even = ", and an even number with 4 bits" if self.bits == 4 else ""
            raise InputError(
                f"sub_vectors is {parts}; give a divisor of the {dim} dimensions{even}"
            )
        return parts


@dataclass(frozen=True, slots=True)
class IvfSq(IvfFlat):
    """Partitions of near vectors, held with a byte for each dimension."""

    name: ClassVar[str] = "IVF_SQ"
    target: ClassVar[int] = 8192


@dataclass(frozen=True, slots=True)
class IvfRq(IvfFlat):
    """Partitions of near vectors, held with a few bits for each dimension after a rotation."""

    name: ClassVar[str] = "IVF_RQ"
    version: ClassVar[int] = 2
    target: ClassVar[int] = 8192
    bits: int = option(5, minimum=1, maximum=9, help="The bits of each dimension.")


def _m() -> Any:  # noqa: ANN401 - a field
    return option(20, minimum=2, help="How many neighbours a new vector gets.")


def _ef_construction() -> Any:  # noqa: ANN401 - a field
    return option(150, minimum=1, help="Among how many near vectors these are chosen.")


def _max_level() -> Any:  # noqa: ANN401 - a field
    return option(7, minimum=1, maximum=32, help="How many levels a graph has at most.")


@dataclass(frozen=True, slots=True)
class IvfHnswFlat(IvfFlat):
    """Few large partitions with graphs of near neighbours, over the vectors."""

    name: ClassVar[str] = "IVF_HNSW_FLAT"
    target: ClassVar[int] = 1 << 20
    m: int = _m()
    ef_construction: int = _ef_construction()
    max_level: int = _max_level()

    @property
    def graph(self) -> tuple[int, int, int]:
        """The parameters of the graphs of partitions."""
        return self.m, self.ef_construction, self.max_level


@dataclass(frozen=True, slots=True)
class IvfHnswPq(IvfPq):
    """Few large partitions with graphs of near neighbours, over codes of their parts."""

    name: ClassVar[str] = "IVF_HNSW_PQ"
    target: ClassVar[int] = 1 << 20
    m: int = _m()
    ef_construction: int = _ef_construction()
    max_level: int = _max_level()

    @property
    def graph(self) -> tuple[int, int, int]:
        """The parameters of the graphs of partitions."""
        return self.m, self.ef_construction, self.max_level


@dataclass(frozen=True, slots=True)
class IvfHnswSq(IvfSq):
    """Few large partitions with graphs of near neighbours, over a byte a dimension."""

    name: ClassVar[str] = "IVF_HNSW_SQ"
    target: ClassVar[int] = 1 << 20
    m: int = _m()
    ef_construction: int = _ef_construction()
    max_level: int = _max_level()

    @property
    def graph(self) -> tuple[int, int, int]:
        """The parameters of the graphs of partitions."""
        return self.m, self.ef_construction, self.max_level


CLASSES: tuple[type[IvfFlat], ...] = (
    *(IvfFlat, IvfPq, IvfSq, IvfRq),
    *(IvfHnswFlat, IvfHnswPq, IvfHnswSq),
)
