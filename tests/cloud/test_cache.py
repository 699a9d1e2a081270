"""The cache on disk: right, bounded, and shared between processes."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store import ByteRange
from lancetable.store.cloud.cache import BLOCK, CachedFile, DiskCache
from tests.servers.places import Place
from tests.servers.proxy import Proxy
from tests.unmapped import CountingFile

CONTENT = bytes(range(256)) * (BLOCK // 64)
ROWS = pa.table({"id": range(300_000), "x": [float(n) for n in range(300_000)]})


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    file = CountingFile(CONTENT)
    wanted = [ByteRange(10, 20), ByteRange(BLOCK - 5, BLOCK + 5), ByteRange(7, 7)]
    expected = [CONTENT[start:stop] for start, stop in wanted]
    cached = CachedFile(file, DiskCache(tmp_path, 1 << 30), "x")
    for _ in range(3):
        cached = CachedFile(file, DiskCache(tmp_path, 1 << 30), "x")
        assert [bytes(one) for one in cached.read_ranges(wanted)] == expected
    assert file.ranges == [ByteRange(0, BLOCK), ByteRange(BLOCK, 2 * BLOCK)]
    assert cached.read_ranges([]) == []
    end = ByteRange(len(CONTENT) - 3, len(CONTENT))
    assert bytes(cached.read_ranges([end])[0]) == CONTENT[-3:]


def test_other_files_and_sizes_are_other_blocks(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 30)
    for identity, content in (("a", b"1" * 100), ("b", b"2" * 100), ("a", b"3" * 101)):
        file = CachedFile(CountingFile(content), cache, identity)
        assert bytes(file.read_ranges([ByteRange(0, 10)])[0]) == content[:10]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_damaged_blocks_are_fetched_again(tmp_path: Path, damage: str) -> None:
    cache = DiskCache(tmp_path, 1 << 30)
    CachedFile(CountingFile(CONTENT), cache, "x").read_ranges([ByteRange(0, 10)])
    (block,) = tmp_path.glob("*/*")
    data = bytearray(block.read_bytes())
    data[100] ^= 1
    damaged: dict[str, bytes] = {"cut": bytes(data[:-50]), "flip": bytes(data), "empty": b""}
    block.write_bytes(damaged[damage])
    file = CountingFile(CONTENT)
    (found,) = CachedFile(file, cache, "x").read_ranges([ByteRange(90, 110)])
    assert bytes(found) == CONTENT[90:110]
    assert file.rounds == 1


def test_the_cache_stays_within_its_size(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 8 * BLOCK)
    for number in range(40):
        CachedFile(CountingFile(CONTENT), cache, f"{number}").read_ranges([ByteRange(0, 1)])
    kept = sum(path.stat().st_size for path in tmp_path.glob("*/*"))
    assert kept <= 9 * BLOCK
    file = CountingFile(CONTENT)
    CachedFile(file, cache, "39").read_ranges([ByteRange(0, 1)])
    assert file.rounds == 0


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    file = CachedFile(CountingFile(CONTENT), DiskCache(tmp_path / "taken", 1000), "x")
    assert bytes(file.read_ranges([ByteRange(5, 9)])[0]) == CONTENT[5:9]


@pytest.mark.cloud
def test_a_second_process_reads_from_the_disk(via: Place, between: Proxy, tmp_path: Path) -> None:
    cached = via.having(cache_dir=str(tmp_path / "cache"))
    lt.create_table(via.uri, ROWS, storage_options=via.options)
    table = lt.open_table(cached.uri, storage_options=cached.options)
    assert table.scan().to_arrow().equals(ROWS)
    between.seen.clear()
    program = (
        "import lancetable as lt;"
        f"print(len(lt.open_table({cached.uri!r}, storage_options={cached.options!r})"
        ".scan().to_arrow()))"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [worker.communicate()[0].strip() for worker in workers] == ["300000"] * 2
    assert not [one for one in between.seen if ".lance" in one.path]


def test_only_own_files_are_evicted(tmp_path) -> None:
    others = ["notes.txt", "ab/notes.txt", "ab/" + "c" * 40 + "-1", "docs/" + "a" * 40 + "-0"]
    for name in others:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 100)
        os.utime(path, (0, 0))
    (tmp_path / "aa").mkdir()
    (tmp_path / "aa" / ("a" * 40 + "-7")).symlink_to(tmp_path / "notes.txt")
    dead = tmp_path / "aa" / ("." + "0" * 32)
    dead.write_bytes(b"half")
    os.utime(dead, (0, 0))
    cache = DiskCache(tmp_path, 2 * BLOCK)
    file = CachedFile(CountingFile(CONTENT), cache, "x")
    file.read_ranges([ByteRange(0, len(CONTENT))])
    cache._evict()
    assert [name for name in others if not (tmp_path / name).exists()] == []
    assert not dead.exists()
    assert sum(size for _, size, _ in cache._blocks()) <= 2 * BLOCK
