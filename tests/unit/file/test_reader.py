"""One data file: what it refuses, and how few bytes it asks for."""

from pathlib import Path

import numpy as np
import pytest

from lancetable.errors import CorruptError, InputError, SchemaError, UnsupportedError
from lancetable.file import DataFileHandle, FileReader, open_file
from lancetable.store import MemoryFile
from tests.handmade import Column, Layout, Page, data_file, flat, handle
from tests.same import assert_same_table
from tests.unmapped import CountingFile

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "file"
FILES = sorted(GOLDEN.glob("2*/*.lance"))


def _ids(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", FILES, ids=_ids)
def test_files_far_away_give_the_same_rows(path: Path) -> None:
    data = path.read_bytes()
    near = DataFileHandle(FileReader.open(MemoryFile(data), path.name))
    far = DataFileHandle(FileReader.open(CountingFile(data), path.name))
    assert_same_table(far.read(), near.read())
    if near.rows:
        rows = [near.rows - 1, 0, near.rows // 2, near.rows // 3]
        assert_same_table(far.take(rows), near.take(rows))


def big_file(rows: int = 200_000) -> bytes:
    """A file with two columns of plain int64 values in mini-blocks of 512."""
    values = np.arange(rows, dtype="<i8")
    header = b"\0\0" + (4096).to_bytes(4, "little") + b"\xfe\xfe"
    chunks = b"".join(
        header + values[start : start + 512].tobytes() for start in range(0, rows, 512)
    )
    count = rows // 512
    words = np.full(count, ((4104 // 8) - 1) << 4 | 9, "<u4")
    layout = Layout(
        mini_block_layout={
            "value_compression": flat(64),
            "layers": [1],
            "num_items": rows,
            "num_buffers": 1,
            "has_large_chunk": True,
        }
    )
    page = Page(rows, layout, [words.tobytes(), chunks])
    fields = [Column("a", "int64"), Column("b", "int64")]
    return data_file("2.2", fields, [[page], [page]], rows)


def test_a_few_rows_of_a_far_file_cost_a_few_chunks() -> None:
    rows = 512 * 400
    data = big_file(rows)
    file = CountingFile(data)
    opened = DataFileHandle(FileReader.open(file, "far.lance"))
    wanted = [7, rows - 1, 100_000]
    assert opened.take(wanted, ["a"]).column("a").to_pylist() == wanted
    # The tail, the chunk words of one column, and three chunks.
    assert file.bytes_read < 64 * 1024 + 400 * 4 + 3 * 4104 + 1000
    assert file.rounds <= 4


def test_one_column_of_a_far_file_costs_one_column() -> None:
    data = big_file(512 * 400)
    file = CountingFile(data)
    opened = DataFileHandle(FileReader.open(file, "far.lance"))
    assert opened.read(["b"]).column("b").to_numpy()[-1] == 512 * 400 - 1
    assert file.bytes_read < len(data) // 2 + 70 * 1024


def test_rows_behind_the_end_are_refused() -> None:
    opened = open_file(str(GOLDEN / "2.1" / "tiny.lance"))
    for rows in ([opened.rows], [-1], [0, 1 << 40]):
        with pytest.raises(InputError):
            opened.take(rows)


def test_unknown_columns_are_refused_by_name() -> None:
    opened = open_file(str(GOLDEN / "2.1" / "tiny.lance"))
    with pytest.raises(SchemaError, match="nonsense"):
        opened.read(["nonsense"])


def test_later_versions_are_refused_by_name() -> None:
    data = bytearray((GOLDEN / "2.2" / "tiny.lance").read_bytes())
    data[-6:-4] = (3).to_bytes(2, "little")
    with pytest.raises(UnsupportedError, match=r"2\.3"):
        handle(bytes(data))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.lance"
    path.write_bytes(b"PAR1" * 100)
    with pytest.raises(CorruptError, match="LANC"):
        open_file(str(path))
