"""Small files whose values take much memory when decoded, and the limits on that."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import zstandard

import lancetable as lt
from lancetable.errors import InputError, LimitError, ShortageError
from lancetable.format.encoding.kernels.compression import decompress
from lancetable.format.limits import ReadLimits, read_limits, set_limits

MiB = 1 << 20
WIDE = "x" * 50_000


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    set_limits(None)


def set_limit(limit: pytest.MonkeyPatch, name: str, value: object) -> None:
    limit.setenv(f"LANCETABLE_{name}", str(value))
    set_limits(None)


def wide_tables() -> dict[str, pa.Table]:
    words = [WIDE, "y" * 40_000, "z"]
    return {
        "constant": pa.table({"s": [WIDE] * 400, "n": range(400)}),
        "constant with nulls": pa.table({"s": [WIDE, None] * 200, "n": range(400)}),
        "few values": pa.table({"s": [words[n % 3] for n in range(400)], "n": range(400)}),
        "with nulls": pa.table({"s": [[*words, None][n % 4] for n in range(400)], "n": range(400)}),
    }


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("name", list(wide_tables()))
def test_scans_of_wide_repeated_values_are_divided(
    tmp_path: Path, limit: pytest.MonkeyPatch, version: str, name: str
) -> None:
    rows = wide_tables()[name]
    table = lt.create_table(tmp_path / "t", rows, storage_version=version)
    set_limit(limit, "MAX_PAGE_BYTES", MiB)
    batches = list(table.scan().to_reader())
    assert pa.Table.from_batches(batches) == rows
    assert max(batch.nbytes for batch in batches) < 12 * MiB
    assert table.scan(where="n >= 100 and length(s) > 1").to_arrow() == rows.slice(100).filter(
        pc.greater(pc.utf8_length(rows["s"].slice(100)), 1)
    )
    long = pc.sum(pc.greater(pc.utf8_length(rows["s"]), 1)).as_py()
    assert table.count("length(s) > 1") == long
    assert table.count("s like 'x%'") == pc.sum(pc.starts_with(rows["s"], "x")).as_py()


def test_a_row_that_exceeds_the_limit_names_it(tmp_path: Path, limit: pytest.MonkeyPatch) -> None:
    rows = pa.table({"s": [WIDE] * 400})
    table = lt.create_table(tmp_path / "t", rows)
    set_limit(limit, "MAX_PAGE_BYTES", 10_000)
    with pytest.raises(ShortageError, match="MAX_PAGE_BYTES") as caught:
        table.scan().to_arrow()
    assert ".lance" in str(caught.value)
    set_limit(limit, "MAX_PAGE_BYTES", 100_000_000)
    assert table.scan().to_arrow() == rows


def test_rows_of_wide_lists_are_refused_before_they_are_read(
    tmp_path: Path, limit: pytest.MonkeyPatch
) -> None:
    vectors = pa.nulls(3, pa.list_(pa.float32(), 1000))
    table = lt.create_table(tmp_path / "t", pa.table({"v": vectors, "w": vectors, "n": range(3)}))
    set_limit(limit, "MAX_ROW_BYTES", 5000)
    with pytest.raises(LimitError, match=r"8008 bytes, expected at most 5000 \(max_row_bytes\)"):
        table.scan().to_arrow()
    assert table.scan(columns=["v", "n"]).to_arrow().num_rows == 3


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_null_lists_of_a_huge_size_take_no_memory(tmp_path: Path, version: str) -> None:
    huge = pa.list_(pa.float64(), 1 << 30)
    schema = pa.schema({"n": pa.int64(), "v": huge})
    table = lt.create_table(tmp_path / "t", pa.table({"n": [1, 2]}), storage_version=version)
    table.columns.add(schema.field("v"))
    with pytest.raises(ShortageError, match="LANCETABLE_MAX_ROW_BYTES"):
        table.scan().to_arrow()


@pytest.mark.parametrize("scheme", ["zstd", "lz4"])
def test_compressed_buffers_do_not_expand_beyond_the_limit(
    limit: pytest.MonkeyPatch, scheme: str
) -> None:
    content = bytes(100_000)
    if scheme == "zstd":
        packed = len(content).to_bytes(8, "little") + zstandard.compress(content)
    else:
        block = pa.Codec("lz4_raw").compress(content, asbytes=True)
        packed = len(content).to_bytes(4, "little") + block
    set_limit(limit, "MAX_PAGE_BYTES", 100_000)
    assert decompress(scheme, memoryview(packed), 1 << 20) == content
    set_limit(limit, "MAX_PAGE_BYTES", 99_999)
    with pytest.raises(LimitError, match="expands to 100000 bytes, expected at most 99999"):
        decompress(scheme, memoryview(packed), 1 << 20)


@pytest.mark.parametrize("text", ["0", "-1", "many", "1e9", "٣"])
def test_limits_are_whole_numbers(limit: pytest.MonkeyPatch, text: str) -> None:
    set_limit(limit, "MAX_PAGE_BYTES", text)
    with pytest.raises(InputError, match="LANCETABLE_MAX_PAGE_BYTES"):
        read_limits()


def test_limits_have_defaults() -> None:
    assert read_limits() == ReadLimits()
