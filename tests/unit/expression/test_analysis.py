"""Texts become the words that a full-text index holds."""

import json

import numpy as np
import pyarrow as pa
import pytest

from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.expression.analysis.analyzer import Analyzer, analyze, analyze_query
from lancetable.expression.analysis.parameters import LANGUAGES, Analysis
from lancetable.format.encoding.jsonb import encode_jsonb

PLAIN = Analysis(stem=False, remove_stop_words=False, ascii_folding=False)
LISTS = pa.list_(pa.string())


def words(text, **parameters) -> list[tuple[str, int]]:
    return [(one.text, one.position) for one in analyze_query(Analysis(**parameters), text)]


def rows(analysis, values) -> dict[int, list[tuple[str, int]]]:
    found = analyze(analysis, values)
    made: dict[int, list[tuple[str, int]]] = {}
    tokens = zip(found.tokens.to_pylist(), found.positions.tolist(), strict=True)
    for document, token in zip(found.documents.tolist(), tokens, strict=True):
        made.setdefault(document, []).append(token)
    return made


def test_the_default_splits_lowers_stems_removes_and_folds() -> None:
    assert words("The jumping FOXES, naïve Straße №5") == [
        ("jump", 1),
        ("fox", 2),
        ("naiv", 3),
        ("strasse", 4),
        ("5", 5),
    ]


def test_marks_split_words_and_vowel_signs_do_not() -> None:
    assert [text for text, _ in words("foo_bar-1.5", stem=False)] == ["foo", "bar", "1", "5"]
    assert [one.text for one in analyze_query(PLAIN, "हिन्दी e\u0301t")] == ["हिन", "दी", "e", "t"]


def test_each_character_is_lowered_by_itself() -> None:
    assert [one.text for one in analyze_query(PLAIN, "ΟΔΟΣ İ \U00010d50 \ua7cb")] == [
        "οδοσ",
        "i\u0307",
        "\U00010d70",
        "\u0264",
    ]


def test_words_are_as_long_as_their_bytes() -> None:
    found = words(f"x {'y' * 40} {'w' * 39} {'é' * 20} z", stem=False)
    assert found == [("x", 0), ("w" * 39, 2), ("z", 4)]
    assert words("x" * 400, max_token_length=None) == [("x" * 400, 0)]
    assert words("y", max_token_length=0) == []


def test_stop_words_keep_their_place_and_are_compared_after_stems() -> None:
    assert words("because the very end") == [("becaus", 0), ("veri", 2), ("end", 3)]
    custom = {"custom_stop_words": ["world", "Hello"]}
    assert words("Hello worlds the", **custom) == [("hello", 0), ("the", 2)]
    assert words("the THE", lower_case=False, stem=False) == [("THE", 1)]
    assert words("the", custom_stop_words=[]) == [("the", 0)]


@pytest.mark.parametrize(
    ("tokenizer", "more", "expected"),
    [
        ("whitespace", {}, [("a\x0bb\xa0c\u2003d", 0), ("e,f", 1), ("g", 2)]),
        ("raw", {"stem": False}, [("a\x0bb\xa0c\u2003d\te,f  g", 0)]),
        ("ngram", {"max_ngram_length": 3, "prefix_only": True}, [("a\x0bb", 0)]),
    ],
)
def test_other_tokenizers(tokenizer, more, expected) -> None:
    text = "a\x0bb\xa0c\u2003d\te,f  g"
    options = {"base_tokenizer": tokenizer, "ascii_folding": False} | more
    assert words(text, **options) == expected


def test_n_grams_are_of_characters_and_have_one_place() -> None:
    found = words("Żó w", base_tokenizer="ngram", min_ngram_length=2, max_ngram_length=3)
    assert found == [(one, 0) for one in ("zo", "zo ", "o ", "o w", " w")]
    assert words("the", base_tokenizer="ngram") == [("the", 0)]
    assert words("th", base_tokenizer="ngram") == []


def test_the_texts_of_a_list_are_one_document() -> None:
    values = pa.array([["the x the", "y", "", "the z", None, "q"], None, [], ["a", "b"]], LISTS)
    expected = {0: [("x", 1), ("y", 3), ("z", 5), ("q", 6)], 3: [("b", 1)]}
    assert rows(Analysis(), values) == expected
    assert rows(Analysis(), values.slice(2)) == {1: [("b", 1)]}
    raw = Analysis(base_tokenizer="raw", stem=False, remove_stop_words=False)
    assert rows(raw, values)[0] == [("the x the y  the z q", 0)]
    odd = pa.array([["", "a", "", None, "", "b", ""], [None, "", "x"], ["", ""], [], None], LISTS)
    assert [*rows(raw, odd).values()] == [[(one, 0)] for one in ("a   b ", "x", "", "", "")]


