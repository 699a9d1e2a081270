"""Words are found in a transducer, those near another too, and damaged bytes are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels import compiled, token_set
from lancetable.format.encoding.kernels.token_set import Near, Transducer, is_near
from lancetable.format.encoding.kernels.token_set_encode import encode_tokens

WORDS = st.lists(st.text("abcdeé日", max_size=7), unique=True, min_size=1, max_size=60)


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def kernels(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(token_set, "DLL", None)
    elif compiled.DLL is None:
        pytest.skip("there are no compiled kernels")


def encoded(words):
    """Return the bytes of a transducer and the size of all words; they are numbered in order."""
    tokens = sorted(word.encode() for word in words)
    edges = np.cumsum([0, *map(len, tokens)]).astype(np.int64)
    text = np.frombuffer(b"".join(tokens) or b"\0", np.uint8)
    data = encode_tokens(text, edges, np.arange(len(tokens), dtype=np.int64))
    return np.frombuffer(data, np.uint8), int(edges[-1]), tokens


@given(words=WORDS, other=st.text("abcdeé日", max_size=7))
@settings(max_examples=40)
def test_words_are_found(words, other):
    data, total, tokens = encoded(words)
    found = Transducer(data, total)
    assert found.all().tokens() == tokens
    assert [found.find(token) for token in tokens] == [*range(len(tokens))]
    known = tokens.index(other.encode()) if other.encode() in tokens else None
    assert found.find(other.encode()) == known


@given(
    words=WORDS,
    word=st.text("abcdeé日", max_size=6),
    distance=st.integers(0, 3),
    prefix=st.integers(0, 3),
    most=st.sampled_from([1, 4, 100]),
)
@settings(max_examples=60)
def test_words_near_another_are_found(words, word, distance, prefix, most):
    data, total, tokens = encoded(words)
    near = Near(word, distance, min(prefix, len(word)), most)
    expected = [token for token in tokens if is_near(token, near)][:most]
    assert Transducer(data, total).near(near).tokens() == expected


@given(words=WORDS, place=st.integers(0, 10_000), byte=st.integers(1, 255))
@settings(max_examples=100)
def test_damaged_bytes_never_hang_or_crash(words, place, byte):
    whole, total, tokens = encoded(words)
    data = whole.copy()
    data[place % len(data)] ^= byte
    for ask in (
        lambda one: one.all(),
        lambda one: one.find(tokens[-1]),
        lambda one: one.near(Near("abc", 2)),
    ):
        try:
            ask(Transducer(data, total))
        except CorruptError:
            continue


def test_what_is_no_transducer_is_refused():
    data, total, _ = encoded(["a", "b"])
    for wrong in (data[:20], np.zeros(60, np.uint8), data[8:]):
        with pytest.raises(CorruptError):
            Transducer(np.ascontiguousarray(wrong), total)
