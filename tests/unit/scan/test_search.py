"""A search is lazy, speaks Arrow, takes the keywords of a scan, and refuses what it cannot do."""

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.index.text.documents import Fuzzy
from lancetable.query import Boolean, Boost, CombinedFields, Match, MultiMatch, Phrase, Query
from tests.brute_force import Corpus

TEXTS = [
    "a puppy in a big house",
    "the house of the puppy",
    "big big house",
    None,
    "Puppies run home",
    "",
    "house of cards",
]
OTHER = ["house", "garden", None, "puppy house", "house house", "the", "puppy"]


@pytest.fixture
def table(tmp_path):
    rows = {"id": range(7), "text": TEXTS, "other": OTHER, "price": [float(n) for n in range(7)]}
    return lt.create_table(tmp_path / "t", pa.table(rows))


def ids(search):
    return search.to_arrow()["id"].to_pylist()


def test_scores_are_those_of_plain_python(table):
    expected = Corpus(TEXTS).search(dict(enumerate(TEXTS)), "puppy house")
    found = table.search("puppy house", column="text", limit=None).to_arrow()
    assert found.column_names == ["id", "text", "other", "price", "_score"]
    assert found.schema == table.search("puppy house", column="text").schema
    scores = dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))
    assert scores == pytest.approx(expected, rel=1e-6)
    order = sorted(scores, key=lambda id_: (-scores[id_], id_))
    assert found["id"].to_pylist() == order
    assert found["text"].to_pylist() == [TEXTS[id_] for id_ in order]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Match("puppy house", operator="and"), {0, 1}),
        (Match("the of"), set()),
        (Match("the of", operator="and"), set()),
        (Match(""), set()),
        (Match("hause", fuzziness=1), {0, 1, 2, 6}),
        (Match("xouse", fuzziness=1, prefix_length=1), set()),
        (Match("puppi big", fuzziness=0, operator="and"), {0}),
        (Match("puppi bix", fuzziness=1, operator="and"), {0}),
        (Phrase("big house"), {0, 2}),
        (Phrase("house puppy"), set()),
        (Phrase("house the of puppy"), {1}),
        (Phrase("house of the puppy"), {1}),
        (Phrase("puppy house", slop=4), {0}),
        (Phrase("puppy house", slop=3), {0}),
        (Phrase("puppy house", slop=2), set()),
        (Phrase("house"), {0, 1, 2, 6}),
        (Match("puppy") & Match("house"), {0, 1}),
        (Match("puppy") | Match("cards"), {0, 1, 4, 6}),
        (Match("house") & ~Match("puppy"), {2, 6}),
        (Boolean(should=[Match("cards"), Phrase("big big")]), {2, 6}),
        (Boolean(must=[Match("house")], should=[Match("cards")]), {0, 1, 2, 6}),
        (Boost(Match("house"), Match("puppy")), {0, 1, 2, 6}),
    ],
    ids=repr,
)
def test_rows_of_queries(table, query, expected):
    found = table.search(query, column="text", limit=None)
    assert set(ids(found)) == expected
    assert found.count() == len(expected)
    assert "words in text" in found.explain()


def test_scores_of_joined_queries(table):
    def scores(query):
        found = table.search(query, column="text", columns=["id"], limit=None).to_arrow()
        return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))

    house, puppy = scores("house"), scores("puppy")
    both = {id_: house[id_] + puppy.get(id_, 0) for id_ in house}
    assert scores(Boolean([Match("house")], [Match("puppy")])) == pytest.approx(both)
    less = {id_: house[id_] - 0.25 * puppy.get(id_, 0) for id_ in house}
    assert scores(Boost(Match("house"), Match("puppy"), 0.25)) == pytest.approx(less)
    assert scores(Match("house", boost=3)) == pytest.approx({id_: 3 * house[id_] for id_ in house})
    assert scores("house house") == pytest.approx({id_: 2 * house[id_] for id_ in house})


def test_several_columns(table):
    text = table.search("house", column="text", columns=["id"], limit=None).to_arrow().to_pylist()
    other = table.search("house", column="other", columns=["id"], limit=None).to_arrow()
    expected = {row["id"]: row["_score"] for row in text}
    for row in other.to_pylist():
        expected[row["id"]] = max(expected.get(row["id"], 0), row["_score"])
    queries = ("house", Match("house"), MultiMatch("house", ["text", "other"]))
    for query in queries:
        found = table.search(query, columns=["id"], limit=None).to_arrow().to_pylist()
        assert {row["id"]: row["_score"] for row in found} == pytest.approx(expected)
    combined = CombinedFields("house garden", ["text", "other"], [2, 1], "and")
    assert ids(table.search(combined)) == [1]
    assert ids(table.search(CombinedFields("cards garden", ["text", "other"], [2, 1]))) == [6, 1]
    assert ids(table.search(combined, where="id > 1")) == []
    assert ids(table.search(Match("garden", column="other") & Match("puppy", column="text"))) == [1]


