"""Random nested tables written as data files by pylance are read equal, by every way of reading."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from lance.file import LanceFileWriter

from lancetable.file import DataFileHandle, FileReader, open_file
from lancetable.store import MemoryFile
from tests.oracle.refusals import is_refusal
from tests.same import assert_same_array, assert_same_table
from tests.strategies import ABILITIES, leaf_paths, prune, tables
from tests.unmapped import CountingFile

pytestmark = pytest.mark.oracle

EXAMPLES = 900
SOAK = int(os.environ.get("LANCETABLE_EXAMPLES", "5000"))
VERSIONS = sorted(ABILITIES)


def quoted(path: tuple[str, ...]) -> str:
    """Return a path in which every step is quoted."""
    return ".".join("`" + step.replace("`", "``") + "`" for step in path)


def written(table: pa.Table, version: str, cache_bytes: int | None) -> bytes:
    """Return the file that pylance makes of a table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.lance"
        options = {} if cache_bytes is None else {"data_cache_bytes": cache_bytes}
        try:
            with LanceFileWriter(str(path), table.schema, version=version, **options) as writer:
                for batch in table.to_batches():
                    writer.write_batch(batch)
        except BaseException as cause:
            if is_refusal(cause):
                reject()
            raise
        return path.read_bytes()


def check(table: pa.Table, version: str, cache_bytes: int | None, seed: int) -> None:
    """Write a table and read it in every way."""
    data = written(table, version, cache_bytes)
    handle = DataFileHandle(FileReader.open(MemoryFile(data), "x.lance"))
    assert handle.rows == table.num_rows
    assert handle.version == version
    assert_same_table(handle.read(), table)
    chance = np.random.default_rng(seed)
    rows = chance.integers(0, max(1, table.num_rows), 9 if table.num_rows else 0)
    expected = table.take(pa.array(rows, pa.int64()))
    assert_same_table(handle.take(rows.tolist()), expected)
    remote = DataFileHandle(FileReader.open(CountingFile(data), "x.lance"))
    assert_same_table(remote.take(rows.tolist()), expected)
    assert_same_table(remote.read(), table)
    for path in leaf_paths(table.schema)[:6]:
        column = table.column(path[0]).combine_chunks()
        pruned = prune(column, path[1:])
        assert_same_array(handle.read([quoted(path)]).column(0), pruned, quoted(path))
        some = handle.take(rows.tolist(), [quoted(path)]).column(0)
        assert_same_array(some, pruned.take(pa.array(rows, pa.int64())), quoted(path))


cases = st.sampled_from(VERSIONS).flatmap(
    lambda version: st.tuples(
        tables(ABILITIES[version]),
        st.just(version),
        st.sampled_from([None, None, 4096, 65536]),
        st.integers(0, 1000),
    )
)


@settings(max_examples=EXAMPLES)
@given(cases)
def test_random_files_read_equal(case: tuple[pa.Table, str, int | None, int]) -> None:
    check(*case)


@pytest.mark.soak
@settings(max_examples=SOAK, derandomize=False)
@given(cases)
def test_random_files_read_equal_at_length(case: tuple[pa.Table, str, int | None, int]) -> None:
    check(*case)


def test_open_file_gives_the_same_as_the_reader(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None, 3], "b": [["x"], [], None]})
    path = tmp_path / "x.lance"
    path.write_bytes(written(table, "2.1", None))
    assert_same_table(open_file(str(path)).read(), table)
