"""What an operation makes of a version, where the frozen tables do not show it."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest

from lancetable.commit.apply.manifest import Context, State, apply
from lancetable.commit.transaction import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Unknown,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.format.manifest import (
    BasePath,
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionKind,
    Fragment,
    IndexFile,
    IndexSegment,
    InlineSequence,
    Manifest,
    WriterVersion,
)
from lancetable.format.manifest.mem_wal.model import CompactedSsTable
from lancetable.format.manifest.reuse import (
    FragmentDigest,
    FragmentReuse,
    ReuseGroup,
    ReuseVersion,
)
from lancetable.format.manifest.roaring import encode_bitmap, encode_treemap
from lancetable.format.manifest.rowids import (
    decode_row_ids,
    decode_versions,
    encode_row_ids,
    encode_versions,
)
from lancetable.format.schema import Field, Schema

ID, X, V = Field("id", 0, "int64"), Field("x", 1, "int64"), Field("v", 2, "fixed_size_list:float:4")
SCHEMA = Schema((ID, X, V), {"about": "rows"})
FILE = DataFile("a.lance", (0, 1, 2), (0, 1, 2), 2, 1, 9)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
STABLE = 2


def fragment(id_=0, rows=4, **more):
    return Fragment(id_, (FILE,), physical_rows=rows, **more)


def numbered(id_, ids, created=1):
    count = len(ids)
    versions = InlineSequence(encode_versions(np.full(count, created, np.uint64)))
    return fragment(
        id_,
        count,
        row_ids=InlineSequence(encode_row_ids(np.array(ids, np.uint64))),
        created_at=versions,
        last_updated_at=versions,
    )


def version(*fragments, **more):
    more.setdefault("data_format", "2.1")
    return Manifest(5, SCHEMA, fragments, **more)


def applied(manifest, operation, segments=(), **more):
    context = Context(NOW, WriterVersion("me", "1"), indices=lambda: segments, **more)
    return apply(manifest, operation, context)


def ids(manifest):
    return [one.id for one in manifest.fragments]


def spelled(fragment_):
    rows = fragment_.physical_rows
    return (
        decode_row_ids(fragment_.row_ids.data, rows).tolist(),
        decode_versions(fragment_.created_at.data, rows).tolist(),
        decode_versions(fragment_.last_updated_at.data, rows).tolist(),
    )


def segment(name="i", field=0, *, covered=(0, 1), number=1, **more):
    return IndexSegment(
        str(UUID(int=number)), name, (field,), 3, fragment_bitmap=encode_bitmap(covered), **more
    )


def test_what_every_commit_sets():
    before = version(fragment(), branch="dev", config={"k": "v"}, writer_flags=8)
    made = applied(before, Append((fragment(),)), transaction_file="t").manifest
    assert (made.version, made.timestamp, made.writer) == (6, NOW, WriterVersion("me", "1"))
    assert (made.branch, made.transaction_file, made.config) == ("dev", "t", {"k": "v"})
    assert (ids(made), made.max_fragment_id) == ([0, 1], 1)
    assert (made.reader_flags, made.writer_flags) == (0, 8)


def test_ids_never_come_back():
    before = version(fragment(3), max_fragment_id=7)
    assert ids(applied(before, Append((fragment(), fragment()))).manifest) == [3, 8, 9]
    overwritten = applied(before, Overwrite((fragment(),), SCHEMA)).manifest
    assert (ids(overwritten), overwritten.max_fragment_id) == ([8], 8)
    emptied = applied(before, Delete((), (3,))).manifest
    assert (ids(emptied), emptied.max_fragment_id) == ([], 7)
    assert applied(version(), ReserveFragments(3)).manifest.max_fragment_id == 2
    assert applied(before, ReserveFragments(3)).manifest.max_fragment_id == 10
    assert applied(version(), UpdateConfig()).manifest.max_fragment_id is None


def test_flags_follow_the_content():
    gone = DeletionFile(DeletionKind.ARROW, 5, 1, 1)
    before = version(fragment(0), fragment(1), reader_flags=256, writer_flags=256 | 32)
    marked = applied(before, Delete((fragment(0)._replace(deletion_file=gone),))).manifest
    assert (marked.reader_flags, marked.writer_flags) == (257, 257)
    assert applied(marked, Append((fragment(),))).manifest.reader_flags == 257
    assert applied(marked, Delete((), (0,))).manifest.reader_flags == 256
    assert applied(marked, Delete((), (1,))).manifest.reader_flags == 257
    based = applied(before, UpdateBases((BasePath(0, None, "/b", is_dataset_root=True),)))
    assert based.manifest.reader_flags == 256 | 16
    newer = fragment()._replace(files=(FILE._replace(minor=2),))
    assert applied(version(fragment()), Append((newer,))).manifest.reader_flags == 256
    covering = segment(covering_fields=(1,))
    assert applied(before, CreateIndex((covering,))).manifest.reader_flags == 256 | 128
    spilled = fragment(row_ids=ColumnSequence())
    stable = version(reader_flags=STABLE, writer_flags=STABLE)
    assert applied(stable, Append((spilled,))).manifest.reader_flags == STABLE | 2048


def test_field_ids_that_are_never_reused():
    before = version(max_allocated_field_id=2, writer_flags=32768)
    more = Schema((*SCHEMA.fields, Field("new", 9, "int32")))
    made = applied(before, Merge((), more)).manifest
    assert (made.max_allocated_field_id, made.writer_flags, made.reader_flags) == (9, 32768, 0)


def test_new_rows_are_numbered():
    before = version(numbered(0, [0, 1]), reader_flags=STABLE, next_row_id=2)
    made = applied(before, Append((fragment(rows=2), fragment(rows=3)))).manifest
    assert made.next_row_id == 7
    assert [spelled(one) for one in made.fragments[1:]] == [
        ([2, 3], [6, 6], [6, 6]),
        ([4, 5, 6], [6, 6, 6], [6, 6, 6]),
    ]


def test_moved_rows_keep_id_and_birth():
    before = version(
        numbered(0, [0, 1], created=1),
        numbered(1, [2, 3, 4], created=4),
        reader_flags=STABLE,
        next_row_id=5,
    )
    moved = fragment(rows=4, row_ids=InlineSequence(encode_row_ids(np.array([3, 0], np.uint64))))
    gone = DeletionFile(DeletionKind.ARROW, 5, 1, 1)
    operation = Update(
        removed_fragment_ids=(0,),
        updated_fragments=(before.fragments[1]._replace(deletion_file=gone),),
        new_fragments=(moved,),
    )
    made = applied(before, operation).manifest
    assert (ids(made), made.next_row_id) == ([1, 2], 7)
    assert spelled(made.fragments[1]) == ([3, 0, 5, 6], [4, 1, 6, 6], [6, 6, 6, 6])
    assert spelled(made.fragments[0]) == ([2, 3, 4], [4, 4, 4], [4, 4, 4])
    given = moved._replace(created_at=InlineSequence(encode_versions(np.array([2, 3], np.uint64))))
    again = applied(before, replace(operation, new_fragments=(given,))).manifest
    assert spelled(again.fragments[1])[1] == [2, 3, 6, 6]


@pytest.mark.parametrize("bitmap", [True, False, None])
def test_rewritten_columns_touch_matched_rows(bitmap):
    before = version(numbered(0, [0, 1, 2]), reader_flags=STABLE, next_row_id=3)
    operation = Update(
        updated_fragments=before.fragments,
        update_mode=UpdateMode.REWRITE_COLUMNS,
        fields_modified=(1,),
        updated_fragment_offsets={} if bitmap is not False else {0: (1,)},
        updated_fragment_offset_bitmaps={0: encode_bitmap([1])} if bitmap else {},
    )
    made = applied(before, operation).manifest
    expected = [6, 6, 6] if bitmap is None else [1, 6, 1]
    assert spelled(made.fragments[0]) == ([0, 1, 2], [1, 1, 1], expected)


def test_row_ids_that_cannot_be():
    before = version(reader_flags=STABLE)
    many = fragment(rows=1, row_ids=InlineSequence(encode_row_ids(np.arange(2, dtype=np.uint64))))
    with pytest.raises(InputError, match="1 rows comes with 2 row ids"):
        applied(before, Append((many,)))
    spilled = version(fragment(0, row_ids=ColumnSequence()), reader_flags=STABLE)
    moved = fragment(row_ids=InlineSequence(encode_row_ids(np.arange(2, dtype=np.uint64))))
    with pytest.raises(UnsupportedError, match="outside the manifest"):
        applied(spilled, Update(removed_fragment_ids=(0,), new_fragments=(moved,)))
    bare = Rewrite((RewriteGroup((fragment(0),), (fragment(8),)),))
    with pytest.raises(InputError, match="must bring the row ids"):
        applied(version(numbered(0, [0]), reader_flags=STABLE), bare)


def test_files_whose_columns_all_moved_are_dropped():
    old = FILE._replace(fields=(-2, -2, -2))
    new = FILE._replace(path="b.lance")
    changed = fragment()._replace(files=(old, new))
    made = applied(version(fragment()), Update(updated_fragments=(changed,))).manifest
    assert made.fragments[0].files == (new,)


def test_projecting_drops_files_without_a_live_column():
    other = DataFile("x.lance", (1,), (0,), 2, 1)
    first = FILE._replace(fields=(0, 2), column_indices=(0, 1))
    before = version(fragment()._replace(files=(first, other)), fragment(1))
    made = applied(before, Project(Schema((ID,)))).manifest
    assert [one.files for one in made.fragments] == [(first,), (FILE,)]
    assert made.schema == Schema((ID,), {"about": "rows"})
    alone = version(fragment()._replace(files=(other,)))
    assert applied(alone, Project(Schema((ID,)))).manifest.fragments[0].files == (other,)


@pytest.mark.parametrize(
    ("operation", "word"),
    [
        (Delete((), (9,)), "fragment 9"),
        (Delete((fragment(9),)), "fragment 9"),
        (Rewrite((RewriteGroup((fragment(9),), ()),)), "fragment 9"),
        (Merge((fragment(1), fragment(1)), SCHEMA), "share one id"),
        (Restore(3), "was not loaded"),
        (DataReplacement((Replacement(9, FILE),)), "does not exist any more"),
        (DataReplacement((Replacement(0, FILE._replace(fields=(0,))),)), "exactly the columns"),
        (UpdateConfig(field_metadata={77: MapUpdate({})}), "id 77"),
        (UpdateMemWalState((CompactedSsTable(str(UUID(int=1)), 1),)), "no write-ahead log"),
        (Overwrite((), SCHEMA, {}, (BasePath(1, None, "/b", False),)), "first version"),
    ],
)
def test_operations_that_do_not_fit(operation, word):
    with pytest.raises(InputError, match=word):
        applied(version(fragment()), operation)
    with pytest.raises(UnsupportedError, match="Later"):
        applied(version(), Unknown("Later"))


def test_all_new_files_hold_the_same_columns():
    files = (Replacement(0, FILE), Replacement(1, FILE._replace(fields=(0,))))
    with pytest.raises(InputError, match="same columns"):
        applied(version(fragment(), fragment(1)), DataReplacement(files))


def test_replacing_and_filling_columns():
    before = version(fragment()._replace(files=(FILE._replace(fields=(0, 1)),)))
    filled = DataFile("v.lance", (2,), (0,), 2, 1)
    made = applied(before, DataReplacement((Replacement(0, filled),))).manifest
    assert made.fragments[0].files[1:] == (filled,)
    newer = filled._replace(path="w.lance", column_indices=())
    segments = (segment("v", 2), segment("id", 0, number=2))
    again = applied(made, DataReplacement((Replacement(0, newer),)), segments)
    assert again.manifest.fragments[0].files[1] == newer._replace(column_indices=(0,))
    assert [one.fragment_ids for one in again.indices] == [{1}, {0, 1}]


def test_configuration_and_metadata():
    before = version(config={"a": "1", "b": "2"}, table_metadata={"t": "1"})
    key = "lance-schema:unenforced-primary-key"
    operation = UpdateConfig(
        config=MapUpdate({"a": None, "c": "3"}),
        table_metadata=MapUpdate({"u": "2"}, replace=True),
        schema_metadata=MapUpdate({"about": None, "more": "x"}),
        field_metadata={0: MapUpdate({key: "true"}), 1: MapUpdate({"unit": "m"})},
    )
    made = applied(before, operation).manifest
    assert made.config == {"b": "2", "c": "3"}
    assert made.table_metadata == {"u": "2"}
    assert made.schema.metadata == {"more": "x"}
    first, second, _ = made.schema.fields
    assert (first.metadata, first.primary_key_position) == ({key: "true"}, 0)
    assert second.metadata == {"unit": "m"}
    undone = UpdateConfig(field_metadata={0: MapUpdate({key: None})})
    assert applied(made, undone).manifest.schema.fields[0].primary_key_position is None


def test_bases_get_ids():
    new = UpdateBases(tuple(BasePath(0, None, path, True) for path in ("/a", "/b")))
    made = applied(version(), new).manifest
    assert [base.id for base in made.base_paths] == [1, 2]
    with pytest.raises(InputError, match="shares its id"):
        applied(made, new)
    first = Overwrite((), SCHEMA, {}, new.new_bases)
    nothing = Manifest(0, Schema(()), ())
    assert [base.id for base in applied(nothing, first).manifest.base_paths] == [1, 2]


@pytest.mark.parametrize(("files", "expected"), [((), "2.2"), ((FILE,), "2.1")])
def test_the_version_of_new_files(files, expected):
    new = tuple(fragment()._replace(files=(file,)) for file in files)
    before = version(data_format="2.0")
    made = applied(before, Overwrite(new, SCHEMA), storage_version="2.2").manifest
    assert made.data_format == expected
    assert applied(before, Overwrite((), SCHEMA)).manifest.data_format == "2.0"


def test_restoring_counts_on():
    old = version(fragment(0), config={"old": "1"})._replace(version=2, next_row_id=9)
    old = old._replace(branch=None)
    before = version(fragment(4), branch="b", max_fragment_id=6, next_row_id=3)
    kept = (segment(),)
    state = applied(before, Restore(2), restored=State(old, kept))
    made = state.manifest
    assert (made.version, ids(made), made.max_fragment_id, made.next_row_id) == (6, [0], 6, 9)
    assert (made.config, made.branch, state.indices) == ({"old": "1"}, "b", kept)


def test_index_segments_are_kept_pruned_or_dropped():
    vector = "/lance.table.VectorIndexDetails"
    segments = (
        segment("id", 0, covered=(0,), number=1),
        segment("id", 0, covered=(1,), number=2),
        segment("v", 2, covered=(0,), number=3, type_url=vector),
        segment("w", 2, covered=(0,), number=4),
        segment("__lance_frag_reuse", 0, covered=(0,), number=5)._replace(fields=()),
    )
    before = version(fragment(0), fragment(1))

    def kept(operation, given=segments):
        found = applied(before, operation, given, reuse=lambda _: FragmentReuse()).indices
        return None if found is None else [UUID(one.uuid).int for one in found]

    assert kept(Append((fragment(),))) is None
    assert kept(Delete((fragment(0),))) is None
    assert kept(Delete((), (0,))) == [2, 5]
    assert kept(Delete((), (0, 1))) == [1, 5]
    assert kept(Project(Schema((X, V)))) == [3, 4, 5]
    assert kept(Merge(before.fragments, SCHEMA)) is None
    assert kept(Overwrite((), SCHEMA)) == []
    assert kept(CreateIndex((segment("n", number=9),), segments[:1])) == [2, 3, 4, 5, 9]
    columns = Update(
        updated_fragments=(fragment(0),),
        fields_modified=(0,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
    )
    assert kept(columns) == [2, 3, 4, 5]


def moved(old, new):
    kept = encode_treemap((id_, np.arange(10, dtype=np.uint32)) for id_ in old)
    digests = tuple(FragmentDigest(id_, 10) for id_ in old)
    return ReuseGroup(kept, digests, (FragmentDigest(new, 10 * len(old)),))


def test_segments_stay_in_use_by_way_of_the_record_of_moved_rows():
    reuse = FragmentReuse((ReuseVersion(3, (moved((0, 1), 7), moved((2,), 8))),))
    vector = "/lance.table.VectorIndexDetails"
    segments = (
        segment("v", 2, covered=(0, 1), number=1, type_url=vector),
        segment("id", 0, covered=(2, 5), number=2),
        segment("__lance_frag_reuse", 0, covered=(7, 8), number=5)._replace(fields=()),
    )
    before = version(fragment(5), fragment(7), fragment(8))

    def after(operation, loaded=reuse):
        found = applied(before, operation, segments, reuse=lambda _: loaded).indices
        if found is None:
            return None
        return {UUID(one.uuid).int: set(one.fragment_ids) for one in found}

    # None of its fragments is there, but what became of them is.
    assert after(Delete((), (5,))) is None
    assert after(Delete((), (7,))) == {2: {2, 5}, 5: {7, 8}}
    # Values that change in a new fragment are those of the old ones that came to stand there.
    columns = Update(
        updated_fragments=(fragment(8),),
        fields_modified=(0,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
    )
    assert after(columns) == {1: {0, 1}, 2: {5}, 5: {7, 8}}
    # What cannot be read may mean anything: nothing is dropped, nothing is taken for true.
    assert after(Delete((), (7,)), None) is None
    assert after(columns, None) == {1: {0, 1}, 2: set(), 5: {7, 8}}


def test_only_segments_that_hold_row_ids_follow_moved_rows():
    old = [numbered(0, [0, 1]), numbered(1, [2, 3])]
    before = version(*old, reader_flags=STABLE, next_row_id=4)
    operation = Rewrite((RewriteGroup(old, (numbered(7, [0, 1, 2, 3]),)),))
    kinds = {
        "lance.table.BitmapIndexDetails": (0, {7}),
        "lance.table.BTreeIndexDetails": (1, set()),
        "lance.table.ZoneMapIndexDetails": (0, set()),
        "lance.index.pb.BloomFilterIndexDetails": (0, set()),
        "lance.index.pb.VectorIndexDetails": (2, {7}),
        "lance.table.LaterIndexDetails": (0, set()),
    }
    segments = tuple(
        segment(f"i{number}", covered=(0, 1), number=number + 1, type_url=f"/{kind}")._replace(
            index_version=kinds[kind][0],
        )
        for number, kind in enumerate(kinds)
    )
    found = applied(before, operation, segments).indices
    assert [set(one.fragment_ids) for one in found] == [ids for _, ids in kinds.values()]


@pytest.mark.parametrize("flags", [0, STABLE])
def test_indices_follow_rewritten_fragments(flags):
    old = [numbered(0, [0, 1]), numbered(1, [2, 3])]
    before = version(*old, reader_flags=flags, next_row_id=4)
    new = numbered(7, [0, 1, 2, 3])
    full, part = segment("a", covered=(0, 1, 3)), segment("b", covered=(0,), number=2)
    rewritten = RewrittenIndex(
        full.uuid, str(UUID(int=8)), "/lance.table.X", b"d", 3, (IndexFile("f", 1),)
    )
    operation = Rewrite((RewriteGroup(old, (new,)),), (rewritten,))
    state = applied(before, operation, (full, part))
    assert ids(state.manifest) == [7]
    first, second = state.indices
    assert (first.uuid, first.details, first.files) == (
        rewritten.new_id,
        b"d",
        (IndexFile("f", 1),),
    )
    assert first.fragment_ids == {3, 7}
    assert second.fragment_ids == (set() if flags else {0})


SHARD = UUID(int=5)


def test_progress_of_the_log_is_recorded():
    log = segment("__lance_mem_wal", number=3)._replace(
        fields=(),
        details=b"\x10\x01\x60\x01",
        fragment_bitmap=b"",
    )
    first = applied(version(), UpdateMemWalState((CompactedSsTable(str(SHARD), 1),)), (log,))
    (record,) = first.indices
    entry = b"\x0a\x12\x0a\x10" + SHARD.bytes + b"\x10\x01"
    assert record.details == b"\x10\x01\x4a" + bytes([len(entry)]) + entry + b"\x60\x01"
    assert (record.uuid != log.uuid, record.dataset_version) == (True, 6)
    more = Update(compacted_sstables=(CompactedSsTable(str(SHARD), 300),))
    (later,) = applied(version(), more, (record,)).indices
    entry = b"\x0a\x12\x0a\x10" + SHARD.bytes + b"\x10\xac\x02"
    assert later.details == b"\x10\x01\x4a" + bytes([len(entry)]) + entry + b"\x60\x01"
    assert len(later.details) == len(record.details) + 1
    for spelled in (str(SHARD), str(SHARD).upper()):
        again = UpdateMemWalState((CompactedSsTable(spelled, 300),))
        with pytest.raises(InputError, match="not newer"):
            applied(version(), again, (later,))
    for damage in (b"\x4a", b"\x4a\x50", b"\xff" * 12, b"\x0b", b"\x09\x01"):
        with pytest.raises(CorruptError):
            applied(version(), more, (log._replace(details=damage),))


@pytest.mark.parametrize("is_shallow", [True, False])
def test_a_clone_begins_with_the_version_it_was_made_from(is_shallow):
    gone = DeletionFile(DeletionKind.ARROW, 5, 1, 1)
    elsewhere = FILE._replace(base_id=0)
    before = version(
        fragment(0)._replace(files=(FILE, elsewhere), deletion_file=gone),
        base_paths=(BasePath(0, None, "/far", is_dataset_root=True),),
        reader_flags=17,
    )
    operation = Clone(is_shallow, "main", 5, "/t", "dev")
    made, segments = applied(before, operation, (segment(),))
    (only,) = made.fragments
    places = [file.base_id for file in only.files] + [only.deletion_file.base_id]
    assert (made.version, made.branch) == (5, "dev")
    assert places == ([1, 0, 1] if is_shallow else [None] * 3)
    assert [one.base_id for one in segments] == ([1] if is_shallow else [None])
    assert made.reader_flags == (17 if is_shallow else 1)
    assert made.base_paths == (
        (*before.base_paths, BasePath(1, "main", "/t", True)) if is_shallow else ()
    )
