"""Manifests from bytes: what is read, what is refused, what is left for later."""

import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancetable.errors import CorruptError, LanceTableError, UnsupportedError
from lancetable.format.manifest import (
    BasePath,
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionKind,
    ExternalSequence,
    InlineSequence,
)
from lancetable.format.manifest.codec import decode_file_names, decode_manifest, live_rows
from lancetable.format.manifest.envelope import seal
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.manifest.indices.codec import decode_index_section
from lancetable.format.proto import file_pb2, table_pb2
from tests.conftest import GOLDEN


def manifest(**more):
    made = table_pb2.Manifest(version=3, **more)
    made.writer_version.library = "lance"
    made.writer_version.version = "14.0.2"
    return made


def fragment(id_=0, **more):
    file = table_pb2.DataFile(path="a.lance", fields=[0], column_indices=[0], file_major_version=2)
    return table_pb2.DataFragment(id=id_, files=[file], **more)


def decoded(message):
    return decode_manifest(seal(b"", message.SerializeToString()), "m")


def test_a_bare_manifest():
    found = decoded(table_pb2.Manifest(version=7))
    assert (found.version, len(found.fragments), found.schema.fields) == (7, 0, ())
    assert (found.timestamp, found.writer, found.branch, found.index_section) == (None,) * 4
    assert found.transaction_section is None
    assert live_rows(found) == 0


def test_everything_that_is_said():
    stored = manifest(
        reader_feature_flags=1,
        writer_feature_flags=9,
        index_section=0,
        transaction_file="1-a.txn",
        max_fragment_id=4,
        next_row_id=9,
        config={"k": "v"},
        table_metadata={"t": "m"},
        schema_metadata={"s": b"x"},
        branch="dev",
        transaction_section=5,
    )
    stored.fields.append(file_pb2.Field(name="a", parent_id=-1, logical_type="int32"))
    stored.timestamp.seconds = 1_700_000_000
    stored.timestamp.nanos = 5_000
    stored.data_format.version = "2.1"
    stored.base_paths.add(id=0, path="/x", is_dataset_root=True)
    found = decoded(stored)
    assert found.timestamp == datetime(2023, 11, 14, 22, 13, 20, 5, tzinfo=UTC)
    assert (found.reader_flags, found.writer_flags, found.max_fragment_id) == (1, 9, 4)
    assert (found.config, found.table_metadata) == ({"k": "v"}, {"t": "m"})
    assert (found.schema.metadata, found.schema.fields[0].name) == ({"s": "x"}, "a")
    assert (found.branch, found.data_format, found.next_row_id) == ("dev", "2.1", 9)
    assert (found.index_section, found.transaction_section) == (0, 5)
    assert found.base_path(0) == BasePath(0, None, "/x", is_dataset_root=True)
    assert found.base_path(1) is None
    assert found.writer is not None
    assert found.writer.text == "lance 14.0.2"


def test_the_newer_place_of_the_transaction_wins():
    both = manifest(transaction_section=5, current_transaction_section=0)
    assert decoded(both).transaction_section == 0


def test_fragments_with_all_their_parts():
    stored = fragment(
        8,
        physical_rows=10,
        inline_row_ids=b"ids",
        external_created_at_versions=table_pb2.ExternalFile(path="x", offset=1, size=2),
        column_last_updated_at_versions=table_pb2.Empty(),
    )
    stored.deletion_file.file_type = 1
    stored.deletion_file.read_version = 2
    stored.deletion_file.id = 2**63 + 5
    stored.deletion_file.num_deleted_rows = 4
    stored.deletion_file.base_id = 0
    found = decoded(manifest(fragments=[stored]))
    (only,) = found.fragments
    assert only.files == (DataFile("a.lance", (0,), (0,), 2),)
    assert only.deletion_file == DeletionFile(DeletionKind.BITMAP, 2, 2**63 + 5, 4, 0)
    assert only.row_ids == InlineSequence(b"ids")
    assert only.created_at == ExternalSequence("x", 1, 2)
    assert only.last_updated_at == ColumnSequence()
    assert live_rows(found) == 6
    assert pickle.loads(pickle.dumps(found)).fragments == (only,)


