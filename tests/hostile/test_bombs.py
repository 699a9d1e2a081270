"""Small files that claim to be huge."""

from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.leases import active_leases
from lancetable.errors import CorruptError, InputError, RefNotFoundError, ShortageError
from lancetable.format.proto import table_pb2
from lancetable.store import LocalStore
from tests.hostile.crafted import change

ROWS = pa.table({"a": [1, 2, 3]})
HINT = "_versions/latest_version_hint.json"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lt.create_table(tmp_path / "t", ROWS)
    return tmp_path / "t"


def huge(path: Path) -> None:
    """Make a file of a terabyte that takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("rows", [(1 << 32) + 1, 1 << 49, (1 << 64) - 1])
def test_a_fragment_has_no_more_rows_than_addresses(table: Path, rows: int) -> None:
    def claim(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[0].physical_rows = rows
        del manifest.fragments[0].files[:]

    change(table, claim)
    for read in (
        lambda: lt.open_table(table).scan().to_arrow(),
        lambda: lt.open_table(table).count("a > 1"),
        lambda: lt.open_table(table).delete("a = 1"),
    ):
        with pytest.raises(CorruptError, match="expected at most 4294967296"):
            read()


@pytest.mark.parametrize("size", [1, 1 << 40, 1 << 62])
def test_a_wrong_file_size_does_not_slow_a_scan_down(tmp_path: Path, size: int) -> None:
    rows = pa.table({"s": ["abc"] * 20_000})
    lt.create_table(tmp_path / "wide", rows)

    def lie(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[0].files[0].file_size_bytes = size

    change(tmp_path / "wide", lie)
    batches = list(lt.open_table(tmp_path / "wide").scan().to_reader())
    assert pa.Table.from_batches(batches) == rows
    assert len(batches) < 100


def test_wide_rows_of_an_empty_table_are_scanned(tmp_path: Path) -> None:
    vectors = pa.nulls(0, pa.list_(pa.float32(), 100_000))
    rows = pa.table({"v": vectors, "s": pa.array([], pa.string())})
    assert lt.create_table(tmp_path / "empty", rows).scan().to_arrow() == rows


def test_a_huge_hint_is_no_hint(table: Path) -> None:
    huge(table / HINT)
    opened = lt.open_table(table)
    assert opened.count() == 3
    opened.append(ROWS)
    assert lt.open_table(table).count() == 6


@pytest.mark.parametrize("content", [b"", b"{", b'{"version":' + b"9" * 3000, b"\xff" * 40])
def test_an_odd_hint_is_no_hint(table: Path, content: bytes) -> None:
    (table / HINT).write_bytes(content)
    assert lt.open_table(table).count() == 3


def test_a_huge_manifest_is_a_shortage(table: Path) -> None:
    (manifest,) = (table / "_versions").glob("*.manifest")
    with manifest.open("r+b") as file:
        file.truncate(1 << 43)
    with pytest.raises(ShortageError, match="not enough memory"):
        lt.open_table(table)


def test_huge_and_nested_refs_are_told(table: Path) -> None:
    huge(table / "_refs" / "tags" / "huge.json")
    with pytest.raises(CorruptError, match="expected at most 1048576"):
        lt.open_table(table, tag="huge")
    (table / "_refs" / "tags" / "deep.json").write_text("[" * 200_000)
    with pytest.raises(CorruptError, match="not a JSON object"):
        lt.open_table(table, tag="deep")
    (table / "_refs" / "branches").mkdir()
    (table / "_refs" / "branches" / "b.json").write_text('{"parentVersion": 1e999}')
    with pytest.raises((CorruptError, RefNotFoundError, InputError)):
        lt.open_table(table).branches["b"]


@pytest.mark.parametrize(
    "content",
    [
        "[" * 50_000,
        '{"kind": "read", "first": 1e999, "last": null, "seconds": 1, "began": 1, "holder": "x"}',
        '{"kind": "read", "first": 1, "last": 1, "seconds": 1e999, "began": 1, "holder": "x"}',
        "null",
    ],
)
def test_odd_leases_are_survived(table: Path, content: str) -> None:
    store = LocalStore(str(table))
    lease = store.create("_leases/odd.json")
    lease.write([content.encode()])
    lease.close()
    active_leases(store, 0.0)
    lt.open_table(table).maintenance.cleanup()
