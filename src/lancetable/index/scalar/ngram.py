"""NGRAM: each sequence of three letters or digits with the set of rows whose text holds it.

``ngram_postings.lance`` has the columns ``tokens`` (u32, ascending) and ``posting_list``, the rows
of each as a 64-bit roaring bitmap. Token 0 has the rows without a text. Sequences are those of
``kernels.trigrams`` in a text of small letters without marks, so more texts have a token than show
it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, starmap

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import CorruptError
from lancetable.expression import Call, Column, Expression, Like, Literal
from lancetable.expression.analysis.characters import fold
from lancetable.format.arrays import byte_strings, numbers
from lancetable.format.encoding.kernels.trigrams import BASE, CODES, trigrams
from lancetable.format.limits import read_limits
from lancetable.format.manifest.roaring import decode_treemap
from lancetable.format.rows import OFFSET_BITS, RowSet
from lancetable.index import sorting
from lancetable.index.base import Numbers, Sink, Source
from lancetable.index.files import SegmentFiles
from lancetable.index.grouping import set_batches
from lancetable.index.kept_sets import KeptSets
from lancetable.index.sorting import Pairs, Stream
from lancetable.index.specs import NGram, Spec

FILE = "ngram_postings.lance"
MOST_TOKENS = 12
"""More tokens of a text are not looked up: every row is compared with the text anyway."""

FEW_ROWS = 16
"""So few rows are compared at once, without looking up more tokens."""

_PLAIN_REGEX = re.compile(r"[^|()\\]*")
_CLASS = re.compile(r"\[\^?\]?[^\[\]]*\]")
_OPTIONAL = re.compile(r".(?:[?*]|\{[^}]*\}?)", re.DOTALL)
_TOKENS_AT_A_TIME = 1024
_BYTES_AT_A_TIME = 1 << 20
_MOST_MEMORY = 96 << 20
"""The tokens of a text take many times its size, and are soon merged."""
_SCHEMA = pa.schema(
    [
        pa.field("tokens", pa.uint32()),
        pa.field(
            "posting_list",
            pa.binary(),
            nullable=False,
            metadata={"lance-encoding:compression": "none"},
        ),
    ]
)
_BREAK = re.compile(r"[.^$+?*{}\0\n]")


class NGramSegment:
    """An opened segment: tokens are in memory, rows are read when they are needed."""

    def __init__(self, files: SegmentFiles) -> None:
        self._sets = KeptSets(files, FILE, "posting_list", _row_set)
        (tokens,) = files.read(FILE, ("tokens",))
        if tokens.null_count:
            raise CorruptError("a token of an ngram index is null")
        self._tokens: npt.NDArray[np.uint32] = np.asarray(tokens)
        if (self._tokens[1:] <= self._tokens[:-1]).any():
            raise CorruptError("the tokens of an ngram index are not in ascending order")

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that the segment describes: all that it names."""
        return fragments

    def warm(self) -> None:
        """Read the sets of rows, as far as there is room."""
        self._sets.warm()

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows whose texts have all tokens of the texts that a part asks for."""
        found = [tokens(text) for text in _required(part)]
        wanted = np.unique(np.concatenate([*found, np.empty(0, np.uint32)]))[:MOST_TOKENS]
        if not len(wanted):
            return None
        places = np.searchsorted(self._tokens, wanted)
        if not (self._tokens[np.minimum(places, len(self._tokens) - 1)] == wanted).all():
            return RowSet.from_addresses(np.empty(0, np.uint64), is_exact=False)
        return self._with_all(places.tolist())

    def _with_all(self, places: Sequence[int]) -> RowSet:
        """Return the rows of all of some tokens, and perhaps a few others."""
        sets = sorted((rows for rows in self._sets.of(places) if rows is not None), key=len)
        found = sets[0]
        for rows in sets[1:]:
            if len(found) <= FEW_ROWS:
                break
            found &= rows
        return found.at_most()


def _row_set(data: bytes) -> RowSet:
    return RowSet.from_addresses(_decoded(data))


def _decoded(data: bytes) -> Numbers:
    return decode_treemap(data, most=1 << OFFSET_BITS, limits=read_limits())


class NGramKind:
    """Build, merge and open segments."""

    name = NGram.kind

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        return None if pt.is_string(type_) or pt.is_large_string(type_) else "it takes texts"

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment."""
        pairs = chain.from_iterable(starmap(_tokens_of, sorting.pairs_of(rows)))
        _write(sorting.sort(pairs, sink, min(memory_bytes, _MOST_MEMORY)), sink)
        return b""

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several."""
        _write(sorting.merge([sorting.checked(_stored(source)) for source in sources]), sink)
        return b""

    def spec(self, files: SegmentFiles) -> NGram:
        """Return the parameters of a segment."""
        return NGram()

    def open(self, files: SegmentFiles) -> NGramSegment:
        """Return an opened segment."""
        return NGramSegment(files)


def _tokens_of(texts: pa.Array, rows: Numbers) -> Stream:
    """Yield each token of each text once, with the row; token 0 with the rows without a text."""
    if texts.null_count:
        nulls = rows[np.asarray(texts.is_null())]
        yield Pairs(numbers(np.zeros(len(nulls), np.uint32)), nulls)
    whole = _folded(texts)
    sizes = np.cumsum(np.asarray(pc.binary_length(whole).fill_null(0)))
    first = 0
    while first < len(whole):
        before = int(sizes[first - 1]) if first else 0
        stop = max(int(np.searchsorted(sizes, before + _BYTES_AT_A_TIME)), first + 1)
        found = trigrams(whole.slice(first, stop - first))
        yield Pairs(numbers(found.tokens), rows[first:stop][found.texts])
        first = stop


def _folded(texts: pa.Array) -> pa.Array:
    """Return texts without letters other than those of ASCII; null for null."""
    whole = texts.cast(pa.large_binary())
    is_other = pc.invert(pc.string_is_ascii(texts)).fill_null(False)  # noqa: FBT003 - of nulls
    others = texts.filter(is_other)
    if not len(others):
        return whole
    folded = [fold(one.lower()).lower().encode("ascii", "replace") for one in others.to_pylist()]
    return pc.replace_with_mask(whole, is_other, byte_strings(folded))


def _stored(source: Source) -> Stream:
    """Yield each token of a segment with its new rows, in order of the tokens."""
    total = source.files.rows(FILE)
    for first in range(0, total, _TOKENS_AT_A_TIME):
        place = range(first, min(first + _TOKENS_AT_A_TIME, total))
        keys, lists = source.files.read(FILE, ("tokens", "posting_list"), place)
        for key, data in zip(np.asarray(keys), lists.to_pylist(), strict=True):
            rows, is_kept = source.translate(_decoded(data or b""))
            rows = rows[is_kept]
            if len(rows):
                yield Pairs(numbers(np.full(len(rows), key, np.uint32)), rows)


def _write(stream: Stream, sink: Sink) -> None:
    """Write the rows of each distinct token."""
    sink.write(FILE, _SCHEMA, set_batches(stream, _SCHEMA, has_sizes=False))


def tokens(text: str) -> npt.NDArray[np.uint32]:
    """Return the tokens of all sequences of three ASCII letters or digits, with repetitions."""
    if len(text) < 3:
        return np.empty(0, np.uint32)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    codes = CODES[np.where(points < len(CODES), points, 0)].astype(np.uint32)
    windows = np.lib.stride_tricks.sliding_window_view(codes, 3)
    whole = windows[(windows > 0).all(axis=1)]
    found: npt.NDArray[np.uint32] = whole @ np.array([BASE**2, BASE, 1], np.uint32)
    return found


def _required(part: Expression) -> Iterator[str]:
    """Yield texts that every value for which a part is true contains, as they are."""
    match part:
        case Call("contains" | "starts_with" | "ends_with", (Column(), Literal() as text)):
            yield _text(text)
        case Like(Column(), Literal() as pattern, False, False, escape):
            yield from _literals_of_like(_text(pattern), escape)
        case Call("regexp_like", (Column(), Literal() as pattern)):
            yield from _literals_of_regex(_text(pattern))


def _text(literal: Literal) -> str:
    return literal.value if isinstance(literal.value, str) else ""


def _literals_of_like(pattern: str, escape: str) -> list[str]:
    # What an escape stands for is not needed: it only ends the text before it.
    marks = f"%_{escape}"
    return re.split(f"{re.escape(escape)}.|[{re.escape(marks)}]" if escape else "[%_]", pattern)


def _literals_of_regex(pattern: str) -> list[str]:
    """Return texts that all matches contain; none of a pattern with groups or escapes."""
    if not _PLAIN_REGEX.fullmatch(pattern):
        return []
    plain = _CLASS.sub("\0", pattern)
    if "[" in plain:
        return []
    return _BREAK.split(_OPTIONAL.sub("\0", plain))
