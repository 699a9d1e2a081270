"""Which operations may follow each other: every pair, and the notes beside the table."""

import csv
from dataclasses import replace
from uuid import UUID

import pytest

from lancetable.commit.conflicts import Compatible, Conflicting, Facts, Rebased, judge
from lancetable.commit.transaction import (
    Append,
    BloomFilter,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    ExactKeys,
    KeyFilter,
    MapUpdate,
    Merge,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Transaction,
    Unknown,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from lancetable.format.manifest import (
    BasePath,
    DataFile,
    DeletionFile,
    DeletionKind,
    Fragment,
    IndexSegment,
)
from lancetable.format.manifest.mem_wal.model import CompactedSsTable
from lancetable.format.manifest.roaring import encode_bitmap
from lancetable.format.schema import Field, Schema
from tests.conftest import GOLDEN
from tests.key_filters import bloom_filter, key_filter

ID, X, Y = Field("id", 0, "int64"), Field("x", 1, "int64"), Field("y", 2, "int64")
SCHEMA = Schema((ID, X, Y))
FILE = DataFile("a.lance", (0, 1), (0, 1), 2, 1)
Y_FILE = DataFile("y.lance", (2,), (0,), 2, 1)
GONE = DeletionFile(DeletionKind.ARROW, 1, 1, 1)
SHARD = str(UUID(int=7))


def fragment(id_, *files):
    return Fragment(id_, files or (FILE, Y_FILE), physical_rows=10)


def deleted(id_):
    return fragment(id_)._replace(deletion_file=GONE)


def segment(name, field, *ids, uuid=1):
    return IndexSegment(str(UUID(int=uuid)), name, (field,), 1, fragment_bitmap=encode_bitmap(ids))


def rows_update(id_, **more):
    return Update(updated_fragments=(deleted(id_),), new_fragments=(fragment(0),), **more)


def columns_update(id_):
    changed = fragment(id_, DataFile("a.lance", (0, -2), (0, 1), 2, 1), Y_FILE)
    return Update(
        updated_fragments=(changed,), fields_modified=(1,), update_mode=UpdateMode.REWRITE_COLUMNS
    )


def config(**entries):
    return UpdateConfig(config=MapUpdate(entries))


OPERATIONS = {
    "Append": Append((fragment(0),)),
    "Delete rows f0": Delete((deleted(0),)),
    "Delete rows f1": Delete((deleted(1),)),
    "Delete frag f0": Delete((), (0,)),
    "Overwrite": Overwrite((fragment(0),), SCHEMA),
    "CreateIndex id f0-2": CreateIndex((segment("id_idx", 0, 0, 1, 2),)),
    "CreateIndex y f0": CreateIndex((segment("y_idx", 2, 0, uuid=2),)),
    "Rewrite f0": Rewrite((RewriteGroup((fragment(0),), (fragment(9),)),)),
    "Rewrite f1": Rewrite((RewriteGroup((fragment(1),), (fragment(9),)),)),
    "Merge pres": Merge((fragment(0), fragment(1)), SCHEMA, preserves_nullability=True),
    "Merge": Merge((fragment(0), fragment(1)), SCHEMA),
    "Project pres": Project(Schema((ID, X)), preserves_nullability=True),
    "Project": Project(SCHEMA),
    "Restore": Restore(1),
    "Update rows f0": rows_update(0),
    "Update rows f1": rows_update(1),
    "Update cols f0": columns_update(0),
    "UpdateConfig k": config(k="1"),
    "UpdateConfig j": config(j="1"),
    "UpdateConfig field": UpdateConfig(field_metadata={0: MapUpdate({"a": "b"})}),
    "UpdateConfig schema": UpdateConfig(schema_metadata=MapUpdate({"a": "b"})),
    "UpdateConfig tmeta": UpdateConfig(table_metadata=MapUpdate({"a": "b"})),
    "DataReplacement f0 y": DataReplacement((Replacement(0, Y_FILE),)),
    "DataReplacement f1 y": DataReplacement((Replacement(1, Y_FILE),)),
    "ReserveFragments": ReserveFragments(2),
    "UpdateMemWalState": UpdateMemWalState((CompactedSsTable(SHARD, 1),)),
    "UpdateBases": UpdateBases((BasePath(1, "b", "/b", is_dataset_root=True),)),
    "Clone": Clone(is_shallow=True, ref_name=None, ref_version=1, ref_path="/t"),
    "(unknown op 116)": Unknown(),
}


def transaction(operation):
    return Transaction(1, "u", operation)


def outcome(mine, theirs, facts=None):
    other = None if theirs is None else transaction(theirs)
    verdict = judge(transaction(mine), other, facts or Facts())
    if isinstance(verdict, Conflicting):
        assert verdict.reason
        return "retry" if verdict.retryable else "stop"
    return "ok"


def measured():
    with (GOLDEN / "commit" / "conflicts.csv").open() as file:
        header, *rows = csv.reader(file)
    for name, *cells in rows:
        for other, cell in zip(header[1:], cells, strict=True):
            yield pytest.param(name, other, cell, id=f"{name} after {other}")


STRONGER = {
    # The reference lets a new schema silently drop what another writer noted about its columns.
    ("Project", "UpdateConfig field"): "retry",
    ("Project", "UpdateConfig schema"): "retry",
    ("Project pres", "UpdateConfig field"): "retry",
    ("Project pres", "UpdateConfig schema"): "retry",
    # And it lets an index on a column that is gone.
    ("CreateIndex y f0", "Project pres"): "retry",
}


@pytest.mark.parametrize(("mine", "theirs", "expected"), list(measured()))
def test_as_the_reference_implementation_decides(mine, theirs, expected):
    wanted = STRONGER.get((mine, theirs), expected)
    assert outcome(OPERATIONS[mine], OPERATIONS.get(theirs)) == wanted


@pytest.mark.parametrize("mine", [name for name in OPERATIONS if name[0] != "("])
def test_what_is_not_known_conflicts(mine):
    assert outcome(OPERATIONS[mine], None) == "stop"
    assert outcome(OPERATIONS[mine], Unknown("DataOverlay")) == "stop"


@pytest.mark.parametrize("theirs", OPERATIONS)
def test_a_clone_is_only_ever_first(theirs):
    assert outcome(OPERATIONS["Clone"], OPERATIONS[theirs]) == "stop"


@pytest.mark.parametrize("theirs", [name for name in OPERATIONS if name[0] != "("])
def test_reserving_ids_and_adding_bases_disturb_nobody_but_their_like(theirs):
    replaced = theirs in {"Overwrite", "Restore"}
    assert outcome(ReserveFragments(1), OPERATIONS[theirs]) == ("stop" if replaced else "ok")
    expected = "stop" if theirs == "UpdateBases" else "ok"
    assert outcome(OPERATIONS["UpdateBases"], OPERATIONS[theirs]) == expected


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ("Append", "stop"),
        ("Delete rows f0", "stop"),
        ("Overwrite", "stop"),
        ("CreateIndex y f0", "ok"),
        ("Rewrite f0", "ok"),
        ("Merge pres", "stop"),
        ("Restore", "stop"),
        ("ReserveFragments", "ok"),
        ("Update rows f0", "ok"),
        ("Project pres", "stop"),
        ("UpdateConfig k", "ok"),
        ("DataReplacement f0 y", "stop"),
        ("UpdateBases", "ok"),
    ],
)
def test_progress_of_the_log(theirs, expected):
    assert outcome(OPERATIONS["UpdateMemWalState"], OPERATIONS[theirs]) == expected