def test_fragments_behave_like_a_sequence():
    found = decoded(manifest(fragments=[fragment(n, physical_rows=1) for n in range(5)]))
    assert [part.id for part in found.fragments] == [0, 1, 2, 3, 4]
    assert found.fragments[-1].id == 4
    assert [part.id for part in found.fragments[1:3]] == [1, 2]
    assert found.fragments[2] is found.fragments[2]
    with pytest.raises(IndexError):
        found.fragments[5]


def test_counts_that_are_not_known():
    deleted = fragment(physical_rows=5, deletion_file=table_pb2.DeletionFile(id=1))
    assert live_rows(decoded(manifest(fragments=[fragment()]))) is None
    assert live_rows(decoded(manifest(fragments=[deleted]))) is None


def test_counts_of_the_first_releases_are_not_believed():
    stored = manifest(fragments=[fragment(physical_rows=90)])
    assert live_rows(decoded(stored)) == 90
    for version in ("0.8.0", "0.7.5"):
        stored.writer_version.version = version
        assert decoded(stored).fragments[0].physical_rows == 0
        assert live_rows(decoded(stored)) is None
    stored.ClearField("writer_version")
    assert live_rows(decoded(stored)) is None


@pytest.mark.parametrize(
    ("stored", "word"),
    [
        (fragment(2**32), "32 bits"),
        (table_pb2.DataFragment(files=[table_pb2.DataFile(path="../x")]), "does not stay"),
        (table_pb2.DataFragment(files=[table_pb2.DataFile(path="/etc/x")]), "does not stay"),
        (
            table_pb2.DataFragment(
                files=[table_pb2.DataFile(path="a", fields=[1, 2], column_indices=[0])]
            ),
            "2 fields and 1 columns",
        ),
        (fragment(external_row_ids=table_pb2.ExternalFile(path="..")), "does not stay"),
    ],
)
def test_damaged_fragments_are_named_when_they_are_read(stored, word):
    stored.id = stored.id or 1
    found = decoded(manifest(fragments=[fragment(), stored]))
    assert found.fragments[0].id == 0
    with pytest.raises(CorruptError, match=f"m: fragment {stored.id}.*{word}"):
        found.fragments[1]


HALF_A_FRAGMENT = b"\x12\x03\x12\x7f\x00"
"""A fragment of three bytes, whose first file is said to have 127."""


@pytest.mark.parametrize(
    "use",
    [len, list, lambda one: one[0], lambda one: one.largest_id(), lambda one: one.live_rows()],
)
def test_a_damaged_list_of_fragments_is_named_by_whoever_needs_it(use):
    content = seal(b"", manifest().SerializeToString(), HALF_A_FRAGMENT)
    found = decode_manifest(content, "the path")
    assert found.version == 3
    for _ in range(2):
        with pytest.raises(CorruptError, match="the path: the list of fragments is damaged"):
            use(found.fragments)


def test_fragments_that_were_read_are_written_as_they_were():
    """Whether somebody looked at them or not, and with all that later writers say in them."""
    later = b"\xa2\x06\x03new"
    first, second = (
        b"\x12" + bytes([len(one)]) + one
        for one in (fragment(id_).SerializeToString() + later for id_ in (4, 5))
    )
    content = seal(b"", first, manifest(tag="t").SerializeToString(), second)
    for look in (len, lambda _: None):
        fragments = decode_manifest(content, "m").fragments
        assert isinstance(fragments, StoredFragments)
        look(fragments)
        assert fragments.encoded() == first + second
        assert [each.id for each in fragments] == [4, 5]


def test_fragments_that_share_an_id_get_ids_above_all_others():
    later = b"\xa2\x06\x03new"
    stored = [fragment(4), fragment(7), fragment(4, deletion_file=table_pb2.DeletionFile(id=1))]
    message = manifest(fragments=stored, max_fragment_id=8)
    message.fragments[0].MergeFromString(later)
    fragments = decoded(message).fragments
    assert isinstance(fragments, StoredFragments)
    assert [each.id for each in fragments] == [9, 7, 4]
    assert fragments.shared_ids() == {4}
    assert fragments.find(9) == 0
    assert fragments.largest_id() == 9
    assert later in fragments.encoded()
    assert [each.id for each in fragments.numbered_above(20)] == [21, 7, 4]
    assert [each.id for each in fragments] == [9, 7, 4]


def test_more_deleted_rows_than_rows():
    stored = fragment(3, physical_rows=5)
    stored.deletion_file.num_deleted_rows = 6
    with pytest.raises(CorruptError, match="fragment 3: 6 of 5 rows"):
        live_rows(decoded(manifest(fragments=[stored])))


