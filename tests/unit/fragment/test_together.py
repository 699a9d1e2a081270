"""Many fragments read as one: the rows that reading them one by one gives, or no answer."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.format.encoding.kernels.tables import ChunkTable
from lancetable.format.encoding.layouts import joined_files
from lancetable.fragment.joined_files import read_live_together
from lancetable.fragment.projection import ROW_ID, Projection
from lancetable.fragment.readers import Readers
from lancetable.fragment.select import Columns

SIZES = (1, 7, 1000, 13, 2048, 4097, 3, 900)
"""Rows of the fragments: bits that end inside of a byte, chunks that are not full."""


def rows_of(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    gaps = rng.random(count) < 0.2
    words = [f"w{number}" * (1 + number % 3) for number in rng.integers(0, 1 << 20, count)]
    few = [f"one of a few words {number}" for number in rng.integers(0, 5, count)]
    return pa.table(
        {
            "packed": pa.array(rng.integers(0, 1000, count), pa.int32()),
            "flat": pa.array(rng.random(count)),
            "bits": pa.array(rng.random(count) < 0.5),
            "text": words,
            "few": few,
            "runs": pa.array(np.sort(rng.integers(0, 3, count)), pa.int64()),
            "gaps": pa.array(rng.integers(0, 99, count), pa.int64(), mask=gaps),
            "gappy": pa.array(words, pa.string(), mask=gaps),
            "constant": pa.array([7] * count, pa.int16()),
            "lists": pa.array(
                [[number] * (number % 3) for number in range(count)], pa.list_(pa.int64())
            ),
            "vector": pa.FixedSizeListArray.from_arrays(rng.random(4 * count, np.float32), 4),
            "point": pa.array(
                [{"x": number, "y": None} for number in range(count)],
                pa.struct({"x": pa.int64(), "y": pa.string()}),
            ),
        }
    )


def make(path: Path, version: str = "2.1") -> lt.Table:
    table = lt.create_table(path, rows_of(SIZES[0], 0), storage_version=version)
    for seed, count in enumerate(SIZES[1:], 1):
        table.append(rows_of(count, seed))
    return table


def read_both(table: lt.Table) -> tuple[Columns | None, Columns, Projection]:
    readers = Readers(table._snapshot)
    every = [readers[position] for position in range(len(readers))]
    projection = Projection(table._snapshot.manifest.schema.fields)
    alone = [each.read_live(projection, 0, each.opened.rows) for each in every]
    expected = [
        [chunk for column in parts for chunk in column] for parts in zip(*alone, strict=True)
    ]
    return read_live_together(every, projection), expected, projection


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("where", [None, "packed % 3 = 1", "packed >= 0 and flat < 0.97"])
def test_the_rows_are_those_of_the_fragments(
    tmp_path: Path, version: str, where: str | None
) -> None:
    table = make(tmp_path / "t", version)
    if where is not None:
        table.delete(where)
    together, alone, projection = read_both(table)
    assert together is not None
    for field, found, expected in zip(projection.fields, together, alone, strict=True):
        assert pa.chunked_array(found).equals(pa.chunked_array(expected)), field.name
        assert len(found) == 1, field.name


def test_pages_described_alike_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lt.create_table(tmp_path / "t", {"a": range(3000)})
    for _ in range(4):
        table.append({"a": range(2500)})
    runs: list[int] = []
    original = joined_files._table

    def counted(pages: Sequence[joined_files.StoredPage], width: int) -> ChunkTable:
        runs.append(len(pages))
        return original(pages, width)

    monkeypatch.setattr(joined_files, "_table", counted)
    together, _, _ = read_both(table)
    assert together is not None
    assert runs == [5]


def test_old_files_and_system_columns_are_read_one_by_one(tmp_path: Path) -> None:
    old = lt.create_table(tmp_path / "old", rows_of(9, 0), storage_version="2.0")
    old.append(rows_of(9, 1))
    assert read_both(old)[0] is None
    readers = Readers(make(tmp_path / "t")._snapshot)
    fields = readers.source.manifest.schema.fields
    assert read_live_together([readers[0], readers[1]], Projection(fields, [ROW_ID])) is None


def test_a_damaged_page_is_named_by_its_file(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", {"a": range(3000)})
    for _ in range(3):
        table.append({"a": range(3000)})
    table.delete("a = 5")
    name = table._snapshot.manifest.fragments[2].files[0].path
    file = tmp_path / "t" / "data" / name
    content = bytearray(file.read_bytes())
    content[:8] = b"\xff" * 8  # the chunk words stand first
    file.write_bytes(content)
    with pytest.raises(lt.CorruptError, match=name):
        lt.open_table(tmp_path / "t").compact()
    assert lt.open_table(tmp_path / "t").version == 5
