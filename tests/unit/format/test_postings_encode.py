"""Encoded lists of words decode to what they were, compiled and in Python alike."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancetable.errors import CorruptError
from lancetable.format.encoding.kernels import compiled, posting_lists, postings
from lancetable.format.encoding.kernels import postings_encode as encode
from lancetable.format.encoding.kernels import token_set_encode as token_map
from lancetable.format.encoding.kernels.postings import Pieces, PostingFormat
from lancetable.format.encoding.kernels.token_set import Transducer

WORDS = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 400)), max_size=12), max_size=300
)
FEWER = settings(max_examples=25)


def occurrences(documents):
    """Return words, lengths of documents, and positions."""
    documents = [sorted(one, key=lambda pair: pair[1]) for one in documents if one]
    words = [word for one in documents for word, _ in one]
    places = [place for one in documents for _, place in one]
    lengths = [len(one) for one in documents]
    return (np.array(each, np.int32) for each in (words, lengths, places))


def both(make):
    made = make()
    with (
        patch.object(encode, "DLL", None),
        patch.object(posting_lists, "DLL", None),
        patch.object(postings, "DLL", None),
    ):
        plain = make()
    for one, other in zip(made, plain, strict=True):
        assert np.array_equal(one, other)
    return made


def pieces(encoded):
    return Pieces(encoded.data, np.concatenate([[0], encoded.ends]))


@FEWER
@given(WORDS, st.booleans(), st.integers(1, 400))
def test_lists_round_trip(documents, plain_tail, repeated) -> None:
    words, lengths, places = occurrences(documents + [[(1, 7)]] * repeated)
    grouped = encode.PostingLists(*both(lambda: encode.group_words(words, lengths, 0, 6, places)))
    plain: dict[int, dict[int, list[int]]] = {}
    owners = np.repeat(np.arange(len(lengths)), lengths).tolist()
    for word, owner, place in zip(words.tolist(), owners, places.tolist(), strict=True):
        plain.setdefault(word, {}).setdefault(owner, []).append(place)
    assert grouped.counts.tolist() == [len(plain.get(word, ())) for word in range(6)]
    expected = [place for word in sorted(plain) for one in plain[word].values() for place in one]
    assert grouped.positions is not None
    assert grouped.positions.tolist() == expected
    norms = (lengths + 1).astype(np.float32)
    weights = encode.Weights(norms, np.full(6, 2.2))

    def blocks():
        made, best = encode.encode_blocks(grouped, weights, plain_tail=plain_tail)
        return made.data, made.ends, best

    data, ends, best = both(blocks)
    format_ = PostingFormat(128, plain_tail)
    whole = Pieces(data, np.concatenate([[0], ends]))
    found = both(lambda: posting_lists.decode_lists(whole, grouped.counts, format_, len(lengths)))
    assert np.array_equal(found[0], grouped.ids)
    assert np.array_equal(found[1], grouped.frequencies)
    shares = grouped.frequencies / (grouped.frequencies + norms[grouped.ids])
    for word, (start, stop) in enumerate(pairwise(grouped.edges)):
        assert best[word] == pytest.approx(2.2 * shares[start:stop].max(initial=0))
    stream = encode.Encoded(*both(lambda: encode.encode_positions(grouped)))
    streams = pieces(stream)
    again = both(
        lambda: [
            posting_lists.decode_position_lists(streams, grouped.counts, 128, grouped.frequencies)
        ]
    )
    assert again[0].tolist() == expected

    def items():
        made, counts = encode.encode_position_items(grouped)
        return made.data, made.ends, counts

    data, ends, counts = both(items)
    firsts = np.concatenate([[0], np.cumsum(counts)])
    held = Pieces(data, np.concatenate([[0], ends]))
    decoded = postings.decode_position_items(held, firsts, grouped.frequencies)
    assert decoded.tolist() == expected


def front_of(data):
    """Return the last document and the pairs of frequency and length."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    last, count, *rest = numbers
    pairs, frequency, length = [], 0, 0
    for _ in range(count):
        step = rest.pop(0)
        frequency += (step >> 1) + 1
        length += rest.pop(0) if step & 1 else 1
        pairs.append((frequency, length))
    assert not rest
    return last, pairs