def log(generation, shard=SHARD):
    return (CompactedSsTable(shard, generation),)


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (log(2), log(2), "stop"),
        (log(2), log(3), "stop"),
        (log(2), log(1), "retry"),
        (log(2), log(2, str(UUID(int=8))), "ok"),
        (log(2), (), "ok"),
    ],
)
def test_generations_of_one_shard(mine, theirs, expected):
    for own in (UpdateMemWalState(mine), Update(compacted_sstables=mine)):
        for other in (UpdateMemWalState(theirs), Update(compacted_sstables=theirs)):
            assert outcome(own, other) == expected


FILES = {0: (f"{FILE.path} {FILE.fields}", f"{Y_FILE.path} {Y_FILE.fields}")}
KNOWN = Facts({0: [1]}, FILES)


@pytest.mark.parametrize("mine", ["Delete rows f0", "Update rows f0"])
@pytest.mark.parametrize("theirs", ["Delete rows f0", "Update rows f0"])
def test_deleted_rows_of_one_fragment_are_merged(mine, theirs):
    verdict = judge(transaction(OPERATIONS[mine]), transaction(OPERATIONS[theirs]), KNOWN)
    assert verdict == Compatible(frozenset({0}))


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("Delete rows f0", "Delete frag f0"),
        ("Delete frag f0", "Delete rows f0"),
        ("Delete rows f0", "Update cols f0"),
        ("Update cols f0", "Delete rows f0"),
        ("Delete rows f0", "Rewrite f0"),
        ("Update rows f0", "DataReplacement f0 y"),
    ],
)
def test_what_cannot_be_merged(mine, theirs):
    assert outcome(OPERATIONS[mine], OPERATIONS[theirs], KNOWN) == "retry"


