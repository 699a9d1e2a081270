"""Random nested tables written as data files by us are read equal by us and by pylance."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.file import LanceFileReader

from lancetable.file import DataFileHandle, FileReader, FileVersion
from lancetable.file.write.writer import FileWriteOptions, FileWriter
from lancetable.format.schema.types import schema_from_arrow
from lancetable.store import LocalStore, MemoryFile
from tests.same import assert_same_table
from tests.strategies import ABILITIES, tables

pytestmark = pytest.mark.oracle

EXAMPLES = 110
SOAK = int(os.environ.get("LANCETABLE_EXAMPLES", "5000"))
VERSIONS = sorted(ABILITIES)


def write(table: pa.Table, version: str, page_bytes: int, folder: Path) -> Path:
    """Write a table as one data file."""
    major, minor = map(int, version.split("."))
    path = folder / "x.lance"
    path.unlink(missing_ok=True)
    writer = FileWriter(
        LocalStore(str(folder)).create("x.lance"),
        schema_from_arrow(table.schema),
        FileVersion(major, minor),
        FileWriteOptions(page_bytes=page_bytes),
    )
    for batch in table.to_batches():
        writer.write(batch)
    written = writer.finish()
    assert written.rows == table.num_rows
    assert written.size == path.stat().st_size
    return path


def check(table: pa.Table, version: str, page_bytes: int, seed: int, folder: Path) -> None:
    """Write a table and read it with both libraries, whole and by rows."""
    path = write(table, version, page_bytes, folder)
    chance = np.random.default_rng(seed)
    some = np.unique(chance.integers(0, max(1, table.num_rows), 9 if table.num_rows else 0))
    expected = table.take(pa.array(some, pa.int64()))
    handle = DataFileHandle(FileReader.open(MemoryFile(path.read_bytes()), "x.lance"))
    assert handle.version == version
    assert_same_table(handle.read(), table)
    assert_same_table(handle.take(some.tolist()), expected)
    reader = LanceFileReader(str(path))
    assert_same_table(reader.read_all().to_table(), table)
    if len(some):
        assert_same_table(reader.take_rows(some.tolist()).to_table(), expected)


cases = st.sampled_from(VERSIONS).flatmap(
    lambda version: st.tuples(
        tables(ABILITIES[version]),
        st.just(version),
        st.sampled_from([1 << 23, 1 << 23, 1 << 12, 1 << 16]),
        st.integers(0, 1000),
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@settings(max_examples=EXAMPLES)
@given(case=cases)
def test_random_tables_are_read_equal(case: tuple[pa.Table, str, int, int], folder: Path) -> None:
    check(*case, folder)


@pytest.mark.soak
@settings(max_examples=SOAK, derandomize=False)
@given(case=cases)
def test_random_tables_are_read_equal_at_length(
    case: tuple[pa.Table, str, int, int], folder: Path
) -> None:
    check(*case, folder)