def best_pairs(pairs):
    return sorted(
        one
        for one in set(pairs)
        if not any(o != one and o[0] >= one[0] and o[1] <= one[1] for o in pairs)
    )


@FEWER
@given(
    st.lists(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 300)), max_size=400), max_size=3)
)
def test_impacts_are_the_pairs_that_no_other_beats(lists) -> None:
    edges = np.cumsum([0, *map(len, lists)])
    ids = np.concatenate([np.empty(0, np.uint32), *(np.arange(len(one)) for one in lists)])
    longest = max(map(len, lists), default=0)
    lengths = np.array(
        [max((one[at][1] for one in lists if at < len(one)), default=1) for at in range(longest)],
        np.uint32,
    )
    frequencies = np.array([one[0] for each in lists for one in each], np.uint32)
    made = encode.PostingLists(edges, ids.astype(np.uint32), frequencies)
    impacts = encode.Encoded(*both(lambda: encode.encode_impacts(made, lengths)))
    data, ends = impacts.data.tobytes(), [0, *impacts.ends.tolist()]
    items = [front_of(data[start:stop]) for start, stop in pairwise(ends)]
    for start, stop in pairwise(edges):
        pairs = [(int(frequencies[at]), int(lengths[ids[at]])) for at in range(start, stop)]
        for first in range(0, len(pairs), 128):
            here = pairs[first : first + 128]
            assert items.pop(0) == (first + len(here) - 1, best_pairs(here))
        assert items.pop(0) == (max(len(pairs) - 1, 0), best_pairs(pairs))
    assert not items


TOKENS = st.sets(
    st.one_of(st.binary(max_size=6), st.text("abte", max_size=12).map(str.encode)), max_size=80
)


def encoded(tokens, numbers):
    edges = np.cumsum([0, *map(len, tokens)]).astype(np.int64)
    text = np.frombuffer(b"".join(tokens) or b"\0", np.uint8)
    return token_map.encode_tokens(text, edges, np.array(numbers, np.int64))


@FEWER
@given(TOKENS, st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_maps_hold_all_tokens(tokens, draw, is_wide, is_plain) -> None:
    whole = sorted(tokens | ({bytes([one]) for one in range(256)} if is_wide else set()))
    numbers = draw.sample(range(1 << 20), len(whole))
    with patch.object(token_map, "DLL", None if is_plain else compiled.DLL):
        data = encoded(whole, numbers)
    transducer = Transducer(np.frombuffer(data, np.uint8), sum(map(len, whole)))
    found = transducer.all()
    assert (found.tokens(), found.numbers.tolist()) == (whole, numbers)
    for token in (b"", b"a", b"abt", *whole[:5]):
        known = dict(zip(whole, numbers, strict=True))
        assert transducer.find(token) == known.get(token)


def test_checksums_of_both_maps_cover_all_bytes() -> None:
    tokens = sorted(f"word{number}".encode() for number in range(3000))
    data = encoded(tokens, range(3000))
    assert token_map._checksum(data[:-4]) == int.from_bytes(data[-4:], "little")
    with patch.object(token_map, "DLL", None):
        plain = encoded(tokens, range(3000))
    assert token_map._checksum(plain[:-4]) == int.from_bytes(plain[-4:], "little")
    if compiled.DLL is not None:
        assert len(data) < len(plain)


def test_damaged_lists_are_refused() -> None:
    blocks = Pieces(np.zeros(4, np.uint8), np.array([0, 4]))
    with pytest.raises(CorruptError):
        posting_lists.decode_lists(blocks, np.array([5]), PostingFormat(), 3)
    with pytest.raises(CorruptError):
        posting_lists.decode_lists(blocks, np.array([3]), PostingFormat(), 3)
    with pytest.raises(CorruptError):
        posting_lists.decode_position_lists(blocks, np.array([1]), 128, np.array([9999], "u4"))
    with pytest.raises(CorruptError):
        posting_lists.decode_position_lists(blocks, np.array([1]), 128, np.array([9], "u4"))
