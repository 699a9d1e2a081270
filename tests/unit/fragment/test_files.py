"""How many data files stay open, and which versions are read."""

import gc
import weakref
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancetable
from lancetable.commit import Snapshot
from lancetable.errors import CorruptError, FileNotFoundInStoreError, UnsupportedError
from lancetable.format.manifest.model import DataFile, Fragment, Manifest
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.files import BUDGET, MAPPED_WEIGHT, DataFiles, OpenFiles
from lancetable.fragment.projection import Projection
from lancetable.fragment.readers import Readers
from lancetable.store import TableLocation
from lancetable.store.memory import MemoryStore

ID = Field("id", 0, "int64")


def snapshot(*files: DataFile, rows: int = 1) -> Snapshot:
    fragment = Fragment(3, files, physical_rows=rows)
    manifest = Manifest(version=7, schema=Schema((ID,)), fragments=(fragment,))
    store = MemoryStore({"data/empty.lance": b""})
    return Snapshot(TableLocation("memory"), store, manifest, "_versions/7.manifest")


def opened_files(budget: int = BUDGET) -> Any:
    """Return a cache that is given plain names in place of readers."""
    return OpenFiles(budget)


def test_the_oldest_file_is_closed_first():
    files = opened_files(budget=2 * MAPPED_WEIGHT)
    for name in ("a", "b"):
        files.add((None, name), name, 10**9)
    assert files.find((None, "a")) == "a"

    files.add((None, "c"), "c", 10**9)

    assert files.find((None, "b")) is None
    assert files.find((None, "a")) == "a"
    assert len(files) == 2


def test_small_files_count_by_their_bytes():
    files = opened_files(budget=MAPPED_WEIGHT)
    for number in range(100):
        files.add((None, str(number)), number, 1000)

    assert len(files) == 100


def test_a_file_that_was_let_go_is_opened_again():
    files = opened_files()
    files.add((None, "a"), "first", 5)
    files.forget((None, "a"))

    assert files.add((None, "a"), "second", 5) == "second"


def test_a_newer_file_version_is_refused_by_name():
    source = snapshot(DataFile("empty.lance", (0,), (0,), 2, 3))

    with pytest.raises(UnsupportedError, match=r"version 2\.3"):
        Readers(source)[0].read(Projection([ID]), range(1))


def test_a_missing_file_names_fragment_and_version():
    source = snapshot(DataFile("gone.lance", (0,), (0,), 2, 1))

    with pytest.raises(FileNotFoundInStoreError, match=r"gone\.lance: version 7 .* fragment 3"):
        Readers(source)[0].read(Projection([ID]), range(1))


def test_unequal_lists_of_fields_and_columns_are_refused():
    source = snapshot(DataFile("empty.lance", (0, 1), (0,), 2, 1))

    with pytest.raises(CorruptError, match="2 fields but 1 column"):
        DataFiles(source).get(source.manifest.fragments[0], source.manifest.fragments[0].files[0])


def test_rows_without_files_are_null():
    reader = Readers(snapshot(rows=4))[0]

    (column,) = reader.read(Projection([ID]), range(1, 3))

    assert [chunk.to_pylist() for chunk in column] == [[None, None]]


def test_a_file_that_is_let_go_is_closed_at_once(tmp_path: Path) -> None:
    """One that held itself would stay mapped until garbage is collected, and add up in a stream."""
    table = lancetable.create_table(tmp_path / "t", pa.table({"id": range(10), "s": ["x"] * 10}))
    fragment = table.fragments[0]
    files = DataFiles(table._snapshot)
    fields = list(table._snapshot.manifest.schema.fields)
    gc.disable()
    try:
        reader = files.get(fragment, fragment.files[0])
        reader.read(fields, range(10))
        gone = weakref.ref(reader)
        del reader
        assert gone() is not None
        files.release(fragment.files[0])
        assert gone() is None
    finally:
        gc.enable()
