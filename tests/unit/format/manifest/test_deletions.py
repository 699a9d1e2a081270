"""Deletion files of both kinds."""

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.deletions import decode_deletions
from lancetable.format.manifest.model import DeletionKind

offsets = st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=50)


def arrow_file(column, *, compression="zstd", name="row_id"):
    sink = io.BytesIO()
    batch = pa.record_batch([column], names=[name])
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


@given(offsets, st.sampled_from([pa.uint32(), pa.int32()]), st.sampled_from([None, "zstd", "lz4"]))
def test_arrow_files_hold_offsets_in_any_order(rows, kind, compression):
    data = arrow_file(pa.array(rows, kind), compression=compression)
    found = decode_deletions(data, DeletionKind.ARROW, deleted_rows=len(rows))
    assert found.dtype == np.uint32
    assert found.tolist() == sorted(rows)


@given(offsets)
def test_bitmap_files(rows):
    data = BitMap(rows).serialize()
    found = decode_deletions(data, DeletionKind.BITMAP, physical_rows=2**31)
    assert found.tolist() == sorted(rows)


def test_a_file_of_the_reference_writer(golden):
    folder = golden / "history.lance/_deletions"
    for path in folder.iterdir():
        found = decode_deletions(path.read_bytes(), DeletionKind.ARROW)
        assert found.tolist() == sorted(
            pa.ipc.open_file(path.read_bytes()).read_all()[0].to_pylist()
        )


@pytest.mark.parametrize(
    ("column", "numbers", "word"),
    [
        (pa.array([1, 2], pa.uint32()), {"deleted_rows": 3}, "3 deleted rows"),
        (pa.array([1, 7], pa.uint32()), {"physical_rows": 7}, "row 7"),
        (pa.array([1, 1], pa.uint32()), {}, "twice"),
        (pa.array([1, None], pa.uint32()), {}, "null"),
        (pa.array([-1], pa.int32()), {}, "row -1"),
        (pa.array(["a"]), {}, "one column"),
        (pa.array([1], pa.uint16()), {}, "32 bits"),
        (pa.array([1, 2, 3], pa.uint32()), {"physical_rows": 2}, "at most 2"),
    ],
)
def test_contents_that_contradict_the_manifest(column, numbers, word):
    with pytest.raises(CorruptError, match=word):
        decode_deletions(arrow_file(column), DeletionKind.ARROW, **numbers)


def test_a_buffer_that_expands_absurdly_is_not_expanded():
    many = arrow_file(pa.array(np.zeros(4_000_000, np.uint32)))
    assert len(many) < 20_000
    with pytest.raises(CorruptError, match="at most"):
        decode_deletions(many, DeletionKind.ARROW, physical_rows=100)
    few = bytearray(many)
    rows = few.find((4_000_000).to_bytes(8, "little"))
    while rows >= 0:
        few[rows : rows + 8] = (50).to_bytes(8, "little")
        rows = few.find((4_000_000).to_bytes(8, "little"))
    with pytest.raises(CorruptError, match="claims to expand to 16000000"):
        decode_deletions(bytes(few), DeletionKind.ARROW, physical_rows=100)


@given(st.data())
def test_damage_is_noticed_or_harmless(data):
    good = arrow_file(pa.array(range(0, 3000, 3), pa.uint32()))
    bytes_ = bytearray(good)
    place = data.draw(st.integers(0, len(bytes_) - 1))
    bytes_[place] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(bytes_), bytes(bytes_[:place])):
        try:
            found = decode_deletions(damaged, DeletionKind.ARROW, physical_rows=3000)
        except (CorruptError, UnsupportedError):
            continue
        assert found.size <= 3000
