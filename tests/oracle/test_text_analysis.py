"""Words of texts are those that pylance stores, character by character."""

import random
import sys

import lance
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.expression.analysis.characters import stop_words
from lancetable.expression.analysis.parameters import LANGUAGES, Analysis
from tests.text_index import contents, expected

pytestmark = pytest.mark.oracle

ASSIGNED = [*range(0x20, 0x3000), *range(0xA000, 0xD7A4), *range(0xF900, 0x11000)]
CASES = [
    *({"language": one} for one in LANGUAGES),
    {"stem": False, "remove_stop_words": False, "ascii_folding": False},
    {"lower_case": False},
    {"base_tokenizer": "whitespace"},
    {"base_tokenizer": "raw", "max_token_length": None},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 4},
    {"base_tokenizer": "ngram", "prefix_only": True},
    {"custom_stop_words": ["und", "ab"]},
]


def character(draw):
    kind = draw.random()
    if kind < 0.4:
        return chr(draw.randrange(32, 127))
    if kind < 0.55:
        return draw.choice(" \t\n.,-_'\x0b\xa0\u2003")
    if kind < 0.95:
        return chr(draw.choice(ASSIGNED))
    point = draw.randrange(sys.maxunicode + 1)
    return " " if 0xD800 <= point < 0xE000 else chr(point)


def text(draw, words):
    return " ".join(
        draw.choice(words)
        if draw.random() < 0.3
        else "".join(character(draw) for _ in range(draw.randint(1, 9)))
        for _ in range(draw.randint(0, 25))
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_words_and_positions_are_those_of_pylance(tmp_path, case) -> None:
    draw = random.Random(str(case))
    words = sorted(stop_words(case.get("language", "English")))
    values = [None if draw.random() < 0.05 else text(draw, words) for _ in range(80)]
    column = pa.array(values, pa.string())
    if draw.random() < 0.3:
        column = pa.array([[one, None, "x"] for one in values], pa.list_(pa.string()))
    theirs = lance.write_dataset(pa.table({"text": column}), str(tmp_path / "t"))
    more = {"stem": False, "remove_stop_words": False} if "ngram" in str(case) else {}
    theirs.create_scalar_index("text", "INVERTED", with_position=True, **{**case, **more})
    table = lt.open_table(str(tmp_path / "t"))
    assert contents(table) == expected(table, Analysis(**case, with_position=True))


def test_json_documents(tmp_path) -> None:
    documents = [
        '{"a":"Hello World the x","b":{"c":"quick the fox","d":42},"e":[1,2.5,true,null,"v"]}',
        '{"f":1e3,"g":1e308,"h":123456789012345678901234567890,"i":-0.0,"j":1.0,"z.y":{"x":{}}}',
        '[1,"two",{"three":"four"}]',
        '"text"',
        "null",
        None,
        f'{{"long":"{"y" * 50} q","k":18446744073709551615,"e":"","n":[]}}',
    ]
    data = pa.table({"text": pa.array(documents, pa.json_())})
    theirs = lance.write_dataset(data, str(tmp_path / "t"), data_storage_version="2.2")
    theirs.create_scalar_index("text", "INVERTED", with_position=True)
    table = lt.open_table(str(tmp_path / "t"))
    analysis = Analysis(with_position=True, lance_tokenizer="json")
    assert contents(table) == expected(table, analysis)
