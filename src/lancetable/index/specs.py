"""Parameters of new indices, one class for each kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, cast

from lancetable.errors import InputError, UnsupportedError
from lancetable.expression.analysis.parameters import Analysis, unsupported_tokenizer
from lancetable.format.manifest.indices.kinds import KINDS
from lancetable.format.schema.model import Field
from lancetable.index.ivf import CLASSES as VECTORS
from lancetable.index.ivf import IvfFlat
from lancetable.options import check_options, option, parse_texts


@dataclass(frozen=True, slots=True)
class BTree:
    """All values in order: comparisons, ranges, ``IN`` and prefixes on columns of many values."""

    kind: ClassVar[str] = "btree"


@dataclass(frozen=True, slots=True)
class Bitmap:
    """The rows of each distinct value: comparisons on columns of few distinct values."""

    kind: ClassVar[str] = "bitmap"


@dataclass(frozen=True, slots=True)
class LabelList:
    """The rows of each item of lists: ``array_has``, ``array_has_any`` and ``array_has_all``."""

    kind: ClassVar[str] = "labellist"


@dataclass(frozen=True, slots=True)
class ZoneMap:
    """The least and largest value of each run of rows: small, for columns in about this order."""

    kind: ClassVar[str] = "zonemap"
    rows_per_zone: int = option(8192, minimum=1, help="How many rows a zone has.")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """A filter of each run of rows: equality and ``IN`` on columns of many values in any order."""

    kind: ClassVar[str] = "bloomfilter"
    items: int = option(8192, minimum=1, help="How many rows a zone has.")
    probability: float = option(
        0.00057,
        minimum=0,
        maximum=1,
        is_exclusive=True,
        help="The share of zones that are read in vain.",
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True)
class NGram:
    """The rows of each run of three characters: ``contains``, ``LIKE`` and regular expressions."""

    kind: ClassVar[str] = "ngram"


@dataclass(frozen=True, slots=True)
class RTree:
    """Bounding boxes of geometries: ``st_intersects``, ``st_contains`` and ``st_within``."""

    kind: ClassVar[str] = "rtree"
    page_size: int = option(4096, minimum=2, help="How many boxes a page has.")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True)
class JsonPath:
    """An index on the values at a path of JSON documents, such as ``JsonPath("a", BTree())``."""

    path: str
    target: "BTree | Bitmap | NGram" = field(default_factory=BTree)
    kind: ClassVar[str] = "json"

    def __post_init__(self) -> None:
        if not self.path:
            raise InputError(f"path is {self.path!r}; give the path of a value, such as 'a'")
        if not isinstance(self.target, BTree | Bitmap | NGram):
            raise InputError(f"target is {self.target!r}; give BTree(), Bitmap() or NGram()")


@dataclass(frozen=True, slots=True)
class FullText(Analysis):
    """The words of texts, lists of texts and JSON documents: full-text search."""

    name: ClassVar[str] = "full_text"
    kind: ClassVar[str] = "inverted"
    format_version: int = option(
        2, minimum=1, maximum=2, help="The format of its files; 1 is for older readers."
    )


Spec: TypeAlias = (
    BTree
    | Bitmap
    | LabelList
    | ZoneMap
    | BloomFilter
    | NGram
    | RTree
    | FullText
    | IvfFlat
    | JsonPath
)
SpecArgument: TypeAlias = Spec | str

_CLASSES: tuple[type[Any], ...] = (
    BTree,
    Bitmap,
    LabelList,
    ZoneMap,
    BloomFilter,
    NGram,
    RTree,
    FullText,
    *VECTORS,
)
BY_NAME: dict[str, type] = {
    getattr(one, "name", one.kind).replace("_", "").lower(): one for one in _CLASSES
}


def parse_spec(given: object, parameters: Mapping[str, str] | None = None) -> Spec:
    """Return the parameters that an argument names.

    A name such as ``btree`` has the defaults, or parameters given as texts; those of ``json`` are
    ``path`` and ``target``, the name of another kind.

    Raises:
        InputError: there is no such kind, or a parameter is not valid.
    """
    if isinstance(given, (*_CLASSES, JsonPath)):
        return cast("Spec", given)
    texts = dict(parameters or {})
    kind = given.replace("_", "").lower() if isinstance(given, str) else ""
    if kind == JsonPath.kind and parameters is not None:
        target: Any = parse_spec(texts.pop("target", BTree.kind))
        return replace(parse_texts(JsonPath, {"path": "", **texts}), target=target)
    if kind not in BY_NAME:
        names = ", ".join(f"{one.__name__}()" for one in _CLASSES)
        raise InputError(
            f"{given!r} is not a kind of index; give {names}, JsonPath(path), or one of the names "
            f"{', '.join(BY_NAME)}"
        )
    made: Spec = parse_texts(BY_NAME[kind], texts)
    return made


def written_version(spec: Spec, *, stable_row_ids: bool) -> int:
    """Return the version of new segments."""
    if isinstance(spec, IvfFlat):
        return spec.version
    if isinstance(spec, FullText):
        return spec.format_version
    return KINDS[spec.kind].written(stable_row_ids=stable_row_ids)


def rewritten_version(spec: Spec, version: int) -> int:
    """Return the version of a segment of some version that is written again."""
    return spec.format_version if isinstance(spec, FullText) else version


def of_column(spec: Spec, field: Field) -> Spec:
    """Return the parameters of a new index on a column: JSON documents are analysed as such.

    Raises:
        UnsupportedError: this release does not have the tokenizer.
    """
    if not isinstance(spec, FullText):
        return spec
    if not spec.is_supported:
        raise UnsupportedError(unsupported_tokenizer(spec))
    return spec.of_documents("json" if field.is_json else "text")
