"""Sources larger than memory: divided by key on disk, and merged with the same result."""

import datetime as dt
import errno
import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable
from lancetable.errors import InputError, StoreError
from lancetable.operations.keys import spill
from lancetable.operations.keys.keys import comparable
from lancetable.operations.keys.spill import RowBuffer, kept_step, kept_type
from lancetable.operations.merge.clauses import Act, Clause, When
from lancetable.operations.merge.run import MergeOptions, merge
from lancetable.operations.rows.parts import RowSet
from tests.unit.operations.everywhere import fail_everywhere


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, tmp_path):
    """Let parts be as small as a limit asks for, and watch the folder for files."""
    monkeypatch.setattr(spill, "LEAST_BYTES", 1)
    folder = tmp_path / "spilled"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def batches(count, at_a_time=100):
    for first in range(0, count, at_a_time):
        numbers = range(first, min(first + at_a_time, count))
        keys = [None if n % 11 == 0 else n % 300 for n in numbers]
        yield pa.record_batch({"k": pa.array(keys, pa.int64()), "n": list(numbers)})


SCHEMA = next(batches(1)).schema


def keys(batch):
    return [comparable(batch.column("k"), "k")]


def all_rows(parts):
    return [
        row for part in parts for batch in part.batches(["k", "n"]) for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("limit", [500, 3_000, 20_000, 10**9])
def test_every_row_is_in_one_part_and_every_key_too(limit, small_parts):
    parts = spill.keep(SCHEMA, batches(2000), limit, keys=keys)
    assert sorted(row["n"] for row in all_rows(parts)) == list(range(2000))
    seen = [{row["k"] for row in all_rows([part])} - {None} for part in parts]
    assert sum(map(len, seen)) == len(set().union(*seen))
    assert (len(parts) == 1) == (limit == 10**9)
    # The files have no names from the first moment on.
    assert list(small_parts.iterdir()) == []


def test_parts_fit_into_the_limit_unless_they_hold_one_key():
    limit = 20_000
    parts = spill.keep(SCHEMA, batches(5000), limit, keys=keys)
    assert all(part.rows * spill.ROW_BYTES < limit for part in parts)
    same = (pa.record_batch({"k": [7] * 100, "n": range(100)}) for _ in range(20))
    (part,) = spill.keep(SCHEMA, same, limit, keys=keys)
    assert part.rows == 2000


def test_without_keys_there_is_one_part():
    (part,) = spill.keep(SCHEMA, batches(1000), 1000)
    assert [row["n"] for row in all_rows([part])] == list(range(1000))
    taken = part.take(np.array([999, 0, 500]), ["n"])
    assert taken.to_pylist() == [{"n": 999}, {"n": 0}, {"n": 500}]
    part.release()
    assert pickle.loads(pickle.dumps(part)).rows == 1000


def test_an_error_of_the_source_comes_through(small_parts):
    def broken():
        yield from batches(500)
        raise OSError("the source broke")

    with pytest.raises(OSError, match="the source broke"):
        spill.keep(SCHEMA, broken(), 1000, keys=keys)
    assert list(small_parts.iterdir()) == []


def test_a_full_disk_is_told(monkeypatch, small_parts):
    table = lancetable.create_table(small_parts.parent / "t", {"k": [1], "n": [1]})
    merge = table.merge(batches(500), on="k").when_not_matched_insert_all().with_duplicates()
    with pytest.raises(StoreError, match="cannot be spilled"):
        merge.with_memory(1000, spill_folder=str(small_parts / "nowhere")).execute()

    class Full:
        closed = False

        def __init__(self, **_):
            pass

        def write(self, _):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def flush(self):
            pass

        def close(self):
            pass

    monkeypatch.setattr("lancetable.operations.keys.spill.tempfile.TemporaryFile", Full)
    with pytest.raises(StoreError, match="No space left on device; make room"):
        table.merge(batches(500), on="k").when_matched_delete().with_memory(1000).execute()
    assert table.version == 1


def test_types_that_arrow_takes_no_rows_of_are_kept_plain():
    values = ["a", None, "bb"]
    for array in (
        pa.array(values, pa.string_view()),
        pa.array([b"a", None, b"bb"], pa.binary_view()),
        pa.array(values).dictionary_encode(),
        pc.run_end_encode(pa.array([1, 1, None], pa.int64())),
        pa.array([["a"], None, ["b", None]], pa.list_(pa.string_view())),
        pa.array([{"x": "a"}, None, {"x": None}], pa.struct([("x", pa.string_view())])),
        pa.array([[1], None, []], pa.list_view(pa.int64())),
    ):
        step = kept_step("c", array.type)
        assert step is not None
        made = step(array)
        assert made.type == kept_type(array.type)
        kept = RowBuffer(pa.schema([("c", made.type)]), [pa.record_batch({"c": made})] * 2)
        wanted = array.to_pylist()
        found = kept.take(np.array([5, 1, 0]), ["c"]).column(0).to_pylist()
        assert found == [wanted[2], wanted[1], wanted[0]]
    assert kept_step("c", pa.int64()) is None


def test_dictionaries_that_differ_are_spilled(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("d", pa.dictionary(pa.int8(), pa.string()))])
    table = lancetable.create_table(tmp_path / "t", schema=schema)

    def source():
        for first in range(0, 60, 20):
            words = pa.array([f"w{first}-{n % 3}" for n in range(20)]).dictionary_encode()
            ids = pa.array(range(first, first + 20), pa.int64())
            columns = [ids, words.cast(schema.field("d").type)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    table.merge(source(), on="id").when_not_matched_insert_all().with_memory(500).execute()
    found = {row["id"]: row["d"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {n: f"w{n // 20 * 20}-{n % 20 % 3}" for n in range(60)}


OFFSETS = st.lists(st.integers(0, 400), unique=True).map(sorted)


@given(OFFSETS, OFFSETS)
def test_rows_are_remembered(first, second):
    rows = RowSet.of(np.array(first, np.int64))
    assert (len(rows), rows.offsets().tolist()) == (len(first), first)
    assert np.asarray(rows, np.uint32).tolist() == first
    joined = rows.union(np.array(second, np.int64))
    assert joined.offsets().tolist() == sorted({*first, *second})
    assert pickle.loads(pickle.dumps(joined)).offsets().tolist() == joined.offsets().tolist()


@pytest.mark.parametrize(
    ("offsets", "most"),
    [(range(10**6), 0), (range(0, 10**6, 2), 125_000), (range(0, 10**6, 1000), 4000)],
)
def test_rows_take_little_memory(offsets, most):
    rows = RowSet.of(np.array(offsets))
    held = [one for one in (rows.bits, rows.numbers) if one is not None]
    assert sum(one.nbytes for one in held) <= most


KEYS = {
    "number": st.none() | st.integers(0, 15),
    "text": st.none() | st.sampled_from([f"key {n}" * (n % 4) for n in range(12)]),
    "day": st.none() | st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 9)),
}
TYPES = {"number": pa.int64(), "text": pa.string(), "day": pa.date32()}
CLAUSES = st.lists(
    st.sampled_from(
        [
            ("matched_update_all", None, None),
            ("matched_update_all", None, "source.v > 0"),
            ("matched_update", {"v": "target.v + source.v"}, "source.s <> 'a'"),
            ("matched_delete", None, "target.v < source.v"),
            ("not_matched_insert_all", None, None),
            ("not_matched_insert_all", None, "source.v > 1"),
            ("not_matched_insert", {"k": "k", "s": "'made'"}, None),
            ("not_matched_by_source_delete", None, "v > 2"),
            ("not_matched_by_source_update", {"s": "s || '!'"}, None),
        ]
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=20)
@given(st.data())
def test_a_limit_changes_nothing_but_memory(kind, data):
    schema = pa.schema([("k", TYPES[kind]), ("v", pa.int64()), ("s", pa.string())])
    row = st.fixed_dictionaries(
        {"k": KEYS[kind], "v": st.integers(-5, 5), "s": st.sampled_from("abc")}
    )
    old = data.draw(st.lists(row, max_size=15))
    new = data.draw(st.lists(row, max_size=20))
    clauses = data.draw(CLAUSES)
    limit = data.draw(st.sampled_from([1, 200, 700]))
    allows = data.draw(st.booleans())

    def outcome(memory_limit):
        with tempfile.TemporaryDirectory() as folder:
            table = lancetable.create_table(f"{folder}/t", schema=schema)
            for part in (old[::2], old[1::2]):
                table.append(pa.Table.from_pylist(part, schema))
            source = (
                pa.RecordBatch.from_pylist(new[at : at + 3], schema) for at in range(0, len(new), 3)
            )
            merge = table.merge(list(source) or pa.Table.from_pylist([], schema), on="k")
            for name, values, condition in clauses:
                add = getattr(merge, f"when_{name}")
                merge = add(condition=condition) if values is None else add(values, condition)
            if allows:
                merge = merge.with_duplicates()
            try:
                result = merge.with_memory(memory_limit).execute()
            except InputError as error:
                assert {path.name for path in Path(folder, "t", "data").iterdir()} == {
                    file.path for one in table.fragments for file in one.files
                }
                return str(error).partition(":")[0].partition(" with the keys")[0]
            found = table.scan().to_arrow().to_pylist()
            counts = (result.inserted, result.updated, result.deleted, table.version)
            return counts, sorted(found, key=repr)

    assert outcome(limit) == outcome(10**9)


def test_a_failure_between_parts_leaves_nothing_behind(tmp_path):
    table = lancetable.create_table(tmp_path / "t", {"id": list(range(20)), "v": [0] * 20})
    clauses = [Clause(When.MATCHED, Act.UPDATE), Clause(When.NOT_MATCHED, Act.INSERT)]
    data = pa.table({"id": range(10, 30), "v": range(20)})
    options = MergeOptions(memory_bytes=500)
    failures = fail_everywhere(table, lambda faulty: merge(faulty, data, ["id"], clauses, options))
    # Several parts write several files each, and all of them are removed.
    assert len(failures) > 20
    found = lancetable.open_table(table.uri).scan().to_arrow().to_pylist()
    assert sorted(row["v"] for row in found) == sorted([0] * 10 + list(range(20)))
