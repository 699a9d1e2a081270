"""Writing manifests, sequences of row numbers and deletion files."""

import pickle
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import UnsupportedError
from lancetable.format.manifest import (
    DataFile,
    DeletionFile,
    DeletionKind,
    Fragment,
    Manifest,
    WriterVersion,
)
from lancetable.format.manifest.codec import decode_manifest, encode_manifest, live_rows
from lancetable.format.manifest.deletions import choose_kind, decode_deletions, encode_deletions
from lancetable.format.manifest.envelope import manifest_message, seal, section
from lancetable.format.manifest.flags import Feature, check_writable
from lancetable.format.manifest.fragments import EditedFragments
from lancetable.format.manifest.rowids import (
    decode_row_ids,
    decode_versions,
    encode_row_ids,
    encode_versions,
)
from lancetable.format.manifest.rowids.expand import choose_segment
from lancetable.format.manifest.rowids.segments import (
    Listed,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
)
from lancetable.format.manifest.rowids.sequences import (
    extended_versions,
    id_count,
    id_range,
    joined_ids,
    same_version,
    version_count,
)
from lancetable.format.proto import table_pb2
from lancetable.format.schema import DictionaryPage, Field, Schema

SCHEMA = Schema((Field("a", 0, "int64"),))


def fragment(id_, rows=10, deletion=None):
    return Fragment(id_, (DataFile(f"{id_}.lance", (0,), (0,), 2, 1, 9),), deletion, rows)


def stored(*fragments):
    manifest = Manifest(1, SCHEMA, fragments, writer=WriterVersion("lance", "14.0.2"))
    return read(encode_manifest(manifest, "p", index_section=None, transaction=None))


def read(encoded):
    return decode_manifest(encoded.content, "p")


def written(manifest):
    return encode_manifest(manifest, "p", index_section=None, transaction=None)


def test_sections_and_their_positions():
    manifest = Manifest(
        7,
        SCHEMA,
        (fragment(0),),
        timestamp=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        writer=WriterVersion("me", "1.2", "rc.1", "x86"),
        branch="dev",
        max_fragment_id=0,
        max_allocated_field_id=0,
    )
    made = encode_manifest(manifest, "p", index_section=b"idx", transaction=b"tx")
    found = read(made)
    assert (found.index_section, found.transaction_section) == (0, 7)
    assert bytes(section(made.content, 0, "i")) == b"idx"
    assert bytes(section(made.content, 7, "t")) == b"tx"
    message = table_pb2.Manifest.FromString(manifest_message(made.content))
    assert (message.transaction_section, message.current_transaction_section) == (7, 7)
    assert (found.timestamp, found.writer) == (manifest.timestamp, manifest.writer)
    assert (found.branch, found.max_fragment_id, found.max_allocated_field_id) == ("dev", 0, 0)
    assert made.manifest == found._replace(config=None, table_metadata=None)


@pytest.mark.parametrize("reopen", [True, False])
def test_edits_of_stored_fragments(reopen):
    manifest = stored(fragment(1), fragment(3), fragment(5))
    gone = DeletionFile(DeletionKind.ARROW, 1, 2, 4)
    edits: list[dict[str, Any]] = [
        {"added": (fragment(7), fragment(8))},
        {"changed": {3: fragment(3, 10, gone)}},
        {"removed": frozenset({1}), "added": (fragment(4),)},
        {"added": (fragment(2),)},
        {},
        {"removed": frozenset({2, 3, 4, 5, 7, 8})},
        {"added": (fragment(9),)},
    ]
    expected = {one.id: one for one in manifest.fragments}
    for edit in edits:
        edited = EditedFragments(manifest.fragments, **edit)
        expected.update(edit.get("changed", {}))
        expected = {id_: one for id_, one in expected.items() if id_ not in edited.removed}
        expected.update({one.id: one for one in edit.get("added", ())})
        made = written(manifest._replace(fragments=edited))
        wanted = [expected[id_] for id_ in sorted(expected)]
        assert list(edited) == list(made.manifest.fragments) == list(read(made).fragments) == wanted
        assert len(made.manifest.fragments) == len(edited) == len(wanted)
        assert pickle.loads(pickle.dumps(edited)) == tuple(wanted)
        assert live_rows(made.manifest) == live_rows(read(made))
        manifest = read(made) if reopen else made.manifest


