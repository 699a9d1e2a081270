"""Tokenizers: where the words of texts are."""

from collections.abc import Callable, Mapping

import numpy as np

from lancetable.errors import UnsupportedError
from lancetable.expression.analysis.characters import visible_characters, word_characters
from lancetable.expression.analysis.parameters import Analysis, unsupported_tokenizer
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.words import Spans, characters, split_words

_NO_LIMIT = 2**31 - 1


def split(analysis: Analysis, data: Bytes, edges: Integers) -> Spans:
    """Return the words of texts that are not too long.

    Raises:
        UnsupportedError: this release does not have the tokenizer.
    """
    found = _SPLITS.get(analysis.base_tokenizer)
    if found is None:
        raise UnsupportedError(unsupported_tokenizer(analysis))
    return found(analysis, data, edges)


def _most(analysis: Analysis) -> int:
    limit = analysis.max_token_length
    return _NO_LIMIT if limit is None else limit - 1


def _simple(analysis: Analysis, data: Bytes, edges: Integers) -> Spans:
    return split_words(data, edges, word_characters(), _most(analysis))


def _whitespace(analysis: Analysis, data: Bytes, edges: Integers) -> Spans:
    return split_words(data, edges, visible_characters(), _most(analysis))


def _raw(analysis: Analysis, data: Bytes, edges: Integers) -> Spans:
    sizes = np.diff(edges)
    kept = np.flatnonzero(sizes <= _most(analysis))
    return Spans(
        edges[kept],
        sizes[kept].astype(np.int32),
        kept.astype(np.int32),
        np.zeros(len(kept), np.int32),
    )


def _ngram(analysis: Analysis, data: Bytes, edges: Integers) -> Spans:
    firsts, documents = characters(data, edges)
    ends = np.append(firsts, edges[-1])
    stops = np.searchsorted(documents, documents, side="right")
    begins = np.arange(len(firsts))
    if analysis.prefix_only:
        begins = np.flatnonzero(np.append(True, documents[1:] != documents[:-1])[: len(firsts)])
    lengths = np.arange(analysis.min_ngram_length, analysis.max_ngram_length + 1)
    last = begins[:, None] + lengths
    places, columns = np.nonzero(last <= stops[begins][:, None])
    starts = firsts[begins[places]]
    sizes = ends[last[places, columns]] - starts
    kept = sizes <= _most(analysis)
    found = documents[begins[places]][kept]
    return Spans(starts[kept], sizes[kept].astype(np.int32), found, np.zeros(len(found), np.int32))


_SPLITS: Mapping[str, Callable[[Analysis, Bytes, Integers], Spans]] = {
    "simple": _simple,
    "whitespace": _whitespace,
    "raw": _raw,
    "ngram": _ngram,
}