def test_a_search_is_a_pandas_frame(table):
    pytest.importorskip("pandas")
    search = table.search("house", column="text", limit=3)
    assert search.to_pandas()["id"].tolist() == search.to_arrow()["id"].to_pylist()


def test_columns_rows_and_streams(table):
    search = table.search(
        "house", column="text", columns=["_score", "id"], with_row_id=True, limit=3, offset=1
    )
    assert search.schema.names == ["_score", "id", "_rowid"]
    whole = search.to_arrow()
    assert whole.schema == search.schema
    assert pa.table(search).equals(whole)
    assert pa.Table.from_batches(search).equals(whole)
    batches = [*table.search("house", column="text", batch_rows=2, limit=None).to_batches()]
    assert [batch.num_rows for batch in batches] == [2, 2]
    only = table.search("house", column="text", columns=[]).to_arrow()
    assert only.column_names == ["_score"]
    assert only.num_rows == 4
    made = table.search("house", column="text", columns={"twice": "id * 2"}).to_arrow()
    assert made.column_names == ["twice", "_score"]
    empty = table.search("nosuchword", column="text").to_arrow()
    assert empty.num_rows == 0
    assert empty.schema == table.search("house").schema
    assert "<Search>" in repr(search)


def test_predicates_before_and_after(table):
    best = ids(table.search("house", column="text", limit=2))
    assert len(ids(table.search("house", column="text", where="id > 1", limit=2))) == 2
    after = table.search("house", column="text", where="id > 1", limit=2, prefilter=False)
    assert ids(after) == [id_ for id_ in best if id_ > 1]
    where = "_score > 0.5 and id < 6"
    found = table.search("puppy", column="text", where=where, prefilter=False).to_arrow()
    assert all(score > 0.5 for score in found["_score"].to_pylist())
    assert "where, before the search: id > 1" in table.search("a", where="id > 1").explain()


def test_lists_and_parts_of_structs(tmp_path):
    tags = pa.array([["big", "house rules"], ["puppy"], None], pa.list_(pa.string()))
    rows = {"id": range(3), "tags": tags, "s": [{"t": "house"}, {"t": None}, None]}
    table = lt.create_table(tmp_path / "t", pa.table(rows))
    assert ids(table.search("rules", column="tags")) == [0]
    assert ids(table.search(Phrase("big house", "tags"))) == [0]
    assert ids(table.search("house", column="s.t")) == [0]


def test_documents(tmp_path):
    documents = pa.array(['{"a":"big house","n":5}', '{"a":["puppy","house"]}', None], pa.json_())
    table = lt.create_table(tmp_path / "t", pa.table({"id": range(3), "j": documents}))
    assert ids(table.search("a,str,houses", column="j")) == [1, 0]
    assert ids(table.search("n,number,5", column="j")) == [0]
    assert ids(table.search(Match("a,str,hause", "j", fuzziness=1))) == [1, 0]
    assert ids(table.search(Match("b,str,hause", "j", fuzziness=1))) == []
    with pytest.raises(lt.InputError, match="JSON documents"):
        table.search("house", column="j")


def test_what_cannot_be_done_is_refused(table):
    with pytest.raises(lt.SchemaError, match="does not hold texts"):
        table.search("a", column="price")
    with pytest.raises(lt.SchemaError, match="nosuch"):
        table.search("a", column="nosuch")
    with pytest.raises(lt.InputError, match="must or should"):
        table.search(~Match("a", "text"))
    with pytest.raises(lt.InputError, match="not a query"):
        table.search(5)
    with pytest.raises(lt.InputError, match="not a query"):
        table.search(Query())
    with pytest.raises(lt.InputError, match="too long"):
        Fuzzy(1).near("x" * 600)
    with pytest.raises(lt.InputError, match="statistics"):
        table.search("a", statistics="none")
    with pytest.raises(lt.ExpressionError):
        table.search("a", where="_score > 1").to_arrow()


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Match, (5,)),
        (Match, ("a", "t", "xor")),
        (Match, ("a", "t", "or", -1)),
        (Match, ("a", "t", "or", 0, 0, 50, float("nan"))),
        (Phrase, ("a", "t", -1)),
        (Boolean, (Match("a"),)),
        (Boolean, (["a"],)),
        (Match.__and__, (Match("a"), "b")),
        (Boost, (Match("a"), "b")),
        (MultiMatch, ("a", "text")),
        (MultiMatch, ("a", ["x", "x"])),
        (MultiMatch, ("a", ["x", "y"], [1.0])),
        (CombinedFields, ("a", [])),
        (CombinedFields, ("a", ["x"], [-1.0])),
    ],
)
def test_queries_check_their_arguments(kind, given):
    with pytest.raises(lt.InputError):
        kind(*given)


def test_queries_join_flat():
    a, b, c = Match("a"), Match("b"), Phrase("c")
    assert a & b & c == Boolean([a, b, c])
    assert a | b | c == Boolean(should=[a, b, c])
    assert a & ~b & c == Boolean([a, c], must_not=[b])
    assert (a | b) & c == Boolean([Boolean(should=[a, b]), c])
    assert (a & b) | c == Boolean(should=[Boolean([a, b]), c])
