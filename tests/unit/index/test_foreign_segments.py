"""Segments that this release does not use are passed over, and kept as they are by every commit."""

import logging
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.committer import commit
from lancetable.commit.transaction import CreateIndex
from lancetable.format.manifest.indices.codec import (
    decode_index_section,
    encode_index_section,
    encode_segments,
)
from lancetable.format.proto import table_pb2

LATER = b"\xa2\x06\x05later\xb0\x06\x07"
"""Fields 100 and 102 of a release to come."""
FOREIGN: dict[str, dict[str, Any]] = {
    "kind": {"type_url": "/lance.index.pb.LaterIndexDetails", "details": b"\x08\x01"},
    "version": {"index_version": 99},
    "details": {"type_url": "", "details": b""},
    "two": {"fields": (1, 2)},
    "fields of later releases": {"unknown": LATER, "type_url": "/x.LaterIndexDetails"},
    "no bitmap": {"fragment_bitmap": b""},
}


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    data = {"id": range(90), "a": range(90), "b": [i % 5 for i in range(90)]}
    made = lt.create_table(
        tmp_path / "t", pa.table(data), max_rows_per_file=30, stable_row_ids=request.param
    )
    made.indices.create("a", "btree")
    (one,) = made._snapshot.indices()
    foreign = tuple(
        one._replace(uuid=str(uuid4()), name=f"{name}_idx", **changes)
        for name, changes in FOREIGN.items()
    )
    commit(made._snapshot, CreateIndex(foreign, (one,)))
    return made.refresh()


def stored(table):
    """Return the messages of the segments by name, without what they cover."""
    found = {}
    for segment in table._snapshot.indices():
        (message,) = encode_segments([segment])
        message.fragment_bitmap = b""
        found[segment.name] = message.SerializeToString()
    return found


ACTS = {
    "append": lambda t: t.append(pa.table({"id": [1000], "a": [3], "b": [3]})),
    "delete": lambda t: t.delete("a = 4"),
    "update": lambda t: t.update({"b": "9"}, "id < 3"),
    "update in place": lambda t: t.update({"b": "9"}, "id < 3", mode="columns"),
    "create": lambda t: t.indices.create("id", "bitmap"),
    "optimize": lambda t: t.indices.optimize(mode="merge"),
    "remap": lambda t: t.compact(indices="remap", where="id = 1", deleted_share=0, target_rows=31),
    "compact": lambda t: t.compact(where="id > 70", deleted_share=0),
    "add a column": lambda t: t.columns.add({"c": "a + 1"}),
    "restore": lambda t: t.restore(t.version - 1),
    "config": lambda t: t.config.update({"k": "v"}),
}


@pytest.mark.parametrize("act", ACTS)
def test_they_are_kept(table, act, tmp_path):
    table.append(pa.table({"id": [500, 501], "a": [3, 4], "b": [3, 3]}))
    table.delete("id = 2")
    before = stored(table)
    ACTS[act](table)
    after = stored(table)
    assert {name: after[name] for name in before} == before
    for where in ("a = 3", "b = 3", "a < 5 or b = 4"):
        plain = table.scan(where=where, use_indices=False).to_arrow()
        assert table.scan(where=where).to_arrow().equals(plain)
        assert table.count(where) == len(plain)


def test_it_is_said_why(table, caplog):
    reasons = {one.name: one.unusable for one in table.indices.list()}
    assert reasons == {
        "kind_idx": "kind 'later' is not used in this release",
        "version_idx": "version 99 of kind 'btree' is not known",
        "details_idx": "it does not record its kind",
        "two_idx": "it has 2 fields, expected 1",
        "fields of later releases_idx": "kind 'later' is not used in this release",
        "no bitmap_idx": "it does not record which fragments it describes",
    }
    assert table.indices["kind_idx"].kind == "LaterIndexDetails"
    assert table.indices["two_idx"].columns == ("a", "b")
    with caplog.at_level(logging.DEBUG, "lancetable.scan"):
        explained = table.scan(where="a = 3").explain()
    assert "not used: version_idx, version 99 of kind 'btree'" in explained
    assert "not used" not in table.scan(where="b = 3").explain()
    for name in ("version_idx", "no bitmap_idx"):
        assert name in caplog.text
    assert "kind_idx: left as it is: kind 'later'" in table.indices.optimize(dry_run=True).explain()
    assert not table.indices.optimize().is_new_version
    assert "version_idx: not used, version 99" in repr(table)
    assert table.inspect.indices()["unusable"].null_count == 0


def test_an_update_in_place_of_their_column_takes_what_they_may_describe(table):
    table.update({"a": "7"}, "id < 3", mode="columns")
    covered = {one.name: one.fragment_ids for one in table._snapshot.indices()}
    assert covered["kind_idx"] == {1, 2}
    assert covered["no bitmap_idx"] == frozenset()


def test_fields_of_later_releases_survive():
    message = table_pb2.IndexMetadata(uuid={"uuid": bytes(16)}, name="i", fields=[1])
    section = table_pb2.IndexSection(indices=[message]).SerializeToString()
    inner = message.SerializeToString() + LATER
    section = b"\x0a" + bytes([len(inner)]) + inner
    (one,) = decode_index_section(section)
    assert one.unknown == LATER
    assert encode_index_section([one]) == section


def test_an_old_layout_is_told_by_its_files(tmp_path):
    table = lt.create_table(tmp_path / "t", pa.table({"a": range(10)}))
    table.indices.create("a", "btree")
    (one,) = table._snapshot.indices()
    commit(table._snapshot, CreateIndex((one._replace(files=()),), (one,)))
    for file in (tmp_path / "t" / "_indices" / one.uuid).iterdir():
        content = file.read_bytes()
        file.write_bytes(content[:-8] + b"\x00\x00\x02\x00" + content[-4:])
    assert "version 0.2" in str(table.refresh().indices["a_idx"].unusable)
    assert "version 0.2" in table.indices.optimize(mode="rebuild", dry_run=True).explain()
    assert table.scan(where="a = 3").to_arrow().num_rows == 1
