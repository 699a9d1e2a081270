"""Full-text indices hold the words of all rows, however they came to be."""

import random

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import CorruptError, SchemaError, UnsupportedError
from lancetable.index.specs import parse_spec
from tests.text_index import contents, expected, segments_of

RANDOM = random.Random(3)
VOCABULARY = ["".join(RANDOM.choices("abcdeéß漢", k=RANDOM.randint(1, 9))) for _ in range(3000)]


def texts(count, most=30):
    """Return texts; some are null, empty, or have few words very often."""
    made = []
    for number in range(count):
        kind = number % 11
        size = RANDOM.randint(0, most)
        words = [
            VOCABULARY[min(int(RANDOM.expovariate(0.004)), len(VOCABULARY) - 1)]
            for _ in range(size)
        ]
        made.append(None if kind == 0 else "" if kind == 1 else " ".join(words + words[:3] * 2))
    return made


def table_of(path, values, type_=None, **options):
    ids = pa.array(range(len(values)), pa.int64())
    data = pa.table({"id": ids, "text": pa.array(values, type_ or pa.string())})
    return lt.create_table(str(path / "t"), data, **options)


SPECS = [
    lt.FullText(),
    lt.FullText(with_position=True),
    lt.FullText(with_position=True, format_version=1),
    lt.FullText(format_version=1, stem=False, remove_stop_words=False),
    lt.FullText(base_tokenizer="ngram", min_ngram_length=2, with_position=True),
    lt.FullText(base_tokenizer="raw", max_token_length=None),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_build_holds_all_words(tmp_path, spec) -> None:
    table = table_of(tmp_path, texts(1200), max_rows_per_file=500)
    table.indices.create("text", spec)
    assert contents(table) == expected(table, spec)
    info = table.indices["text_idx"]
    assert (info.kind, info.unusable) == ("full_text", None)
    assert [one.index_version for one in info.segments] == [spec.format_version]


def test_a_build_within_little_memory_writes_runs_and_partitions(tmp_path) -> None:
    spec = lt.FullText(with_position=True)
    table = table_of(tmp_path, texts(6000, 60))
    table.indices.create("text", spec, memory_bytes=1_000_000)
    (segment,) = segments_of(table)
    assert len(segment.partitions) > 1
    assert contents(table) == expected(table, spec)


def test_lists_and_json_documents(tmp_path) -> None:
    lists = [None if one is None else [*one.split(" "), None, "the end"] for one in texts(300)]
    table = table_of(tmp_path, lists, pa.list_(pa.string()))
    spec = lt.FullText(with_position=True)
    table.indices.create("text", spec)
    assert contents(table) == expected(table, spec)
    documents = [f'{{"a":"{one}","b":[{number},null]}}' for number, one in enumerate(texts(50))]
    data = pa.table({"id": range(50), "text": pa.array(documents, pa.json_())})
    other = lt.create_table(str(tmp_path / "json"), data)
    other.indices.create("text", spec)
    found = contents(other)
    assert found == expected(other, spec.of_documents("json"))
    assert "b,number,7" in found
    other.append(data)
    other.indices.optimize(mode="merge")
    assert contents(other) == expected(other, spec.of_documents("json"))


@pytest.mark.parametrize("values", [[], [None, "", "the"]])
def test_tables_without_words(tmp_path, values) -> None:
    table = table_of(tmp_path, values)
    table.indices.create("text", lt.FullText())
    assert contents(table) == {}
    table.append(pa.table({"id": [9], "text": ["new words"]}))
    table.indices.optimize(mode="merge")
    assert contents(table) == expected(table, lt.FullText())


@pytest.mark.parametrize("spec", SPECS[1:4])
@pytest.mark.parametrize("mode", ["append", "auto", "merge", "rebuild"])
def test_optimize(tmp_path, spec, mode) -> None:
    table = table_of(tmp_path, texts(300))
    table.indices.create("text", spec)
    for first in (300, 400):
        table.append(pa.table({"id": range(first, first + 100), "text": texts(100)}))
        table.delete(f"id % 5 = {first % 3}")
        table.indices.optimize(mode=mode)
    if mode in ("append", "auto"):
        table.indices.optimize(mode="merge")
        table.compact(indices="remap")
    elif mode == "merge":
        table.compact(indices="remap")
    found = expected(table, spec)
    held = contents(table)
    assert held.keys() >= found.keys()
    assert {word: rows for word, rows in held.items() if word in found} == found
    assert held.keys() == found.keys()


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("policy", ["remap", "reuse", "uncover"])
def test_compaction(tmp_path, policy, stable) -> None:
    if stable and policy == "reuse":
        pytest.skip("tables with stable row ids need no record of moved rows")
    spec = lt.FullText(with_position=True)
    table = table_of(tmp_path, texts(600), max_rows_per_file=150, stable_row_ids=stable)
    table.indices.create("text", spec)
    table.delete("id % 4 = 1")
    table.compact(indices=policy)
    table.append(pa.table({"id": range(600, 700), "text": texts(100)}))
    table.indices.optimize(mode="merge")
    address = "_rowid" if stable else "_rowaddr"
    assert contents(table) == expected(table, spec, address=address)


def test_a_merge_of_formats_and_many_partitions(tmp_path) -> None:
    spec = lt.FullText(with_position=True, format_version=1)
    table = table_of(tmp_path, texts(1500, 40), max_rows_per_file=500)
    table.indices.create("text", spec, fragments=[0])
    table.indices.create(
        "text", lt.FullText(with_position=True), name="two", fragments=[1, 2], memory_bytes=10**6
    )
    first, second = (table.indices[name].segments for name in ("text_idx", "two"))
    _rename(table, second, "text_idx")
    assert {one.index_version for one in table.indices["text_idx"].segments} == {1, 2}
    table.indices.optimize(["text_idx"], mode="merge")
    assert len(table.indices["text_idx"].segments) == 1
    assert contents(table) == expected(table, spec)
    assert first


def _rename(table, segments, name) -> None:
    from lancetable.commit.committer import commit
    from lancetable.commit.transaction import CreateIndex

    renamed = tuple(one._replace(name=name) for one in segments)
    operation = CreateIndex(renamed, tuple(segments))
    table._handle.move(commit(table._handle.snapshot, operation).snapshot)


def test_segments_that_were_analysed_otherwise_are_built_again(tmp_path) -> None:
    table = table_of(tmp_path, texts(200), max_rows_per_file=100)
    spec = lt.FullText(stem=False)
    table.indices.create("text", spec, fragments=[0])
    table.indices.create("text", lt.FullText(), name="two", fragments=[1])
    _rename(table, table.indices["two"].segments, "text_idx")
    table.indices.optimize(mode="merge")
    assert contents(table) == expected(table, spec)


def test_columns_and_tokenizers_that_do_not_fit_are_refused(tmp_path) -> None:
    table = table_of(tmp_path, ["a"])
    with pytest.raises(SchemaError, match="it takes texts, lists of texts and JSON documents"):
        table.indices.create("id", lt.FullText())
    with pytest.raises(UnsupportedError, match="tokenizer 'icu' is not in this release"):
        table.indices.create("text", lt.FullText(base_tokenizer="icu"))
    assert parse_spec("full_text") == parse_spec("fulltext") == lt.FullText()
    made = parse_spec("full_text", {"language": "German", "custom_stop_words": "a,b"})
    assert made == lt.FullText(language="German", custom_stop_words=("a", "b"))


def test_damaged_segments_are_not_merged(tmp_path) -> None:
    table = table_of(tmp_path, texts(200))
    table.indices.create("text", lt.FullText(with_position=True))
    table.append(pa.table({"id": [1], "text": ["new"]}))
    for path in (tmp_path / "t" / "_indices").rglob("part_0_*.lance"):
        whole = path.read_bytes()
        for at in range(0, len(whole), max(len(whole) // 12, 1)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            fresh = lt.open_table(str(tmp_path / "t"))
            try:
                fresh.indices.optimize(mode="merge", dry_run=False)
            except (CorruptError, UnsupportedError, lt.LimitError):
                continue
            finally:
                path.write_bytes(whole)
            fresh.restore(table.version)


def test_tokenize_shows_the_words_of_an_index(tmp_path) -> None:
    table = table_of(tmp_path, ["a"])
    table.indices.create("text", lt.FullText(language="German"))
    table.indices.create("id", lt.BTree())
    assert table.tokenize("Die Häuser", "text_idx") == [("haus", 1)]
    assert table.tokenize("Die Häuser") == [("die", 0), ("hauser", 1)]
    assert table.tokenize("Die Häuser", lt.FullText(stem=False)) == [("die", 0), ("hauser", 1)]
    for name in ("id_idx", "other"):
        with pytest.raises(lt.IndexNotFoundError, match=f"no full-text index '{name}'"):
            table.tokenize("x", name)
