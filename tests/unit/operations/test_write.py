"""Batches become fragments: files roll, and nothing stays when something fails."""

import errno
import os
import pickle

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import InputError, SchemaError, StoreError
from lancetable.file.model import file_version
from lancetable.format.schema.types import schema_from_arrow
from lancetable.fragment.write.writer import (
    WriteOptions,
    WriteTarget,
    new_file_name,
    remove_fragments,
    write_fragments,
)
from lancetable.operations.input.fit import fit
from lancetable.operations.input.sources import read_source
from lancetable.operations.input.write import WriteTask, needed_version, write_part, write_source
from lancetable.operations.run.runner import Threads
from lancetable.store.memory import MemoryStore

TABLE = pa.table({"a": pa.array(range(1000), pa.int64()), "b": [f"text {n}" for n in range(1000)]})
SCHEMA = schema_from_arrow(TABLE.schema)


def rows(fragments):
    return [fragment.physical_rows for fragment in fragments]


def test_names_are_binary_digits_then_hex():
    names = {new_file_name() for _ in range(50)}
    assert len(names) == 50
    for name in names:
        stem = name.removesuffix(".lance")
        assert len(stem) == 50
        assert set(stem[:24]) <= {"0", "1"}
        int(stem[24:], 16)


@pytest.mark.parametrize("batch_rows", [1, 7, 100, 1000])
def test_files_roll_at_a_number_of_rows(batch_rows):
    store = MemoryStore()
    batches = TABLE.slice(0, 100).to_batches(max_chunksize=batch_rows)
    made = write_fragments(batches, SCHEMA, WriteTarget(store), WriteOptions(max_rows_per_file=30))
    assert rows(made) == [30, 30, 30, 10]
    assert {f"data/{one.files[0].path}" for one in made} == set(store.objects)
    for one in made:
        file = one.files[0]
        assert (one.id, file.fields, file.column_indices) == (0, (0, 1), (0, 1))
        assert (file.major, file.minor) == (2, 1)
        assert file.size == len(store.objects[f"data/{file.path}"])


def test_files_roll_at_a_number_of_bytes():
    wide = pa.table({"v": pa.array([[0.5] * 256] * 4000, pa.list_(pa.float32(), 256))})
    store = MemoryStore()
    made = write_fragments(
        wide.to_batches(),
        schema_from_arrow(wide.schema),
        WriteTarget(store),
        WriteOptions(max_bytes_per_file=1_000_000, page_bytes=100_000),
    )
    assert sum(rows(made)) == 4000
    assert len(made) >= 4
    assert all(len(content) < 1_400_000 for content in store.objects.values())


@pytest.mark.parametrize("limit", [1, 1000])
def test_a_limit_below_a_row_gives_a_file_per_batch(limit):
    wide = pa.table({"v": pa.array([[0.5] * 256] * 300, pa.list_(pa.float32(), 256))})
    made = write_fragments(
        wide.to_batches(max_chunksize=100),
        schema_from_arrow(wide.schema),
        WriteTarget(MemoryStore()),
        WriteOptions(max_bytes_per_file=limit),
    )
    assert rows(made) == [100, 100, 100]


def test_without_rows_there_is_no_file():
    store = MemoryStore()
    batches = [TABLE.to_batches()[0].slice(0, 0)]
    assert write_fragments(batches, SCHEMA, WriteTarget(store), WriteOptions()) == []
    assert not store.objects


def test_an_error_in_the_middle_removes_all_files(tmp_path):
    def batches():
        yield from TABLE.to_batches(max_chunksize=100)
        raise KeyError("the source broke")

    store = lt.store.LocalStore(str(tmp_path))
    with pytest.raises(KeyError, match="the source broke"):
        write_fragments(batches(), SCHEMA, WriteTarget(store), WriteOptions(max_rows_per_file=150))
    assert list(store.list("")) == []