def test_nulls_have_no_words_and_empty_texts_are_raw_words() -> None:
    values = pa.array(["", None, "Hello World"])
    raw = Analysis(base_tokenizer="raw")
    assert rows(raw, values) == {0: [("", 0)], 2: [("hello world", 0)]}
    assert rows(Analysis(), values) == {2: [("hello", 0), ("world", 1)]}
    assert rows(Analysis(), values.slice(0, 0)) == {}


DOCUMENT = {
    "a": "Hello World the x",
    "b": {"c": "quick the fox", "d": 42},
    "e": [1, 2.5, True, False, None, "arr val"],
    "f": 1e3,
    "g": "",
    "h": {},
}


def test_words_of_json_documents_have_a_path_and_a_type() -> None:
    texts = [json.dumps(DOCUMENT), '[1,"two",{"three":"four"}]', '"text"', "null", None]
    values = pa.array([None if one is None else encode_jsonb(one) for one in texts], pa.binary())
    found = rows(Analysis(lance_tokenizer="json"), values)
    assert [token for token, _ in found[0]] == [
        *("a,str,hello", "a,str,world", "a,str,x", "b.c,str,quick", "b.c,str,fox"),
        *("b.d,number,42", "e,number,1", "e,number,2.5", "e,bool,true", "e,bool,false"),
        *("e,null,null", "e,str,arr", "e,str,val", "f,number,1000.0"),
    ]
    assert [place for _, place in found[0]] == [*range(14)]
    assert found[1] == [(",number,1", 0), (",str,two", 1), ("three,str,four", 2)]
    assert (found[2], found[3]) == ([(",str,text", 0)], [(",null,null", 0)])
    assert 4 not in found


def test_queries_on_json_documents_are_triples() -> None:
    analysis = Analysis(lance_tokenizer="json")
    found = analyze_query(analysis, "a,str,Hello worlds, the;b.d,number,42")
    assert found == [("a,str,hello", 0), ("a,str,world", 1), ("b.d,number,42", 2)]
    for text, message in (("hello", "path,type,value"), ("a,text,b", "'text' is not a type")):
        with pytest.raises(InputError, match=message):
            analyze_query(analysis, text)


def test_words_have_the_same_numbers_in_all_batches() -> None:
    analyzer = Analyzer(PLAIN)
    many = pa.array([f"word{n % 5000} common" for n in range(20000)])
    found = [analyzer.add(many).codes, analyzer.add(many).codes]
    assert np.array_equal(found[0], found[1])
    assert len(analyzer.words) == 5001
    texts = analyzer.words.texts().to_pylist()
    assert [texts[code] for code in found[1][:4]] == ["word0", "common", "word1", "common"]


def test_texts_larger_than_a_piece() -> None:
    values = pa.array(["ab " * 400_000, "x", "cd " * 10, None, "ab"])
    found = analyze(PLAIN, values)
    assert np.bincount(found.documents).tolist() == [400_000, 1, 10, 0, 1]
    assert found.positions[399_999] == 399_999


def test_bytes_that_are_no_text_are_damage() -> None:
    broken = pa.array([b"abc \xff\xfe", b"\xe4"]).view(pa.string())
    with pytest.raises(CorruptError, match="damaged"):
        analyze(Analysis(), broken)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_stems_and_stop_words(language) -> None:
    assert words("x", language=language) in ([("x", 0)], [])


def test_parameters_are_recorded_as_text() -> None:
    analysis = Analysis(with_position=True, custom_stop_words=["ñ"], max_token_length=None)
    assert Analysis.from_json(analysis.to_json()) == analysis
    assert Analysis.from_json('{"split_identifiers":true,"language":null}') == Analysis()
    for text in ("", "[]", '{"stem":1}', '{"language":"Klingon"}', "[" * 100_000):
        with pytest.raises(CorruptError, match="text analysis"):
            Analysis.from_json(text)


def test_a_tokenizer_of_others_is_named() -> None:
    other = Analysis.from_json('{"base_tokenizer":"jieba/default"}')
    assert not other.is_supported
    with pytest.raises(UnsupportedError, match="'jieba/default'"):
        analyze_query(other, "x")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"language": "english"}, "language is 'english'"),
        ({"min_ngram_length": 0}, "min_ngram_length"),
        ({"min_ngram_length": 4}, "at most max_ngram_length"),
        ({"custom_stop_words": "the"}, "list"),
    ],
)
def test_parameters_are_checked(given, message) -> None:
    with pytest.raises(InputError, match=message):
        Analysis(**given)