MOVED = Facts(None, FILES, are_moves_known=True)


@pytest.mark.parametrize("theirs", ["Delete rows f0", "Update rows f0", "Delete frag f0"])
def test_rows_that_others_deleted_are_deleted_where_they_moved(theirs):
    rewrite = transaction(OPERATIONS["Rewrite f0"])
    verdict = judge(rewrite, transaction(OPERATIONS[theirs]), MOVED)
    assert verdict == Compatible(frozenset({0}))
    # Without knowing where rows went there is nothing to be done.
    assert outcome(rewrite.operation, OPERATIONS[theirs]) == "retry"


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ("Update cols f0", "retry"),
        ("DataReplacement f0 y", "retry"),
        ("Rewrite f0", "retry"),
        ("Merge pres", "retry"),
        ("Overwrite", "stop"),
        ("Restore", "stop"),
        ("Delete rows f1", "ok"),
        ("Rewrite f1", "ok"),
        ("Append", "ok"),
        ("Project", "ok"),
    ],
)
def test_moved_rows_that_others_rewrote(theirs, expected):
    assert outcome(OPERATIONS["Rewrite f0"], OPERATIONS[theirs], MOVED) == expected


@pytest.mark.parametrize(
    ("covered", "keeps", "expected"),
    [
        ((0, 1), False, "retry"),
        ((0, 1), True, "ok"),
        ((0, 1, 5), True, "ok"),
        ((0,), True, "retry"),
        ((5,), False, "ok"),
    ],
)
def test_an_index_that_was_built_over_moved_rows(covered, keeps, expected):
    rewrite = Rewrite((RewriteGroup((fragment(0), fragment(1)), (fragment(9),)),))
    index = CreateIndex((segment("id_idx", 0, *covered),))
    facts = replace(MOVED, keeps_indices=keeps)
    assert outcome(rewrite, index, facts) == expected
    system = CreateIndex((segment("__lance_frag_reuse", 0, *covered),))
    assert outcome(rewrite, system, facts) == "ok"


def test_an_index_gives_up_fragments_whose_values_changed():
    index = CreateIndex((segment("x_idx", 1, 0, 1), segment("id_idx", 0, 0, 1, uuid=2)))
    verdict = judge(transaction(index), transaction(OPERATIONS["Update cols f0"]))
    assert isinstance(verdict, Rebased)
    assert isinstance(verdict.operation, CreateIndex)
    covered = [set(one.fragment_ids or ()) for one in verdict.operation.new_indices]
    assert covered == [{1}, {0, 1}]


