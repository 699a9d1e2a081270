"""What builds write where readers of other makers depend on it."""

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.index.scalar.bloomfilter import filter_bytes
from lancetable.index.scalar.ngram import _folded, tokens


@pytest.mark.parametrize(
    ("items", "probability", "size"), [(8192, 0.00057, 32768), (1000, 0.01, 2048), (1, 0.9, 32)]
)
def test_size_of_a_filter(items, probability, size):
    assert filter_bytes(items, probability) == size


@pytest.mark.parametrize(
    ("text", "folded"),
    [("STREET", "STREET"), ("Ünïcode", "unicode"), ("日本abc", "??abc"), ("Ærø 12", "aero 12")],
)
def test_texts_are_folded(text, folded):
    assert _folded(pa.array([None, "A", text])).to_pylist() == [None, b"A", folded.encode()]


def test_tokens_are_numbers_to_base_37():
    assert tokens("a0").tolist() == []
    assert tokens("0aZ?").tolist() == [1 * 37 * 37 + 11 * 37 + 36]


@pytest.fixture
def table(tmp_path):
    documents = ['{"a":1,"t":"red"}', '{"a":2}', "{}", None, '{"a":2,"t":"blue"}']
    return lt.create_table(
        str(tmp_path / "t"), pa.table({"id": range(5), "j": pa.array(documents, pa.json_())})
    )


def ids(table, where):
    scan = table.scan(["id"], where=where)
    assert "index " in scan.explain()
    return scan.to_arrow()["id"].to_pylist()


def test_json_paths(table):
    table.indices.create("j", lt.JsonPath("$.a"), name="a")
    table.indices.create("j", lt.JsonPath("t", lt.NGram()), name="t")
    assert ids(table, "json_get_int(j, 'a') = 2") == [1, 4]
    assert ids(table, "json_get_int(j, 'a') is null") == [2, 3]
    assert ids(table, "contains(json_get_string(j, 't'), 'blu')") == [4]
    # The values of the new rows are of another type, so the index is built from all rows.
    table.append(pa.table({"id": [5], "j": pa.array(['{"a":2.0}'], pa.json_())}))
    table.indices.optimize(mode="merge")
    assert ids(table, "json_get_int(j, 'a') = 2") == [1, 4, 5]


def test_json_paths_that_no_predicate_uses_are_refused(table):
    with pytest.raises(lt.InputError, match=r"path is 'a\.b'"):
        table.indices.create("j", lt.JsonPath("a.b"))
    with pytest.raises(lt.InputError, match="does not take"):
        table.indices.create("j", lt.JsonPath("a", lt.NGram()))
    with pytest.raises(lt.InputError, match="target is"):
        lt.JsonPath("a", lt.ZoneMap())  # type: ignore[arg-type]
    with pytest.raises(lt.SchemaError, match="takes JSON documents"):
        table.indices.create("id", lt.JsonPath("a"))
    assert table.version == 1
