"""Scores after changes of a table are those of plain Python, whatever an index describes."""

import random

import lance
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.reuse import load_reuse
from lancetable.query import Match
from tests.brute_force import Corpus

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

WORDS = [
    *("amber", "basalt", "cedar", "delta", "ember", "fjord", "granite", "harbor", "iron", "jade"),
    *("the", "of", "running", "café"),
]
QUERIES = ["amber", "cedar fjord", "running cafe the", "amber amber jade", "granite nosuchword"]


class Story:
    """A table, and what its rows and its index hold."""

    def __init__(self, path, seed, *, stable):
        self.chance = random.Random(seed)
        self.live: dict[int, str | None] = {}
        rows = self._rows(0, 300)
        lance.write_dataset(rows, path, max_rows_per_file=100, enable_stable_row_ids=stable)
        lance.dataset(path).create_scalar_index("text", "INVERTED", with_position=True)
        self.table = lt.open_table(path)
        self.indexed = dict(self.live)
        """The texts in the index, until it is written anew."""

    def text(self):
        if self.chance.random() < 0.05:
            return self.chance.choice([None, "", "the of"])
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 12)))

    def _rows(self, first, count):
        made = {id_: self.text() for id_ in range(first, first + count)}
        self.live |= made
        return pa.table({"id": list(made), "text": pa.array(made.values(), pa.string())})

    def append(self):
        self.table.append(self._rows(max(self.live) + 1, 60))

    def delete(self):
        gone = self.chance.sample(sorted(self.live), 25)
        self.table.delete(f"id in ({', '.join(map(str, gone))})")
        for id_ in gone:
            del self.live[id_]

    def update(self):
        changed = self.chance.sample(sorted(self.live), 20)
        self.table.update({"text": "'amber jade amber'"}, where=f"id in {tuple(changed)}")
        self.live |= dict.fromkeys(changed, "amber jade amber")

    def counted(self, covered):
        """Return the texts that are counted: those of the index, and live uncovered ones."""
        uncovered = [text for id_, text in self.live.items() if id_ not in covered]
        return Corpus([*self.indexed.values(), *uncovered])


def covered_ids(table):
    """Return the ids of live rows that the index describes."""
    segments = table.indices["text_idx"].segments
    ids = frozenset(fragment for one in segments for fragment in one.fragment_ids)
    record = load_reuse(table._snapshot, table._snapshot.indices())
    ids = ids if record is None else record.covered(ids)
    present = [one.id for one in table.fragments if one.id in ids]
    return set(table.scan(["id"], fragments=present).to_arrow()["id"].to_pylist())


def check(story):
    covered = covered_ids(story.table)
    corpus = story.counted(covered)
    for query in QUERIES:
        expected = corpus.search(story.live, query)
        found = story.table.search(query, column="text", columns=["id"], limit=None).to_arrow()
        scores = dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))
        assert scores == pytest.approx(expected, rel=1e-5), query
        best = story.table.search(query, columns=["id"], limit=7).to_arrow()
        assert best.equals(found.slice(0, 7))
        odd = story.table.search(query, columns=["id"], where="id % 2 = 1", limit=None).to_arrow()
        is_odd = {id_: score for id_, score in scores.items() if id_ % 2}
        assert dict(zip(*(odd[name].to_pylist() for name in odd.column_names), strict=True)) == (
            pytest.approx(is_odd, rel=1e-5)
        )
        last = story.table.search(
            query, columns=["id"], where="id % 2 = 1", limit=7, prefilter=False
        )
        ids = [id_ for id_ in best["id"].to_pylist() if id_ % 2]
        assert last.to_arrow()["id"].to_pylist() == ids


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_changes(tmp_path, seed, stable):
    story = Story(str(tmp_path / "t"), seed, stable=stable)
    check(story)
    for change in (story.append, story.delete, story.update, story.delete, story.append):
        change()
        check(story)


@pytest.mark.parametrize("policy", ["reuse", "uncover"])
def test_compaction(tmp_path, policy):
    story = Story(str(tmp_path / "t"), 7, stable=False)
    story.append()
    story.delete()
    story.update()
    story.table.compact(indices=policy)
    check(story)
    story.delete()
    story.append()
    check(story)


def test_without_an_index_all_rows_are_looked_at(tmp_path):
    story = Story(str(tmp_path / "t"), 8, stable=False)
    story.append()
    story.indexed = {}
    story.table.indices.drop("text_idx")
    for query in QUERIES:
        expected = Corpus(story.live.values()).search(story.live, query)
        found = story.table.search(Match(query), columns=["id"], limit=None).to_arrow()
        scores = dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))
        assert scores == pytest.approx(expected, rel=1e-5)
    assert "no index" in story.table.search("amber").explain()
