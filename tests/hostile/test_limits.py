"""Limits that a service sets on the bytes per open, row and batch."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import InputError, LimitError
from lancetable.file import open_file
from lancetable.format.limits import NO_LIMIT, ReadLimits, read_limits
from tests.hostile.crafted import newest

KiB = 1 << 10
MiB = 1 << 20


@pytest.fixture(autouse=True)
def no_limits() -> Iterator[None]:
    yield
    lt.set_limits(None)


def created_files(folder: Path, rows: pa.Table) -> list[Path]:
    lt.create_table(folder, rows)
    return list((folder / "data").glob("*.lance"))


def texts(rows: int, width: int) -> pa.Table:
    return pa.table({"n": range(rows), "s": [f"{n:05}" + "x" * width for n in range(rows)]})


def random_texts(rows: int, width: int) -> pa.Table:
    """Return texts that are hardly compressed, so that takes gather them."""
    words = random.Random(1)
    return pa.table(
        {"n": range(rows), "s": [words.randbytes(width // 2).hex() for _ in range(rows)]}
    )


def repeated(rows: int, width: int) -> pa.Table:
    return pa.table({"n": range(rows), "s": ["x" * width] * rows})


def vectors(rows: int, width: int) -> pa.Table:
    values = pa.array(np.arange(rows * width, dtype=np.float32))
    return pa.table({"n": range(rows), "v": pa.FixedSizeListArray.from_arrays(values, width)})


KINDS: dict[str, Callable[[int, int], pa.Table]] = {
    "texts": texts,
    "repeated": repeated,
    "vectors": lambda rows, width: vectors(rows, width // 4),
}


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_a_manifest_is_not_read_beyond_the_limit(tmp_path: Path, place: str) -> None:
    uri = str(tmp_path / "t") if place == "disk" else "memory://limits/t"
    table = lt.create_table(uri, texts(10, 5), mode="overwrite")
    (version,) = table.versions()
    lt.set_limits(ReadLimits(max_open_bytes=version.size))
    assert lt.open_table(uri).count() == 10
    lt.set_limits(ReadLimits(max_open_bytes=version.size - 1))
    for read in (
        lambda: lt.open_table(uri),
        lambda: lt.open_table(uri, version=1),
        lambda: lt.open_table(uri, as_of="2999-01-01"),
    ):
        with pytest.raises(LimitError, match=r"manifest: .*max_open_bytes.*MAX_OPEN_BYTES"):
            read()


@pytest.mark.parametrize("reads", ["mapped", "copied"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_metadata_of_a_data_file_is_not_read_beyond_the_limit(
    tmp_path: Path, version: str, reads: str
) -> None:
    rows = pa.table({f"column {n}": np.arange(400) for n in range(50)})
    lt.create_table(tmp_path / "t", rows, storage_version=version)
    (data,) = (tmp_path / "t" / "data").iterdir()
    size = newest(tmp_path / "t").stat().st_size
    lt.set_limits(ReadLimits(max_open_bytes=size))
    options = {"local_reads": reads}
    table = lt.open_table(tmp_path / "t", storage_options=options)
    with pytest.raises(LimitError, match=rf"{data.name}: .*max_open_bytes"):
        table.scan().to_arrow()
    with pytest.raises(LimitError, match="max_open_bytes"):
        open_file(data)
    lt.set_limits(ReadLimits(max_open_bytes=data.stat().st_size))
    assert table.scan().to_arrow() == rows


def test_a_file_descriptor_is_not_read_beyond_the_limit(tmp_path: Path) -> None:
    note = pa.schema([pa.field("n", pa.int64(), metadata={"note": "x" * 10_000})])
    (data,) = created_files(tmp_path / "t", pa.table([[1, 2]], schema=note))
    lt.set_limits(ReadLimits(max_open_bytes=10_000))
    file = open_file(data)
    with pytest.raises(LimitError, match=r"file descriptor: .*max_open_bytes"):
        file.rows  # noqa: B018


def test_a_deletion_file_is_not_read_beyond_the_limit(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", pa.table({"n": range(50_000)}))
    table.delete("n % 3 = 0")
    size = newest(tmp_path / "t").stat().st_size
    (deletions,) = (tmp_path / "t" / "_deletions").iterdir()
    assert deletions.stat().st_size > size
    lt.set_limits(ReadLimits(max_open_bytes=size))
    with pytest.raises(LimitError, match=rf"{deletions.name}: .*max_open_bytes"):
        lt.open_table(tmp_path / "t").scan().to_arrow()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_batches_of_a_scan_keep_to_the_limit(tmp_path: Path, kind: str, version: str) -> None:
    rows = KINDS[kind](2000, 4000)
    table = lt.create_table(tmp_path / "t", rows, storage_version=version)
    lt.set_limits(ReadLimits(max_batch_bytes=MiB))
    for scan, expected in (
        (table.scan(), rows),
        (table.scan(where="n >= 500"), rows.slice(500)),
        (table.scan(limit=900, offset=3), rows.slice(3, 900)),
    ):
        batches = list(scan.to_batches())
        assert pa.Table.from_batches(batches) == expected
        assert max(batch.nbytes for batch in batches) <= MiB
        assert max(chunk.nbytes for chunk in scan.to_arrow().column(1).chunks) <= MiB
    with pytest.raises(LimitError, match="max_batch_bytes"):
        list(table.scan(strict=True, batch_rows=1000).to_batches())
    assert table.count("n > 9") == 1990


@pytest.mark.parametrize("where", ["k = 1", "k = 1 and n >= 500", "k <= 1"])
def test_rows_that_indices_name_keep_to_the_limit(tmp_path: Path, where: str) -> None:
    rows = texts(2000, 4000)
    rows = rows.append_column("k", pa.array([number % 40 // 10 for number in range(2000)]))
    table = lt.create_table(tmp_path / "t", rows, max_rows_per_file=800)
    table.indices.create("k", "btree")
    expected = table.scan(where=where, use_indices=False).to_arrow()
    lt.set_limits(ReadLimits(max_batch_bytes=256 * KiB))
    scan = table.scan(where=where)
    assert "index k_idx" in scan.explain()
    batches = list(scan.to_batches())
    assert pa.Table.from_batches(batches) == expected
    assert scan.to_arrow() == expected
    assert max(batch.nbytes for batch in batches) <= 256 * KiB
    assert scan.count() == expected.num_rows


def test_batches_of_small_fragments_keep_to_the_limit(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", texts(5, 20 * KiB))
    for _ in range(30):
        table.append(texts(5, 20 * KiB))
    lt.set_limits(ReadLimits(max_batch_bytes=256 * KiB))
    batches = list(table.scan().to_batches())
    assert sum(batch.num_rows for batch in batches) == 31 * 5
    assert max(batch.nbytes for batch in batches) <= 256 * KiB


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_row_larger_than_a_batch_is_refused(tmp_path: Path, kind: str) -> None:
    table = lt.create_table(tmp_path / "t", KINDS[kind](10, 8 * KiB))
    lt.set_limits(ReadLimits(max_batch_bytes=4 * KiB))
    for read in (table.scan().to_arrow, lambda: table.take([3]), lambda: table.take([1, 2])):
        with pytest.raises(LimitError, match=r"expected at most 4096 \(max_batch_bytes\)"):
            read()
    assert table.scan(["n"]).to_arrow().num_rows == 10


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_takes_keep_to_the_limit_on_a_batch(tmp_path: Path, kind: str, version: str) -> None:
    rows = KINDS[kind](2000, 4000)
    lt.create_table(tmp_path / "t", rows, storage_version=version)
    lt.set_limits(ReadLimits(max_batch_bytes=MiB))
    table = lt.open_table(tmp_path / "t")
    assert table.take([3]) == rows.slice(3, 1)
    assert table.take(list(range(200))) == rows.slice(0, 200)
    many = list(range(2000))
    for take in (
        lambda: table.take(many),
        lambda: table.take(np.array(many)),
        lambda: table.take([5] * 2000),
        lambda: table.take(row_addresses=many),
    ):
        with pytest.raises(LimitError, match=r"expected at most 1048576 \(max_batch_bytes\)"):
            take()


@contextmanager
def little_memory() -> Iterator[None]:
    """Check that neither Python nor Arrow allocate much more than a batch may have."""
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 4 * MiB
        assert (counted.max_memory() or 0) < 4 * MiB
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


@pytest.mark.parametrize(
    ("kind", "rows", "width", "place"),
    [
        ("random texts", 40_000, 120, "disk"),
        ("repeated", 1000, 20 * KiB, "disk"),
        ("vectors", 1000, 20 * KiB, "disk"),
        ("vectors", 1000, 20 * KiB, "memory"),
    ],
)
def test_takes_are_refused_before_memory_is_allocated(
    tmp_path: Path, kind: str, rows: int, width: int, place: str
) -> None:
    uri = str(tmp_path / "t") if place == "disk" else f"memory://{tmp_path.name}/t"
    lt.create_table(uri, {**KINDS, "random texts": random_texts}[kind](rows, width))
    lt.set_limits(ReadLimits(max_batch_bytes=MiB))
    table = lt.open_table(uri)
    table.take([5])
    wanted = list(range(rows))
    with little_memory(), pytest.raises(LimitError, match="max_batch_bytes"):
        table.take(wanted)


def test_payloads_of_blobs_keep_to_the_limit(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table([pa.array([b"x" * MiB] * 8, pa.large_binary())], schema=pa.schema([field]))
    (data,) = created_files(tmp_path / "t", rows)
    lt.set_limits(ReadLimits(max_batch_bytes=3 * MiB))
    with little_memory(), pytest.raises(LimitError, match="8 rows take 8388608 bytes"):
        open_file(data).read(blobs="bytes")
    table = lt.open_table(tmp_path / "t")
    batches = list(table.scan(blobs="bytes").to_batches())
    assert sum(batch.num_rows for batch in batches) == 8
    assert max(batch.nbytes for batch in batches) <= 3 * MiB


def test_wide_rows_are_not_taken(tmp_path: Path) -> None:
    lt.create_table(tmp_path / "t", vectors(20, 1000))
    lt.set_limits(ReadLimits(max_row_bytes=4000))
    table = lt.open_table(tmp_path / "t")
    (data,) = (tmp_path / "t" / "data").iterdir()
    for take in (
        lambda: table.take([3]),
        lambda: table.take(np.array([3, 4])),
        lambda: table.take(row_addresses=[3]),
        lambda: open_file(data).take([3]),
    ):
        with pytest.raises(LimitError, match=r"4008 bytes, expected at most 4000 \(max_row_bytes"):
            take()
    assert table.take([3], columns=["v"]).num_rows == 1


def test_null_lists_of_a_huge_size_are_not_taken(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", pa.table({"n": [1, 2]}))
    table.columns.add(pa.field("v", pa.list_(pa.float64(), 1 << 30)))
    with pytest.raises(LimitError, match="LANCETABLE_MAX_ROW_BYTES"):
        table.take([0])


def test_takes_keep_to_the_limit_on_a_page(tmp_path: Path) -> None:
    lt.create_table(tmp_path / "t", repeated(2000, 4000))
    lt.set_limits(ReadLimits(max_page_bytes=MiB))
    table = lt.open_table(tmp_path / "t")
    assert table.take(list(range(100))).num_rows == 100
    with pytest.raises(LimitError, match="max_page_bytes"):
        table.take(list(range(2000)))


@pytest.mark.parametrize("value", [0, -1, 1.5, "9", True, None])
@pytest.mark.parametrize("name", ReadLimits._fields)
def test_limits_are_whole_numbers(name: str, value: Any) -> None:
    wrong = ReadLimits()._replace(**{name: value})
    with pytest.raises(InputError, match=f"{name} is {value!r}"):
        lt.set_limits(wrong)
    assert read_limits() == ReadLimits()


def test_limits_take_the_place_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCETABLE_MAX_BATCH_BYTES", "5")
    lt.set_limits(None)
    assert read_limits().max_batch_bytes == 5
    lt.set_limits(ReadLimits(max_open_bytes=7))
    assert read_limits() == ReadLimits(7, max_batch_bytes=NO_LIMIT)
    monkeypatch.undo()