def test_stable_row_ids_must_be_there():
    flags = {"reader_feature_flags": 2, "writer_feature_flags": 2}
    found = decoded(manifest(fragments=[fragment()], **flags))
    with pytest.raises(CorruptError, match="stable row ids"):
        found.fragments[0]


@pytest.mark.parametrize(
    "stored",
    [
        manifest(reader_feature_flags=64, writer_feature_flags=64),
        manifest(fragment_tree=b""),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(stored):
    with pytest.raises(UnsupportedError, match=r"m: .*untouched"):
        decoded(stored)


def test_overlays_are_refused():
    stored = fragment(overlays=[table_pb2.DataOverlayFile()])
    with pytest.raises(UnsupportedError, match="overlay"):
        decoded(manifest(fragments=[stored])).fragments[0]


def test_a_time_that_is_no_date():
    with pytest.raises(CorruptError, match="not a date"):
        decoded(manifest(timestamp=table_pb2.Timestamp(seconds=2**62)))


def test_two_bases_of_one_id():
    bases = [table_pb2.BasePath(id=1, path="/a"), table_pb2.BasePath(id=1, path="/b")]
    with pytest.raises(CorruptError, match="share one id"):
        decoded(manifest(base_paths=bases))


def file_names(message):
    return decode_file_names(seal(b"", message.SerializeToString()), "m")


def test_the_files_of_a_plain_manifest():
    deletion = table_pb2.DeletionFile(read_version=2, id=9, num_deleted_rows=1)
    stored = manifest(fragments=[fragment(), fragment(4, deletion_file=deletion)])
    found = file_names(stored)
    assert found == decoded(stored).fragments.file_names()
    assert found.data == {("a.lance", None)}
    assert found.deletions == {("_deletions/4-2-9.arrow", None)}


@pytest.mark.parametrize(
    "more",
    [
        {"reader_feature_flags": 1},
        {"writer_feature_flags": 1},
        {"index_section": 0},
        {"base_paths": [table_pb2.BasePath(id=1, path="/a")]},
    ],
)
def test_files_of_other_manifests_are_not_told_in_short(more):
    assert file_names(manifest(fragments=[fragment()], **more)) is None


def test_files_of_a_damaged_manifest_are_not_told_in_short():
    assert decode_file_names(seal(b"", b"\xff\xff"), "m") is None
    assert decode_file_names(b"nothing", "m") is None


def test_index_segments():
    stored = table_pb2.IndexMetadata(
        name="i", fields=[1], dataset_version=4, fragment_bitmap=BitMap([0, 2]).serialize()
    )
    stored.uuid.uuid = bytes(range(16))
    stored.index_details.type_url = "/lance.table.BTreeIndexDetails"
    stored.created_at = 1_700_000_000_000
    stored.files.add(path="page.lance", size_bytes=9)
    (found,) = decode_index_section(table_pb2.IndexSection(indices=[stored]).SerializeToString())
    assert found.uuid == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert found.fragment_ids == frozenset({0, 2})
    assert found.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert found.files[0].path == "page.lance"
    assert (found.base_id, found.index_version) == (None, None)


@pytest.mark.parametrize(
    "stored",
    [
        table_pb2.IndexMetadata(name="i"),
        table_pb2.IndexMetadata(
            uuid=table_pb2.UUID(uuid=bytes(16)), files=[table_pb2.IndexFile(path="../x")]
        ),
        table_pb2.IndexMetadata(uuid=table_pb2.UUID(uuid=bytes(16)), created_at=2**63),
    ],
)
def test_damaged_index_segments(stored):
    with pytest.raises(CorruptError):
        decode_index_section(table_pb2.IndexSection(indices=[stored]).SerializeToString())


GOOD = next((GOLDEN / "history.lance/_versions").glob("*09.manifest")).read_bytes()


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255), st.booleans())
def test_damage_is_noticed_or_harmless(place, mask, is_cut):
    damaged = bytearray(GOOD)
    damaged[place] ^= mask
    data = bytes(damaged[:place]) if is_cut else bytes(damaged)
    try:
        found = decode_manifest(data, "m")
        list(found.fragments)
        live_rows(found)
    except LanceTableError:
        return
    assert found.version <= 2**64 - 1
