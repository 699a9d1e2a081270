"""Turn texts into words, whole batches at once.

Texts are split into words by a kernel, which also numbers the distinct ones. Case, stems, stop
words and folding are decided once for each distinct word.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import CorruptError
from lancetable.expression.analysis.characters import fold, lower, stop_words
from lancetable.expression.analysis.json_documents import Leaf, leaves, triples
from lancetable.expression.analysis.parameters import Analysis
from lancetable.expression.analysis.split import split
from lancetable.format.arrays import booleans, numbers
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.words import Codes, WordNumbers, word_numbers

_PIECE_BYTES = 1 << 20
_REMOVED = -1
_Change: TypeAlias = Callable[[list[str]], list[str]]


class Occurrences(NamedTuple):
    """Words, document by document in their order."""

    documents: Codes
    """The number of the document in the batch."""
    codes: Codes
    """The number of the word."""
    positions: Codes
    """The place of the word in its document; in texts removed words count."""


class Tokens(NamedTuple):
    """The words of a batch, document by document in their order."""

    documents: Integers
    tokens: pa.DictionaryArray
    positions: Codes


class QueryToken(NamedTuple):
    """One word of a text or of a query, and its place."""

    text: str
    position: int


class Analyzer:
    """Analyse batches one after the other; distinct words have the same number in all of them."""

    def __init__(self, analysis: Analysis) -> None:
        self.words: WordNumbers = word_numbers()
        """The distinct words."""
        self._analysis = analysis
        self._forms: WordNumbers = word_numbers()
        """The distinct words as they are in texts."""
        self._codes = np.empty(0, np.int32)
        """The number of the word that each form becomes."""
        self._changes = _changes(analysis)
        self._stops = _stops(analysis)

    @property
    def nbytes(self) -> int:
        """About how much memory the distinct words take."""
        return self.words.nbytes + self._forms.nbytes + self._codes.nbytes

    def add(self, values: pa.Array) -> Occurrences:
        """Return the words of some documents: texts, lists of texts, or JSON documents.

        Raises:
            CorruptError: a text is not UTF-8, or a JSON document is damaged.
            UnsupportedError: this release does not have the tokenizer.
        """
        if self._analysis.lance_tokenizer == "json":
            return self.add_leaves([*leaves(values)])
        rows, texts = _texts(values)
        edges = _edges(texts)
        data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        parts = [self._piece(data, edges, piece) for piece in _pieces(edges)]
        whole = Occurrences(*map(np.concatenate, zip(*parts, strict=True)))
        return whole if rows is None else whole._replace(documents=rows[whole.documents])

    def add_leaves(self, found: Sequence[Leaf]) -> Occurrences:
        """Return the words of leaves of JSON documents; removed words do not count."""
        texts = [leaf.value for leaf in found if leaf.is_text]
        inner = Analyzer(self._analysis.of_documents("text"))
        inside = inner.add(pa.array(texts, pa.large_string()))
        words = inner.words.texts().take(numbers(inside.codes)).to_pylist()
        edges = np.searchsorted(inside.documents, np.arange(len(texts) + 1)).tolist()
        documents: list[int] = []
        made: list[str] = []
        number = 0
        for leaf in found:
            values = [leaf.value]
            if leaf.is_text:
                values = words[edges[number] : edges[number + 1]]
                number += 1
            made += [leaf.prefix + value for value in values]
            documents += [leaf.document] * len(values)
        places = np.array(documents, np.int32)
        positions = np.arange(len(places)) - np.searchsorted(places, places)
        return Occurrences(places, self._numbered(made), positions.astype(np.int32))

    def _piece(self, data: Bytes, edges: Integers, rows: slice) -> Occurrences:
        spans = split(self._analysis, data, edges[rows.start : rows.stop + 1])
        known = len(self._forms)
        forms = self._forms.number(data, spans.starts, spans.sizes)
        if len(self._forms) > known:
            new = self._normal(self._forms.texts(known).to_pylist())
            self._codes = np.concatenate([self._codes, new])
        codes = self._codes[forms]
        found = Occurrences(spans.documents + np.int32(rows.start), codes, spans.positions)
        kept = codes != _REMOVED
        return found if kept.all() else Occurrences(*(one[kept] for one in found))

    def _normal(self, forms: list[str]) -> Codes:
        """Return the numbers of the words that forms become; -1 for those that are removed."""
        words = forms
        for change in self._changes:
            words = change(words)
        codes = np.full(len(words), _REMOVED, np.int32)
        kept = [place for place, word in enumerate(words) if word not in self._stops]
        made = [words[place] for place in kept]
        codes[kept] = self._numbered([*map(fold, made)] if self._analysis.ascii_folding else made)
        return codes

    def _numbered(self, words: list[str]) -> Codes:
        array = pa.array(words, pa.large_string())
        edges = _edges(array)
        data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
        return self.words.number(data, edges[:-1].copy(), np.diff(edges).astype(np.int32))


def analyze(analysis: Analysis, values: pa.Array) -> Tokens:
    """Return the words of documents: texts, lists of texts, or JSON documents.

    Raises:
        CorruptError: a text is not UTF-8, or a JSON document is damaged.
        UnsupportedError: this release does not have the tokenizer.
    """
    analyzer = Analyzer(analysis)
    found = analyzer.add(values)
    tokens = pa.DictionaryArray.from_arrays(numbers(found.codes), analyzer.words.texts())
    return Tokens(found.documents.astype(np.int64), tokens, found.positions)


def tokenize(analysis: Analysis, text: str) -> list[QueryToken]:
    """Return the words of one text, or of one JSON document, with their places.

    Raises:
        CorruptError: the text is not a JSON document.
        UnsupportedError: this release does not have the tokenizer.
    """
    found = analyze(analysis, pa.array([text], pa.large_string()))
    pairs = zip(found.tokens.to_pylist(), found.positions.tolist(), strict=True)
    return [QueryToken(word, position) for word, position in pairs]


def analyze_query(analysis: Analysis, text: str) -> list[QueryToken]:
    """Return the words that a query asks for; of JSON documents, ``path,type,value`` triples.

    Raises:
        InputError: the query is not one on JSON documents.
        UnsupportedError: this release does not have the tokenizer.
    """
    if analysis.lance_tokenizer == "text":
        return tokenize(analysis, text)
    analyzer = Analyzer(analysis)
    found = analyzer.add_leaves([leaf._replace(document=0) for leaf in triples(text)])
    words = analyzer.words.texts().to_pylist()
    pairs = zip(found.codes.tolist(), found.positions.tolist(), strict=True)
    return [QueryToken(words[code], position) for code, position in pairs]


def _changes(analysis: Analysis) -> list[_Change]:
    """Return what is done with distinct words before stop words are removed."""
    found: list[_Change] = []
    if analysis.lower_case:
        found.append(lambda words: [*map(lower, words)])
    if analysis.stem:
        from Stemmer import Stemmer  # noqa: PLC0415 - few readers need it

        found.append(Stemmer(analysis.language.lower(), 0).stemWords)
    return found


def _stops(analysis: Analysis) -> frozenset[str]:
    if not analysis.remove_stop_words:
        return frozenset()
    custom = analysis.custom_stop_words
    return stop_words(analysis.language) if custom is None else frozenset(custom)


def _texts(values: pa.Array) -> tuple[Codes | None, pa.Array]:
    """Return texts without nulls, and their rows when there were nulls.

    The texts of a list are one document; a space is between them.
    """
    if pt.is_list(values.type) or pt.is_large_list(values.type):
        values = _joined(values)
    values = values.cast(pa.large_string())
    rows = None
    if values.null_count:
        rows = np.flatnonzero(np.asarray(values.is_valid())).astype(np.int32)
        values = values.drop_null()
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptError(f"a text is damaged: {error}") from error
    return rows, values


def _joined(lists: pa.Array) -> pa.Array:
    """Return the texts of each list with a space between them, but none before the first letter."""
    items = lists.flatten().cast(pa.large_string())
    owners = np.asarray(pc.list_parent_indices(lists))
    has_letters = np.asarray(pc.fill_null(pc.binary_length(items), 0)) > 0
    before = np.cumsum(has_letters)
    firsts = np.searchsorted(owners, owners)
    kept = before > (before - has_letters)[firsts]
    kept &= np.asarray(items.is_valid())
    sizes = np.bincount(owners[kept], minlength=len(lists))
    edges = numbers(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    whole = pa.ListArray.from_arrays(edges, items.filter(booleans(kept)))
    return pc.binary_join(whole, pa.scalar(" ", pa.large_string()))


def _edges(texts: pa.Array) -> Integers:
    found: Integers = np.frombuffer(texts.buffers()[1] or bytes(8), np.int64)
    return found[texts.offset : texts.offset + len(texts) + 1]


def _pieces(edges: Integers) -> Iterator[slice]:
    """Yield rows of about a size; at least one slice."""
    last, first = len(edges) - 1, 0
    while True:
        stop = int(np.searchsorted(edges, edges[first] + _PIECE_BYTES, side="right")) - 1
        stop = min(max(stop, first + 1), last)
        yield slice(first, stop)
        if stop >= last:
            return
        first = stop