@pytest.mark.parametrize("good_writes", [0, 1, 2])
def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path, monkeypatch, good_writes):
    real, left = os.writev, [good_writes]

    def writev(descriptor, parts):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        return real(descriptor, parts)

    store = lt.store.LocalStore(str(tmp_path))
    monkeypatch.setattr(os, "writev", writev)
    with pytest.raises(StoreError, match="No space left"):
        write_fragments(
            TABLE.to_batches(), SCHEMA, WriteTarget(store), WriteOptions(max_rows_per_file=400)
        )
    assert list(store.list("")) == []


def test_a_column_that_the_version_cannot_hold_leaves_no_file():
    store = MemoryStore()
    schema = schema_from_arrow(
        pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    )
    with pytest.raises(SchemaError, match="generation"):
        write_fragments(
            [pa.record_batch({"b": pa.array([b"x"], pa.large_binary())})],
            schema,
            WriteTarget(store),
            WriteOptions(storage_version="2.2"),
        )
    assert not store.objects


def test_large_tables_in_memory_are_written_by_several_threads():
    store = MemoryStore()
    source = read_source(TABLE)
    fitted = fit(source.schema, SCHEMA)
    options = WriteOptions(max_rows_per_file=300)
    made = write_source(source, fitted, WriteTarget(store), options, Threads(3))
    assert rows(made) == [300, 300, 300, 100]
    assert len(store.objects) == 4


class Breaking:
    """A runner that runs all tasks but the third."""

    def map(self, step, tasks):
        for number, task in enumerate(tasks):
            if number == 2:
                raise StoreError("a worker was lost")
            yield step(task)


def test_when_a_part_fails_the_others_are_removed():
    store = MemoryStore()
    source = read_source(TABLE)
    with pytest.raises(StoreError, match="lost"):
        write_source(
            source,
            fit(source.schema, SCHEMA),
            WriteTarget(store),
            WriteOptions(max_rows_per_file=300),
            Breaking(),
        )
    assert not store.objects


def test_a_task_can_be_sent(tmp_path):
    store = lt.store.LocalStore(str(tmp_path))
    task = WriteTask(TABLE.slice(0, 10), SCHEMA, WriteTarget(store), WriteOptions())
    made = write_part(pickle.loads(pickle.dumps(task)))
    assert rows(made) == [10]
    remove_fragments(made, WriteTarget(store))
    assert list(store.list("")) == []


@pytest.mark.parametrize("version", ["0.1", "legacy"])
def test_files_of_the_oldest_version_are_only_read(version):
    with pytest.raises(lt.InputError, match=r"read but not written; use storage_version='2.0'"):
        WriteOptions(storage_version=version)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_rows_per_file": 0},
        {"max_bytes_per_file": -1},
        {"page_bytes": 0},
        {"storage_version": "0.1"},
        {"storage_version": "3.0"},
    ],
)
def test_options_are_checked(wrong):
    with pytest.raises(InputError):
        WriteOptions(**wrong)


def test_versions_are_parsed():
    assert file_version("2.0") == (2, 0)
    with pytest.raises(InputError, match=r"2\.0, 2\.1, 2\.2"):
        file_version("next")


@pytest.mark.parametrize(
    ("field", "version"),
    [
        (pa.field("a", pa.int64()), "2.1"),
        (pa.field("m", pa.map_(pa.string(), pa.int64())), "2.2"),
        (pa.field("l", pa.list_(pa.map_(pa.string(), pa.int64()))), "2.2"),
        (
            pa.field(
                "p", pa.struct([("x", pa.int8())]), metadata={"lance-encoding:packed": "true"}
            ),
            "2.1",
        ),
        (
            pa.field(
                "p", pa.struct([("x", pa.string())]), metadata={"lance-encoding:packed": "true"}
            ),
            "2.2",
        ),
    ],
)
def test_a_new_table_gets_the_version_its_schema_needs(field, version):
    assert needed_version(schema_from_arrow(pa.schema([field]))) == version
