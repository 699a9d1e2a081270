"""Scans of some fragments, and in batches of one size."""

import pyarrow as pa
import pytest

import lancetable as lt


@pytest.fixture
def table(tmp_path):
    rows = pa.table({"id": range(100), "s": [str(n) for n in range(100)]})
    made = lt.create_table(str(tmp_path / "t"), rows, max_rows_per_file=30)
    made.delete("id % 7 = 0")
    return made


def ids(scan):
    return scan.to_arrow()["id"].to_pylist()


def test_fragments_by_id_and_by_value(table):
    expected = [n for n in [*range(60, 90), *range(30)] if n % 7]
    assert ids(table.scan(fragments=[2, 0])) == expected
    assert ids(table.scan(fragments=[table.fragments[2], table.fragments[0]])) == expected
    assert table.scan(fragments=[2, 0]).count() == len(expected)
    assert ids(table.scan(fragments=[])) == []
    assert ids(table.scan(fragments=[3], where="id > 95", limit=1)) == [96]
    addresses = table.scan(["_rowaddr"], fragments=[2]).to_arrow()["_rowaddr"].to_pylist()
    assert {address >> 32 for address in addresses} == {2}


def test_fragments_that_are_not_there(table):
    with pytest.raises(lt.InputError, match=r"no fragment 7; it has 0, 1, 2, 3"):
        table.scan(fragments=[7])
    with pytest.raises(lt.InputError, match="fragment 1 is named twice"):
        table.scan(fragments=[1, table.fragments[1]])
    old = table.fragments[0]
    table.delete("id = 1")
    with pytest.raises(lt.InputError, match="no fragment 0"):
        table.scan(fragments=[old])


@pytest.mark.parametrize("rows", [1, 7, 30, 85, 1000])
@pytest.mark.parametrize("columns", [None, []])
def test_strict_batches(table, rows, columns):
    batches = list(table.scan(columns, batch_rows=rows, strict=True).to_batches())
    sizes = [batch.num_rows for batch in batches]
    assert sum(sizes) == 85
    assert set(sizes[:-1]) <= {rows}
    if columns is None:
        assert pa.Table.from_batches(batches).equals(table.scan().to_arrow().combine_chunks())
