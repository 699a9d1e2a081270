"""Rows of golden fragments: system columns, deletions, several files."""

import numpy as np
import pyarrow as pa
import pytest

from lancetable.commit import load
from lancetable.errors import CorruptError
from lancetable.fragment.projection import (
    CREATED_AT,
    LAST_UPDATED_AT,
    ROW_ADDRESS,
    ROW_ID,
    ROW_OFFSET,
    Projection,
)
from lancetable.fragment.readers import Readers
from lancetable.store import TableLocation


def readers_of(golden, name, version=None):
    return Readers(load(TableLocation(str(golden / "table" / name)), version=version))


def values(columns):
    return [[value for chunk in column for value in chunk.to_pylist()] for column in columns]


def test_deleted_rows_are_left_out_and_offsets_stay(golden):
    readers = readers_of(golden, "delete_arrow.lance", 2)
    deletions = readers[0].opened.deletions
    rows = readers[0].opened.rows

    (addresses,) = values(readers[0].read_live(Projection([], [ROW_ADDRESS]), 0, rows))

    assert len(deletions) > 0
    assert addresses == [row for row in range(rows) if row not in deletions.offsets.tolist()]


def test_row_offset_runs_over_live_rows_of_all_fragments(golden):
    readers = readers_of(golden, "delete_arrow.lance", 2)
    numbers = []
    for position in range(len(readers)):
        rows = readers[position].opened.rows
        numbers += values(readers[position].read_live(Projection([], [ROW_OFFSET]), 0, rows))[0]

    assert numbers == list(range(readers.starts[-1]))


def test_live_rows_by_range_and_one_by_one_are_the_same(golden):
    readers = readers_of(golden, "delete_arrow.lance", 2)
    opened = readers[0].opened
    schema = readers.source.manifest.schema
    live = readers[0].live_offsets(0, opened.rows)

    read = values(readers[0].read(Projection(schema.fields[:1]), live))

    assert read == values(readers[0].read_live(Projection(schema.fields[:1]), 0, opened.rows))
    assert len(live) == readers[0].live_rows_within(0, opened.rows)


def test_locate_agrees_with_the_scan_order(golden):
    readers = readers_of(golden, "delete_arrow.lance", 2)
    places = [readers.locate(row) for row in range(readers.starts[-1])]
    expected = [
        (position, offset)
        for position in range(len(readers))
        for offset in readers[position].live_offsets(0, readers[position].opened.rows).tolist()
    ]

    assert places == expected


def test_versions_are_one_when_none_are_stored(golden):
    readers = readers_of(golden, "plain_append.lance")

    read = values(readers[0].read(Projection([], [CREATED_AT, LAST_UPDATED_AT]), range(2)))

    assert read == [[1, 1], [1, 1]]


def test_spilled_row_ids_come_from_a_hidden_column(golden):
    readers = readers_of(golden, "stable_rowids_spilled.lance")
    expected = pa.ipc.open_file(
        max((golden / "table").glob("stable_rowids_spilled.v*.expected.arrow"))
    ).read_all()
    ids = []
    for position in range(len(readers)):
        rows = readers[position].opened.rows
        ids += values(readers[position].read_live(Projection([], [ROW_ID]), 0, rows))[0]

    assert ids == expected[ROW_ID].to_pylist()


def test_every_stable_row_id_leads_back_to_its_row(golden):
    readers = readers_of(golden, "stable_rowids.lance")
    for position in range(len(readers)):
        rows = readers[position].opened.rows
        ids, addresses = values(
            readers[position].read_live(Projection([], [ROW_ID, ROW_ADDRESS]), 0, rows)
        )
        found, is_known = readers.row_id_index.find(np.array(ids, np.uint64))

        assert is_known.all()
        assert found.tolist() == addresses


def test_a_deleted_offset_beyond_the_fragment_is_refused(golden):
    readers = readers_of(golden, "legacy_0_25_2_rowids.lance", 4)

    with pytest.raises(CorruptError, match="row 7 is deleted"):
        readers[0].read_live(Projection([], [ROW_ADDRESS]), 0, 1)


def test_a_file_with_another_number_of_rows_is_refused(golden):
    source = load(TableLocation(str(golden / "table" / "plain_append.lance")), version=1)
    (fragment,) = source.manifest.fragments
    readers = Readers(source)
    readers[0].opened._rows = fragment.physical_rows + 1

    with pytest.raises(CorruptError, match=f"has 11 rows, this file has {fragment.physical_rows}"):
        readers[0].read(Projection(source.manifest.schema.fields), range(1))