def test_an_index_on_a_column_that_is_gone_conflicts():
    index = OPERATIONS["CreateIndex y f0"]
    for schema, expected in ((Schema((ID, X)), "retry"), (SCHEMA, "ok")):
        assert outcome(index, Merge((fragment(0),), schema)) == expected
        assert outcome(index, Project(schema, preserves_nullability=True)) == expected
    assert outcome(CreateIndex((), index.new_indices), OPERATIONS["Project pres"]) == "ok"


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (config(k="1"), config(k=None), "stop"),
        (config(k=None), config(k="1"), "stop"),
        (config(k=None), config(k=None), "ok"),
        (config(k="1"), Overwrite((), SCHEMA, {"k": "2"}), "stop"),
        (Overwrite((), SCHEMA, {"k": "2"}), config(k="1"), "stop"),
        (Overwrite((), SCHEMA, {"k": "2"}), Overwrite((), SCHEMA, {"k": "2"}), "stop"),
        (Overwrite((), SCHEMA, {"k": "2"}), config(j="1"), "ok"),
        (
            UpdateConfig(table_metadata=MapUpdate({"a": "1"}, replace=True)),
            UpdateConfig(table_metadata=MapUpdate({"b": "1"})),
            "stop",
        ),
        (
            UpdateConfig(field_metadata={0: MapUpdate({"a": "1"})}),
            UpdateConfig(field_metadata={1: MapUpdate({"a": "1"})}),
            "ok",
        ),
    ],
)
def test_configuration_and_metadata(mine, theirs, expected):
    assert outcome(mine, theirs) == expected


def bases(id_, name, path):
    return UpdateBases((BasePath(id_, name, path, is_dataset_root=True),))


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (bases(1, "a", "/a"), bases(2, "b", "/b"), "ok"),
        (bases(0, None, "/a"), bases(0, None, "/b"), "ok"),
        (bases(1, "a", "/a"), bases(1, "b", "/b"), "stop"),
        (bases(1, "a", "/a"), bases(2, "a", "/b"), "stop"),
        (bases(1, "a", "/a"), bases(2, "b", "/a"), "stop"),
    ],
)
def test_bases(mine, theirs, expected):
    assert outcome(mine, theirs) == expected


def inserting(*hashes, fields=(0,)):
    return Update(new_fragments=(fragment(0),), inserted_rows=key_filter(fields, hashes))


def filtered(*hashes):
    return Update(inserted_rows=KeyFilter((0,), bloom_filter(hashes)))


H1, H2 = 0x0123456789ABCDEF, 0xFEDCBA9876543210


@pytest.mark.parametrize("mine", [inserting, filtered])
@pytest.mark.parametrize("theirs", [inserting, filtered])
def test_two_merges_never_insert_the_same_key(mine, theirs):
    assert outcome(mine(H1, 5), theirs(H1)) == "retry"
    assert outcome(mine(H1), theirs(H2)) == "ok"
    assert outcome(mine(), theirs()) == "ok"


@pytest.mark.parametrize(
    "theirs",
    [
        OPERATIONS["Append"],
        OPERATIONS["Update rows f1"],
        inserting(H2, fields=(1,)),
        DataReplacement((Replacement(5, FILE),)),
        Update(inserted_rows=KeyFilter((0,), bloom_filter([], blocks=2048))),
    ],
)
def test_keys_that_cannot_be_compared_are_not_trusted(theirs):
    mine = (
        filtered(H1)
        if isinstance(theirs, Update) and theirs.inserted_rows and theirs.new_fragments == ()
        else inserting(H1)
    )
    assert outcome(mine, theirs) == "retry"


def test_many_keys_become_a_filter_that_grows():
    hashes = [(n * 0x9E3779B97F4A7C15) & (2**64 - 1) for n in range(20_000)]
    made = key_filter((0,), hashes)
    assert isinstance(made.keys, BloomFilter)
    assert made.keys.num_bits == 8 * len(made.keys.bitmap) > 262_144
    assert outcome(Update(inserted_rows=made), inserting(hashes[777])) == "retry"
    others = [(n * 0xC2B2AE3D27D4EB4F + 1) & (2**64 - 1) for n in range(1, 50)]
    found = [outcome(Update(inserted_rows=made), inserting(other)) for other in others]
    assert found.count("ok") > 40
    assert key_filter((0,), hashes[:10]).keys == ExactKeys(frozenset(hashes[:10]))


def test_a_plain_update_may_follow_a_merge_elsewhere():
    assert outcome(OPERATIONS["Update rows f1"], inserting(H1)) == "ok"
    assert outcome(OPERATIONS["Append"], inserting(H1)) == "ok"
    assert outcome(replace(inserting(H1), new_fragments=()), OPERATIONS["Delete rows f0"]) == "ok"
