"""Where the files of a version are, and what else its manifest file holds."""

import pickle
import struct

import pytest

from lancetable.commit import Snapshot, load
from lancetable.errors import CorruptError
from lancetable.format.manifest import (
    BasePath,
    DataFile,
    DeletionFile,
    DeletionKind,
    Fragment,
    IndexSegment,
    Manifest,
)
from lancetable.format.manifest.codec import decode_manifest
from lancetable.format.manifest.envelope import seal
from lancetable.format.proto import table_pb2, transaction_pb2
from lancetable.format.schema import Schema
from lancetable.store import TableLocation
from lancetable.store.memory import MemoryStore

PATH = "_versions/1.manifest"
DELETED = DeletionFile(DeletionKind.ARROW, 1, 2)


def snapshot(*bases, store=None):
    manifest = Manifest(1, Schema(()), (), base_paths=bases)
    return Snapshot(TableLocation("/t"), store or MemoryStore(), manifest, PATH)


def place(found):
    store, path = found
    return f"{store.root}/{path}"


def test_files_of_the_table_itself():
    here = snapshot()
    assert place(here.data_file_place(DataFile("a.lance", (0,)))) == "memory:/data/a.lance"
    deleted = here.deletion_file_place(Fragment(7, ()), DELETED)
    assert place(deleted) == "memory:/_deletions/7-1-2.arrow"
    assert place(here.index_place(IndexSegment("u", "i", (), 1))) == "memory:/_indices/u"


@pytest.mark.parametrize(
    ("is_root", "data", "deletion", "index"),
    [
        (True, "/b/data/a", "/b/_deletions/7-1-2.arrow", "/b/_indices/u"),
        (False, "/b/a", "/b/7-1-2.arrow", "/b/u"),
    ],
)
def test_files_of_a_base(is_root, data, deletion, index):
    here = snapshot(BasePath(0, None, "/b", is_root))
    assert place(here.data_file_place(DataFile("a", (0,), base_id=0))) == data
    deleted = here.deletion_file_place(Fragment(7, ()), DELETED._replace(base_id=0))
    assert place(deleted) == deletion
    assert place(here.index_place(IndexSegment("u", "i", (), 1, base_id=0))) == index


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "s3://b/x"])
@pytest.mark.parametrize("base_id", [None, 0, 1])
def test_a_path_that_leaves_its_base(path, base_id):
    here = snapshot(
        BasePath(0, None, "/b", is_dataset_root=True),
        BasePath(1, None, "/c", is_dataset_root=False),
    )
    with pytest.raises(CorruptError, match="does not stay"):
        here.data_file_place(DataFile(path, (0,), base_id=base_id))


def test_a_base_that_is_not_listed():
    with pytest.raises(CorruptError, match="base path 3 is not listed; listed are: 0"):
        snapshot(BasePath(0, None, "/b", is_dataset_root=True)).data_file_place(
            DataFile("a", (0,), base_id=3)
        )


@pytest.mark.parametrize("path", ["b", "../b", "", "/a\0b"])
def test_a_base_that_is_not_absolute(path):
    with pytest.raises(CorruptError, match="not absolute"):
        snapshot(BasePath(0, None, path, is_dataset_root=True)).data_file_place(
            DataFile("a", (0,), base_id=0)
        )


def stored(sections=b"", files=(), **more):
    data = seal(sections, table_pb2.Manifest(version=1, **more).SerializeToString())
    store = MemoryStore({PATH: data, **dict(files)})
    return Snapshot(TableLocation("/t"), store, decode_manifest(data, PATH), PATH)


def framed(message):
    data = message.SerializeToString()
    return struct.pack("<I", len(data)) + data


def transaction(uuid):
    made = transaction_pb2.Transaction(read_version=4, uuid=uuid)
    made.update_mem_wal_state.SetInParent()
    made.transaction_properties["__lance_commit_message"] = "why"
    return made


def test_the_transaction_in_the_manifest_file():
    both = framed(transaction("old")), framed(transaction("new"))
    found = stored(
        b"".join(both), transaction_section=0, current_transaction_section=len(both[0])
    ).transaction()
    assert found is not None
    assert (found.uuid, found.read_version, found.operation_name) == ("new", 4, "UpdateMemWalState")
    assert found.message == "why"


def test_the_transaction_in_its_own_file():
    file = transaction("own").SerializeToString()
    found = stored(files={"_transactions/x.txn": file}.items(), transaction_file="x.txn")
    here = found.transaction()
    assert here is not None
    assert here.uuid == "own"


def test_no_transaction():
    assert stored().transaction() is None
    assert stored(transaction_file="gone.txn").transaction() is None


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"transaction_section": 999}, "beyond the end"),
        ({"transaction_section": 0}, "valid message"),
        ({"transaction_file": "../../x"}, "does not stay"),
    ],
)
def test_a_damaged_transaction(more, word):
    with pytest.raises(CorruptError, match=word):
        stored(struct.pack("<I", 2) + b"\xff\xff", **more).transaction()


def test_the_index_section():
    index = table_pb2.IndexMetadata(name="i", uuid=table_pb2.UUID(uuid=bytes(16)))
    found = stored(framed(table_pb2.IndexSection(indices=[index])), index_section=0)
    assert [segment.name for segment in found.indices()] == ["i"]
    found.store.delete(PATH)
    assert found.indices() is found.indices()
    sent = pickle.loads(pickle.dumps(found._replace(store=None)))
    assert sent == found._replace(store=None)
    assert not vars(sent)
    assert stored().indices() == ()
    with pytest.raises(CorruptError, match=PATH):
        stored(index_section=2**40).indices()


def test_the_golden_history_says_how_it_came_about(history):
    operations = [
        made.operation_name
        for version in range(1, 7)
        if (made := load(TableLocation(history), version=version).transaction()) is not None
    ]
    assert operations == ["Overwrite", "Append", "Delete", "Merge", "Update", "Update"]
