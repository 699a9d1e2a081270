"""Full-text queries find the rows that pylance finds, with the same scores."""

import random
import re
import sysconfig
from functools import partial
from itertools import pairwise
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

import lancetable as lt
from lancetable.expression.analysis.analyzer import analyze_query
from lancetable.expression.analysis.parameters import Analysis
from lancetable.query import (
    Boolean,
    Boost,
    CombinedFields,
    Match,
    MultiMatch,
    Phrase,
)

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SENTENCES = 20_000
ROUNDS, PER_ROUND = 10, 50
_DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


def sentences():
    """Return sentences of docstrings and README files of installed packages."""
    found: dict[str, None] = {}
    packages = Path(sysconfig.get_path("purelib"))
    readmes = sorted(packages.glob("*.dist-info/METADATA"))
    for path in [*readmes, *sorted(packages.rglob("*.py"))]:
        text = path.read_text("utf-8", "replace")
        parts = [text] if path.name == "METADATA" else _DOCSTRING.findall(text)
        for part in parts:
            for sentence in _END.split(part):
                plain = " ".join(sentence.split())
                if 20 <= len(plain) <= 400:
                    found[plain] = None
        if len(found) >= SENTENCES:
            return list(found)[:SENTENCES]
    pytest.skip("too few packages are installed")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    texts = sentences()
    chance = random.Random(11)
    other = [chance.choice(texts) if chance.random() < 0.9 else None for _ in texts]
    rows = pa.table({"id": range(len(texts)), "text": texts, "other": other})
    path = str(tmp_path_factory.mktemp("texts") / "t.lance")
    table = lance.write_dataset(rows, path, max_rows_per_file=6000)
    for column in ("text", "other"):
        table.create_scalar_index(column, "INVERTED", with_position=True)
    return texts, lance.dataset(path), lt.open_table(path)


class Drawn:
    """A random query in both libraries."""

    def __init__(self, texts, chance):
        self.texts, self.chance = texts, chance

    def words(self, most):
        """Return words of one text, or of several."""
        chance = self.chance
        if chance.random() < 0.5:
            own = chance.choice(self.texts).split()
            return " ".join(chance.sample(own, min(chance.randint(1, most), len(own))))
        return " ".join(chance.choice(chance.choice(self.texts).split()) for _ in range(most))

    def match(self, column="text"):
        chance, text = self.chance, self.words(self.chance.randint(1, 4))
        operator, boost = chance.choice(["or", "and"]), chance.choice([1.0, 1.0, 2.5])
        return (
            MatchQuery(text, column, operator=FullTextOperator[operator.upper()], boost=boost),
            Match(text, column, operator, boost=boost),
        )

    def phrase(self, column="text", slops=(0, 0, 1, 2)):
        own = self.chance.choice(self.texts).split()
        first, length = self.chance.randrange(len(own)), self.chance.randint(1, 4)
        text, slop = " ".join(own[first : first + length]), self.chance.choice(slops)
        return PhraseQuery(text, column, slop=slop), Phrase(text, column, slop)

    def fuzzy(self):
        plain = Analysis()
        while True:
            word = self.chance.choice(self.words(3).lower().split())
            is_plain = word.isascii() and word.isalpha() and len(word) > 3
            if is_plain and [one.text for one in analyze_query(plain, word)] == [word]:
                break
        distance, prefix = self.chance.randint(1, 2), self.chance.randint(0, 2)
        options = {"fuzziness": distance, "prefix_length": prefix, "max_expansions": 400}
        return MatchQuery(word, "text", **options), Match(word, "text", **options)

    def boolean(self):
        kinds = {
            "must": (Occur.MUST, self.chance.randint(0, 2)),
            "should": (Occur.SHOULD, self.chance.randint(0, 2)),
            "must_not": (Occur.MUST_NOT, self.chance.randint(0, 1)),
        }
        theirs, ours = [], {}
        for name, (occur, count) in kinds.items():
            exact = partial(self.phrase, slops=(0,))
            drawn = [self.chance.choice([self.match, exact])() for _ in range(count)]
            theirs += [(occur, one) for one, _ in drawn]
            ours[name] = [one for _, one in drawn]
        if not ours["must"] and not ours["should"]:
            return self.boolean()
        return BooleanQuery(theirs), Boolean(**ours)

    def boosted(self):
        (positive, ours), (negative, other) = self.match(), self.match()
        return BoostQuery(positive, negative, negative_boost=0.3), Boost(ours, other, 0.3)

    def several(self):
        text, boosts = self.words(3), [1.0, self.chance.choice([0.5, 2.0])]
        return (
            MultiMatchQuery(text, ["text", "other"], boosts=boosts),
            MultiMatch(text, ["text", "other"], boosts),
        )

    def any(self):
        kinds = [
            *(self.match, self.match, self.phrase, self.phrase, self.fuzzy, self.boolean),
            *(self.boosted, self.several),
        ]
        return self.chance.choice(kinds)()


def has_phrase(text, phrase):
    """Return whether a text has the words of a phrase, each within the slop of the one before."""
    words, wanted = (analyze_query(Analysis(), one) for one in (text, phrase.text))
    reached = {one.position for one in words if one.text == wanted[0].text}
    for before, after in pairwise(wanted):
        least = after.position - before.position
        here = {one.position for one in words if one.text == after.text}
        gaps = range(least, least + phrase.slop + 1)
        reached = {one for one in here if any(one - gap in reached for gap in gaps)}
    return bool(reached)


def scored(found):
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_queries(tables, seed):
    texts, theirs, ours = tables
    drawn = Drawn(texts, random.Random(seed))
    for _ in range(PER_ROUND):
        query, own = drawn.any()
        expected = scored(theirs.to_table(columns=["id", "_score"], full_text_query=query))
        found = ours.search(own, columns=["id"], limit=None).to_arrow()
        mine = scored(found)
        if isinstance(own, Phrase) and own.slop:
            # pylance does not try all positions of a word that a text has several times.
            for one in mine.keys() - expected.keys():
                assert has_phrase(texts[one], own)
                del mine[one]
        assert mine == pytest.approx(expected, rel=1e-4, abs=1e-4), own
        best = ours.search(own, columns=["id"], limit=10).to_arrow()
        assert best.equals(found.slice(0, 10)), own


def test_fields_as_if_they_were_one(tables):
    texts, theirs, ours = tables
    drawn = Drawn(texts, random.Random(5))
    for _ in range(20):
        text = drawn.words(2)
        columns, boosts = ["text", "other"], [1.0, 2.0]
        query = CombinedFieldsQuery(text, columns, boosts=boosts)
        expected = theirs.to_table(columns=["id", "_score"], full_text_query=query, limit=50)
        own = CombinedFields(text, columns, boosts)
        found = ours.search(own, columns=["id"], limit=50).to_arrow()
        scores = found["_score"].to_pylist()
        assert scores == pytest.approx(expected["_score"].to_pylist(), rel=1e-3), own
