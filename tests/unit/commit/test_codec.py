"""Transactions in both directions, and the dialects of older writers."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.commit.codec.decode import decode_transaction
from lancetable.commit.codec.encode import encode_transaction
from lancetable.commit.transaction import (
    COMMIT_MESSAGE,
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
    RewrittenIndex,
    Transaction,
    Unknown,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from lancetable.errors import CorruptError, InputError, LanceTableError
from lancetable.format.manifest import (
    BasePath,
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionKind,
    ExternalSequence,
    Fragment,
    IndexFile,
    IndexSegment,
    InlineSequence,
)
from lancetable.format.manifest.mem_wal.model import CompactedSsTable
from lancetable.format.proto import table_pb2, transaction_pb2
from lancetable.format.schema import Field, Schema

JSON = "lance.json"
ONE, TWO = str(UUID(int=1)), str(UUID(int=2))
FILE = DataFile("a.lance", (0, -2), (0, 1), 2, 1, 77, 0)
FRAGMENT = Fragment(
    3,
    (FILE, DataFile("b.lance", (1,), (-1,), 2, 2)),
    DeletionFile(DeletionKind.BITMAP, 4, 2**64 - 1, 3, 0),
    10,
    InlineSequence(b"\n\x00"),
    ExternalSequence("rows", 1, 2),
    ColumnSequence(),
)
PLAIN = Fragment(0, (), DeletionFile(DeletionKind.ARROW, 0, 0), 0)
SCHEMA = Schema(
    (
        Field("id", 0, "int64", False, metadata={"k": "v"}, primary_key_position=2),
        Field("s", 1, "struct", children=(Field("t", 2, "dict:string:int8:false"),)),
        Field(
            "j",
            3,
            "json",
            metadata={"ARROW:extension:name": "lance.json"},
            extension_name="lance.json",
        ),
        Field("c", 4, "int8", metadata={"lance-schema:unenforced-clustering-key": "true"}),
    ),
    {"about": "it"},
)
SEGMENT = IndexSegment(
    ONE,
    "i",
    (0,),
    4,
    b"bits",
    "/lance.table.X",
    b"d",
    0,
    None,
    0,
    (IndexFile("f", 5),),
    (1,),
    {"m": b"x"},
)
BASE = BasePath(0, None, "/b", is_dataset_root=False)
LOG = (CompactedSsTable(ONE, 7),)
BLOOM = BloomFilter(bytes(32), 256, 8, 0.5)

OPERATIONS = [
    Append((FRAGMENT, PLAIN)),
    Delete((FRAGMENT,), (1, 2), "a > 1"),
    Overwrite((FRAGMENT,), SCHEMA, {"k": "v"}, (BASE, BasePath(1, "n", "/c", True))),
    CreateIndex((SEGMENT,), (IndexSegment(TWO, "j", (), 0),)),
    Rewrite(
        (RewriteGroup((FRAGMENT,), (PLAIN,)), RewriteGroup((), ())),
        (RewrittenIndex(ONE, TWO, "/u", b"d", 2, (IndexFile("f", 5),)), RewrittenIndex(TWO, ONE)),
    ),
    Merge((FRAGMENT,), SCHEMA, preserves_nullability=True),
    Restore(2**40),
    ReserveFragments(7),
    Update(),
    Update(
        (1,),
        (FRAGMENT,),
        (PLAIN,),
        (4,),
        LOG,
        (0, 1),
        UpdateMode.REWRITE_COLUMNS,
        KeyFilter((0,), ExactKeys(frozenset({0, 2**64 - 1}))),
        {3: (0, 5)},
        {4: b"bits"},
    ),
    Update(inserted_rows=KeyFilter((0, 1), BLOOM)),
    Update(inserted_rows=KeyFilter((0,), ExactKeys(frozenset()))),
    Project(SCHEMA._replace(metadata={}), preserves_nullability=True),
    UpdateConfig(),
    UpdateConfig(
        MapUpdate({"a": "1", "b": None, "c": ""}),
        MapUpdate({}, replace=True),
        MapUpdate({"s": "t"}),
        {0: MapUpdate({"f": None}), 5: MapUpdate({}, replace=True)},
    ),
    DataReplacement((Replacement(3, FILE),)),
    UpdateMemWalState(LOG),
    Clone(is_shallow=True, ref_name=None, ref_version=3, ref_path="/t", branch_name="dev"),
    Clone(is_shallow=False, ref_name="main", ref_version=3, ref_path="/t"),
    UpdateBases((BASE,)),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
def test_there_and_back(operation):
    transaction = Transaction(9, "u-u-i-d", operation, {COMMIT_MESSAGE: "why", "k": "v"}, "tag")
    found = decode_transaction(encode_transaction(transaction))
    assert found == transaction
    assert found.operation_name == type(operation).__name__
    assert found.message == "why"


def test_what_cannot_be_written():
    with pytest.raises(InputError, match="'Later'"):
        encode_transaction(Transaction(1, "u", Unknown("Later")))
    with pytest.raises(InputError, match="is not a UUID"):
        encode_transaction(Transaction(1, "u", UpdateMemWalState((CompactedSsTable("x", 1),))))


def decoded(**operation):
    message = transaction_pb2.Transaction(uuid="u", **operation)
    return decode_transaction(message.SerializeToString())


def test_operations_that_are_not_known():
    assert decoded(data_overlay={}).operation == Unknown("DataOverlay")
    assert decoded().operation == Unknown("Unknown")
    later = transaction_pb2.Transaction(uuid="u").SerializeToString() + b"\xa2\x07\x00"
    assert decode_transaction(later).operation_name == "Unknown"


def test_configuration_before_there_were_update_maps():
    old = decoded(
        update_config={
            "upsert_values": {"a": "1"},
            "delete_keys": ["b"],
            "schema_metadata": {"s": "t"},
            "field_metadata": {3: {"metadata": {"f": "g"}}},
        }
    )
    assert old.operation == UpdateConfig(
        MapUpdate({"b": None, "a": "1"}),
        None,
        MapUpdate({"s": "t"}, replace=True),
        {3: MapUpdate({"f": "g"}, replace=True)},
    )


def test_a_rewrite_before_there_were_groups():
    old = decoded(
        rewrite={"old_fragments": [{"id": 1}, {"id": 2}], "new_fragments": [{"id": 3}]}
    ).operation
    assert isinstance(old, Rewrite)
    ((before, after),) = old.groups
    assert [one.id for one in before] == [1, 2]
    assert [one.id for one in after] == [3]


@pytest.mark.parametrize(
    "operation",
    [
        {"update": {"update_mode": 7}},
        {"update_mem_wal_state": {"merged_generations": [{"generation": 1}]}},
        {"create_index": {"new_indices": [{"name": "i"}]}},
        {"project": {"schema": [{"id": 1, "parent_id": 9}]}},
        {"data_replacement": {"replacements": [{"new_file": {"path": "../x"}}]}},
    ],
)
def test_damaged_operations(operation):
    with pytest.raises(CorruptError):
        decoded(**operation)


def test_a_damaged_fragment_is_noticed_when_it_is_looked_at():
    found = decoded(append={"fragments": [table_pb2.DataFragment(id=2**40)]}).operation
    assert isinstance(found, Append)
    with pytest.raises(CorruptError, match="the transaction: fragment 1099511627776"):
        list(found.fragments)


@given(st.data())
def test_damage_never_escapes(data):
    good = encode_transaction(Transaction(9, "u", data.draw(st.sampled_from(OPERATIONS))))
    damaged = bytearray(good)
    place = data.draw(st.integers(0, len(good) - 1))
    damaged[place] ^= data.draw(st.integers(1, 255))
    for content in (bytes(damaged), good[:place]):
        try:
            operation = decode_transaction(content).operation
            for name in ("fragments", "updated_fragments", "new_fragments"):
                list(getattr(operation, name, ()))
        except LanceTableError:
            continue
