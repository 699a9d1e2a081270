"""The record of the write-ahead log and shard manifests keep everything they are given."""

from uuid import UUID

import pytest

from lancetable.errors import CorruptError, InputError
from lancetable.format.manifest.mem_wal.codec import (
    decode_details,
    decode_shard,
    encode_details,
    encode_shard,
)
from lancetable.format.manifest.mem_wal.model import (
    CompactedSsTable,
    IndexCatchup,
    MemWalDetails,
    ShardFieldEntry,
    ShardingField,
    ShardingSpec,
    ShardManifest,
    ShardStatus,
    SsTable,
)

SHARD = str(UUID(int=5))
LATER = b"\xa2\x06\x03new"
"""Field 100, which no description has."""
MERGED = CompactedSsTable(SHARD, 3, LATER)
FIELD = ShardingField("f", (1, 2), "int32", "bucket", None, {"num_buckets": "4"}, LATER)
DETAILS = MemWalDetails(
    7,
    2,
    b"",
    (ShardingSpec(1, (FIELD,), LATER),),
    ("i", "j"),
    (MERGED,),
    (IndexCatchup("i", (MERGED,), LATER),),
    {"durable_write": "true"},
    False,
    LATER,
)
MANIFEST = ShardManifest(
    SHARD,
    version=2,
    writer_epoch=1,
    replay_after=3,
    last_seen=4,
    current_generation=2,
    sstables=(SsTable(1, "a_gen_1", 211, 0, None, LATER),),
    spec_id=1,
    field_entries=(ShardFieldEntry("f", b"\x01\0\0\0", LATER),),
    status=ShardStatus.SEALED,
    unknown=LATER,
)


def test_values_come_back_with_unknown_fields():
    assert decode_details(encode_details(DETAILS)) == DETAILS
    assert decode_shard(encode_shard(MANIFEST)) == MANIFEST
    assert encode_details(decode_details(b"")) == b""


def test_bytes_of_another_writer():
    id_ = UUID(SHARD).bytes
    data = (
        bytes.fromhex("08021001180320033002421908011 20e".replace(" ", ""))
        + b"ff06bf39_gen_1"
        + bytes.fromhex("18d301200528285a120a10")
        + id_
    )
    found = decode_shard(data)
    assert found.sstables == (SsTable(1, "ff06bf39_gen_1", 211, 5, 40),)
    assert (found.shard_id, found.version, found.current_generation) == (SHARD, 2, 2)
    assert encode_shard(found) == data


def test_merged_generations_only_grow():
    other = str(UUID(int=6))
    made = DETAILS.with_compacted([CompactedSsTable(SHARD, 9), CompactedSsTable(other, 1)])
    assert made.compacted == (CompactedSsTable(SHARD, 9, LATER), CompactedSsTable(other, 1))
    for wrong in (CompactedSsTable(SHARD, 3), CompactedSsTable(other, 0)):
        with pytest.raises(InputError, match="is not newer than generation"):
            DETAILS.with_compacted([wrong])


@pytest.mark.parametrize("data", [b"\x4a", b"\x0b", b"\x5a\x02\x0a\x00", b"\xff" * 12])
def test_damage_is_refused(data):
    with pytest.raises(CorruptError):
        decode_shard(data)


def test_a_generation_stays_in_the_folder_of_its_shard():
    with pytest.raises(CorruptError, match="does not stay inside"):
        decode_shard(encode_shard(ShardManifest(SHARD, 1, sstables=(SsTable(1, "../x"),))))
