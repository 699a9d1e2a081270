"""Single files of both libraries: rows, global buffers, metadata."""

from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

from lancetable.file import create_file, open_file

pytestmark = pytest.mark.oracle

DATA = pa.table({"id": range(100), "t": [f"text {n}" for n in range(100)]})


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pylance_reads_our_file(version: str, tmp_path: Path) -> None:
    path = tmp_path / "one.lance"
    with create_file(path, DATA.schema, version=version) as writer:
        first = writer.add_global_buffer(b"first")
        writer.write(DATA)
        second = writer.add_global_buffer(b"second")
        writer.add_schema_metadata("k", "v")
    reader = LanceFileReader(str(path))
    found = reader.read_all().to_table()
    assert found.to_pylist() == DATA.to_pylist()
    assert reader.metadata().schema.metadata == {b"k": b"v"}
    assert reader.read_global_buffer(first) == b"first"
    assert reader.read_global_buffer(second) == b"second"


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_we_read_a_file_of_pylance(version: str, tmp_path: Path) -> None:
    path = tmp_path / "one.lance"
    with LanceFileWriter(str(path), DATA.schema, version=version) as writer:
        first = writer.add_global_buffer(b"first")
        writer.write_batch(DATA)
        second = writer.add_global_buffer(b"second")
        writer.add_schema_metadata("k", "v")
    file = open_file(path)
    assert file.read().to_pylist() == DATA.to_pylist()
    assert file.schema.metadata == {b"k": b"v"}
    assert file.read_global_buffer(first) == b"first"
    assert file.read_global_buffer(second) == b"second"
