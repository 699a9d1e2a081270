"""Full-text searches on tables with indices of pylance give the recorded rows and scores."""

import json

import pytest

import lancetable as lt
from lancetable.query import Match, Phrase
from tests.conftest import GOLDEN

FOLDER = GOLDEN / "index"
SEARCHES = json.loads((FOLDER / "searches.json").read_text())
CASES = [
    pytest.param(name, query, id=f"{name}: {'; '.join(str(query[key]) for key in query)[:40]}")
    for name, queries in SEARCHES.items()
    for query in queries
]


def query_of(recorded):
    if "match" in recorded:
        return Match(recorded["match"], operator=recorded["operator"])
    if "phrase" in recorded:
        return Phrase(recorded["phrase"], slop=recorded["slop"])
    return recorded["query"]


def hits(table, query, **options):
    found = table.search(query, column="t", columns=["id"], **options).to_arrow()
    return list(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize(("name", "recorded"), CASES)
def test_rows_and_scores_are_those_recorded(name, recorded):
    table = lt.open_table(FOLDER / name)
    found = hits(table, query_of(recorded), limit=None, statistics="index")
    assert dict(found) == pytest.approx(dict(recorded["hits"]), rel=1e-4)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("name", "recorded"), CASES)
def test_the_best_are_the_first_of_all(name, recorded):
    table = lt.open_table(FOLDER / name)
    every = hits(table, query_of(recorded), limit=None)
    assert len(every) == len(recorded["hits"])
    for limit in (0, 1, 5, 40):
        assert hits(table, query_of(recorded), limit=limit) == every[:limit]
    assert hits(table, query_of(recorded), limit=7, offset=3) == every[3:10]


def test_rows_of_an_index_are_left_alone_when_asked_for():
    table = lt.open_table(FOLDER / "life_uncovered_deleted")
    every = dict(hits(table, "amber", limit=None))
    indexed = dict(hits(table, "amber", limit=None, indexed_only=True))
    assert indexed.keys() < every.keys()
    index_only = dict(hits(table, "amber", limit=None, statistics="index"))
    assert {one: index_only[one] for one in indexed} == pytest.approx(indexed, rel=1e-6)
    assert "left out" in table.search("amber", column="t", indexed_only=True).explain()
