"""Words of texts: the compiled and the NumPy kernel agree with plain Python."""

import re
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lancetable.expression.analysis.characters import word_characters
from lancetable.format.encoding.kernels import compiled, words
from lancetable.format.encoding.kernels.words import split_words, word_numbers

BITS = np.unpackbits(word_characters(), bitorder="little")
TEXTS = st.lists(
    st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("ab1 _é")), max_size=30),
    max_size=20,
)


def arrays(texts):
    whole = [text.encode() for text in texts]
    edges = np.cumsum([0, *map(len, whole)]).astype(np.int64)
    return np.frombuffer(b"".join(whole), np.uint8), edges


def plain(texts, most):
    """Return text number, word and place of each word."""
    found = []
    for number, text in enumerate(texts):
        marked = "".join(one if BITS[ord(one)] else "\n" for one in text)
        for place, word in enumerate(re.findall(r"[^\n]+", marked)):
            if len(word.encode()) <= most:
                found.append((number, word, place))
    return found


def split(texts, most):
    data, edges = arrays(texts)
    spans = split_words(data, edges, word_characters(), most)
    cut = [
        bytes(data[start : start + size]).decode()
        for start, size in zip(spans.starts.tolist(), spans.sizes.tolist(), strict=True)
    ]
    return [*zip(spans.documents.tolist(), cut, spans.positions.tolist(), strict=True)]


@given(TEXTS, st.integers(0, 12))
def test_words_are_runs_of_letters_and_digits(texts, most) -> None:
    expected = plain(texts, most)
    assert split(texts, most) == expected
    with patch.object(words, "DLL", None):
        assert split(texts, most) == expected


@given(st.lists(st.lists(st.text(max_size=20), max_size=40), max_size=5), st.booleans())
def test_distinct_words_are_numbered_as_they_appear(batches, is_plain) -> None:
    with patch.object(words, "DLL", None if is_plain else compiled.DLL):
        numbering = word_numbers()
        known: dict[str, int] = {}
        for batch in batches:
            data, edges = arrays(batch)
            found = numbering.number(data, edges[:-1], np.diff(edges).astype(np.int32))
            assert found.tolist() == [known.setdefault(word, len(known)) for word in batch]
        assert numbering.texts().to_pylist() == [*known]
        assert numbering.texts(len(known) // 2).to_pylist() == [*known][len(known) // 2 :]


def test_a_numbering_grows() -> None:
    many = [f"{number:x}" * (number % 7 + 1) for number in range(100_000)]
    data, edges = arrays(many)
    numbering = word_numbers()
    for _ in range(2):
        found = numbering.number(data, edges[:-1], np.diff(edges).astype(np.int32))
        assert np.array_equal(found, pa.array(many).dictionary_encode().indices.to_numpy())
