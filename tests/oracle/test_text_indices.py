"""pylance searches, merges and compacts full-text indices of ours, and the other way round."""

import random
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.query import PhraseQuery

import lancetable as lt

pytestmark = pytest.mark.oracle

DRAW = random.Random(7)
WORDS = ["".join(DRAW.choices("abcdefghijklmnop", k=DRAW.randint(2, 8))) for _ in range(1500)]


def texts(count):
    return [
        " ".join(
            WORDS[min(int(DRAW.expovariate(0.005)), len(WORDS) - 1)]
            for _ in range(DRAW.randint(0, 40))
        )
        for _ in range(count)
    ]


def rows(first, count):
    return pa.table({"id": range(first, first + count), "text": texts(count)})


def segments(table):
    return len(table.indices["text_idx"].segments)


def hits(dataset, query, limit=None):
    found = dataset.to_table(full_text_query=query, columns=["id", "_score"], limit=limit)
    pairs = zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True)
    return sorted((round(score, 3), number) for number, score in pairs)


def assert_same(one, other) -> None:
    """Compare the answers of two tables with the same rows."""
    known = other.to_table(columns=["text"])["text"].to_pylist()
    total = 0
    for _ in range(12):
        query = " ".join(DRAW.choices(WORDS[:500], k=DRAW.randint(1, 3)))
        expected = hits(other, query)
        assert hits(one, query) == expected
        best = [score for score, _ in hits(one, query, 7)]
        assert best == [score for score, _ in expected][-len(best) :] if best else not expected
        words = DRAW.choice([text for text in known if len(text) > 30]).split()
        phrase = PhraseQuery(" ".join(words[1:3]), "text")
        assert hits(one, phrase) == hits(other, phrase)
        total += len(expected)
    assert total


PLAIN: dict[str, Any] = {"with_position": True, "stem": False, "remove_stop_words": False}


def indexed_by_pylance(path, data, version=2, **options):
    made = lance.write_dataset(data, path, max_rows_per_file=200, data_storage_version="2.2")
    given = {"with_position": True, "format_version": version} | options
    made.create_scalar_index("text", "INVERTED", **given)
    return made


@pytest.mark.parametrize("version", [1, 2])
def test_pylance_searches_a_build(tmp_path, version) -> None:
    data = rows(0, 900)
    theirs = indexed_by_pylance(str(tmp_path / "a"), data, version)
    lance.write_dataset(data, str(tmp_path / "b"), max_rows_per_file=200)
    table = lt.open_table(str(tmp_path / "b"))
    table.indices.create("text", lt.FullText(with_position=True, format_version=version))
    assert_same(lance.dataset(str(tmp_path / "b")), theirs)


@pytest.mark.parametrize("maker", ["ours", "pylance"])
@pytest.mark.parametrize("version", [1, 2])
def test_merges_and_compactions(tmp_path, version, maker) -> None:
    path = str(tmp_path / "t")
    if maker == "pylance":
        indexed_by_pylance(path, rows(0, 600), version)
    else:
        lance.write_dataset(rows(0, 600), path, max_rows_per_file=200, data_storage_version="2.2")
        spec = lt.FullText(with_position=True, format_version=version)
        lt.open_table(path).indices.create("text", spec)
    table = lt.open_table(path)
    table.append(rows(600, 150))
    table.indices.optimize(mode="append")
    assert segments(table) == 2
    plain = lance.dataset(path).to_table()
    assert_same(lance.dataset(path), indexed_by_pylance(str(tmp_path / "a"), plain))
    table.indices.optimize(mode="merge")
    assert segments(table) == 1
    assert_same(lance.dataset(path), lance.dataset(str(tmp_path / "a")))
    table.delete("id % 7 = 3")
    table.compact(indices="remap")
    left = lance.dataset(path).to_table()
    assert_same(lance.dataset(path), indexed_by_pylance(str(tmp_path / "b"), left))


@pytest.mark.parametrize("version", [1, 2])
def test_pylance_merges_and_compacts_ours(tmp_path, version) -> None:
    path = str(tmp_path / "t")
    lance.write_dataset(rows(0, 600), path, max_rows_per_file=200, data_storage_version="2.2")
    spec = lt.FullText(**PLAIN, format_version=version)
    table = lt.open_table(path)
    table.indices.create("text", spec)
    table.delete("id % 5 = 1")
    lance.dataset(path).optimize.compact_files()
    theirs = lance.dataset(path)
    theirs.insert(rows(600, 100))
    theirs.optimize.optimize_indices(num_indices_to_merge=3)
    theirs = lance.dataset(path)
    texts_left = theirs.to_table(columns=["id", "text"]).to_pylist()
    for word in WORDS[:20]:
        expected = [one["id"] for one in texts_left if word in one["text"].split()]
        assert sorted(number for _, number in hits(theirs, word)) == sorted(expected)
    # What pylance carried over into several partitions becomes one.
    again = lt.open_table(path)
    again.append(rows(700, 50))
    again.indices.optimize(mode="merge")
    assert len(again.indices["text_idx"].segments[0].files) == 4
    plain = lance.dataset(path).to_table()
    assert_same(lance.dataset(path), indexed_by_pylance(str(tmp_path / "a"), plain, **PLAIN))