def test_many_appends_need_no_look_at_old_fragments():
    manifest = stored(*(fragment(id_) for id_ in range(50)))
    for id_ in range(50, 55):
        edited = EditedFragments(manifest.fragments, added=(fragment(id_),))
        manifest = written(manifest._replace(fragments=edited)).manifest
    assert [one.id for one in manifest.fragments] == list(range(55))
    assert manifest.fragments[52] == fragment(52)


def test_counts_that_old_writers_got_wrong_are_not_passed_on():
    wrong = table_pb2.Manifest(version=1)
    one = wrong.fragments.add(id=0, physical_rows=99)
    one.deletion_file.num_deleted_rows = 98
    old = decode_manifest(seal(b"", wrong.SerializeToString()), "p")
    assert live_rows(old) is None
    writer = WriterVersion("lancetable", "1")
    edited = EditedFragments(old.fragments, added=(fragment(1),))
    for fragments in (edited, old.fragments):
        made = read(written(old._replace(fragments=fragments, writer=writer)))
        assert live_rows(made) is None
        assert made.fragments[0].physical_rows == 0


def test_dictionaries_inside_the_manifest_cannot_be_written():
    field = Field("d", 0, "dict:string:int8:false", dictionary=DictionaryPage(5, 1))
    with pytest.raises(UnsupportedError, match="'d' are kept in the manifest"):
        written(Manifest(1, Schema((field,)), ()))


def test_writer_flags():
    check_writable(0, int(Feature.MIXED_FILE_VERSIONS | Feature.LASTING_FIELD_IDS))
    with pytest.raises(UnsupportedError, match="writer feature flag 64 "):
        check_writable(0, 64 | 1)


@pytest.mark.parametrize(
    ("ids", "form"),
    [
        ([], Range),
        ([5, 6, 7], Range),
        ([*range(100), *range(101, 200)], RangeWithHoles),
        (list(range(0, 400, 2)), RangeWithBitmap),
        ([0, 1000, 3000], Listed),
        ([3, 1, 2], Listed),
    ],
)
def test_the_smallest_form_is_chosen(ids, form):
    chosen = choose_segment(np.array(ids, np.uint64))
    assert isinstance(chosen, form)
    assert not isinstance(chosen, Listed) or chosen.is_sorted == (ids == sorted(ids))


@given(st.lists(st.integers(0, 2**64 - 2), max_size=40, unique=True) | st.permutations(range(30)))
def test_row_ids_there_and_back(ids):
    values = np.array(ids, np.uint64)
    data = encode_row_ids(values)
    assert decode_row_ids(data, len(ids)).tolist() == ids
    assert id_count(data) == len(ids)
    both = joined_ids([data, id_range(7, 3), data])
    assert decode_row_ids(both).tolist() == [*ids, 7, 8, 9, *ids]


@given(st.lists(st.integers(0, 5), max_size=40))
def test_versions_there_and_back(versions):
    data = encode_versions(np.array(versions, np.uint64))
    assert decode_versions(data, len(versions)).tolist() == versions
    assert version_count(data) == len(versions)
    longer = extended_versions(data, 2, 9)
    assert decode_versions(longer, len(versions) + 2).tolist() == [*versions, 9, 9]
    assert extended_versions(data, 0, 9) == data
    assert decode_versions(same_version(3, 4), 3).tolist() == [4, 4, 4]


@given(st.sets(st.integers(0, 200_000), max_size=60), st.sampled_from(DeletionKind))
def test_deletions_there_and_back(offsets, kind):
    values = np.array(sorted(offsets), np.uint32)
    data = encode_deletions(values, kind)
    found = decode_deletions(data, kind, deleted_rows=len(offsets), physical_rows=200_001)
    assert found.tolist() == sorted(offsets)


def test_a_deletion_file_is_an_ordinary_arrow_file():
    data = encode_deletions(np.arange(3000, dtype=np.uint32), DeletionKind.ARROW)
    table = pa.ipc.open_file(data).read_all()
    assert table.schema == pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
    assert table["row_id"].to_pylist() == list(range(3000))


@pytest.mark.parametrize(
    ("rows", "previous", "expected"),
    [
        (4_999, None, DeletionKind.ARROW),
        (5_000, None, DeletionKind.BITMAP),
        (5_000, DeletionKind.ARROW, DeletionKind.ARROW),
        (5_001, DeletionKind.ARROW, DeletionKind.BITMAP),
        (1, DeletionKind.BITMAP, DeletionKind.BITMAP),
    ],
)
def test_the_kind_of_deletion_file(rows, previous, expected):
    assert choose_kind(rows, previous) is expected
