"""The write-ahead log between its messages and values."""

from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from lancetable.errors import CorruptError
from lancetable.format.manifest.indices.codec import decode_uuid, encode_uuid
from lancetable.format.manifest.mem_wal.model import (
    CompactedSsTable,
    IndexCatchup,
    MemWalDetails,
    ShardFieldEntry,
    ShardingField,
    ShardingSpec,
    ShardManifest,
    SsTable,
)
from lancetable.format.manifest.names import checked_path
from lancetable.format.proto import mem_wal_pb2, transaction_pb2

_M = TypeVar("_M", bound=Message)


def decode_details(details: bytes) -> MemWalDetails:
    """Return the record of the log in the manifest of the base table.

    Raises:
        CorruptError: the bytes are damaged.
    """
    message = _parsed(mem_wal_pb2.MemWalIndexDetails, details, "the record of the write-ahead log")
    return MemWalDetails(
        message.snapshot_ts_millis,
        message.num_regions,
        _given(message, "inline_snapshots"),
        tuple(map(_spec, message.region_specs)),
        tuple(message.maintained_indexes),
        decode_compacted(message.merged_generations),
        tuple(
            IndexCatchup(one.index_name, decode_compacted(one.caught_up_generations), _unknown(one))
            for one in message.index_catchup
        ),
        dict(message.writer_config_defaults),
        _given(message, "maintain_all_indexes"),
        _unknown(message),
    )


def encode_details(details: MemWalDetails) -> bytes:
    """Return the details of the index segment that holds a record."""
    message = mem_wal_pb2.MemWalIndexDetails(
        snapshot_ts_millis=details.snapshot_millis,
        num_regions=details.num_shards,
        inline_snapshots=details.inline_snapshots,
        region_specs=map(_spec_message, details.sharding_specs),
        maintained_indexes=details.maintained_indexes,
        merged_generations=encode_compacted(details.compacted),
        index_catchup=[
            _with_unknown(
                mem_wal_pb2.IndexCatchupProgress(
                    index_name=one.index_name,
                    caught_up_generations=encode_compacted(one.generations),
                ),
                one.unknown,
            )
            for one in details.index_catchup
        ],
        writer_config_defaults=dict(details.writer_defaults),
        maintain_all_indexes=details.maintain_all_indexes,
    )
    return _bytes(_with_unknown(message, details.unknown))


def decode_shard(data: bytes) -> ShardManifest:
    """Return one version of the state of a shard.

    Raises:
        CorruptError: the bytes are damaged, or a path leaves the folder of the shard.
    """
    message = _parsed(mem_wal_pb2.RegionManifest, data, "the manifest of a shard")
    return ShardManifest(
        decode_uuid(message.region_id, "a shard"),
        message.version,
        message.writer_epoch,
        message.replay_after_wal_entry_position,
        message.wal_entry_position_last_seen,
        message.current_generation,
        tuple(map(_sstable, message.flushed_generations)),
        message.region_spec_id,
        tuple(
            ShardFieldEntry(one.field_id, one.value, _unknown(one))
            for one in message.shard_field_entries
        ),
        message.status,
        _unknown(message),
    )


def encode_shard(manifest: ShardManifest) -> bytes:
    """Return the content of the file of one version of a shard."""
    message = mem_wal_pb2.RegionManifest(
        region_id=encode_uuid(manifest.shard_id),
        version=manifest.version,
        writer_epoch=manifest.writer_epoch,
        replay_after_wal_entry_position=manifest.replay_after,
        wal_entry_position_last_seen=manifest.last_seen,
        current_generation=manifest.current_generation,
        flushed_generations=map(_sstable_message, manifest.sstables),
        region_spec_id=manifest.spec_id,
        shard_field_entries=[
            _with_unknown(
                mem_wal_pb2.RegionFieldEntry(field_id=one.field_id, value=one.value), one.unknown
            )
            for one in manifest.field_entries
        ],
        status=int(manifest.status),
    )
    return _bytes(_with_unknown(message, manifest.unknown))


def decode_compacted(messages: Iterable[Any]) -> tuple[CompactedSsTable, ...]:
    """Return how far shards were merged.

    Raises:
        CorruptError: the id of a shard has not 16 bytes.
    """
    return tuple(
        CompactedSsTable(decode_uuid(one.region_id, "a shard"), one.generation, _unknown(one))
        for one in messages
    )


def encode_compacted(tables: Iterable[CompactedSsTable]) -> list[Any]:
    """Return the messages that record how far shards were merged.

    Raises:
        InputError: the id of a shard is not a UUID.
    """
    return [
        _with_unknown(
            transaction_pb2.MergedGeneration(
                region_id=encode_uuid(one.shard_id), generation=one.generation
            ),
            one.unknown,
        )
        for one in tables
    ]


def _parsed(kind: type[_M], data: bytes, name: str) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError:
        raise CorruptError(f"{name} is not a valid message") from None


def _given(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _unknown(message: Any) -> bytes:
    """Return the fields of a message that its description does not have."""
    rest = type(message)()
    rest.CopyFrom(message)
    for known in message.DESCRIPTOR.fields:
        rest.ClearField(known.name)
    return _bytes(rest)


def _with_unknown(message: Any, unknown: bytes) -> Any:
    message.MergeFromString(unknown)
    return message


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def _spec(message: Any) -> ShardingSpec:
    fields = tuple(
        ShardingField(
            one.field_id,
            tuple(one.source_ids),
            one.result_type,
            _given(one, "transform"),
            _given(one, "expression"),
            dict(one.parameters),
            _unknown(one),
        )
        for one in message.fields
    )
    return ShardingSpec(message.spec_id, fields, _unknown(message))


def _spec_message(spec: ShardingSpec) -> Any:
    message = mem_wal_pb2.RegionSpec(spec_id=spec.spec_id)
    for one in spec.fields:
        made = message.fields.add(
            field_id=one.field_id,
            source_ids=one.source_ids,
            transform=one.transform,
            expression=one.expression,
            result_type=one.result_type,
            parameters=dict(one.parameters),
        )
        _with_unknown(made, one.unknown)
    return _with_unknown(message, spec.unknown)


def _sstable(message: Any) -> SsTable:
    return SsTable(
        message.generation,
        checked_path(message.path, "generation"),
        _given(message, "in_memory_bytes"),
        _given(message, "physical_rows"),
        _given(message, "primary_key_bytes"),
        _unknown(message),
    )


def _sstable_message(table: SsTable) -> Any:
    message = mem_wal_pb2.FlushedGeneration(
        generation=table.generation,
        path=table.path,
        in_memory_bytes=table.in_memory_bytes,
        physical_rows=table.physical_rows,
        primary_key_bytes=table.primary_key_bytes,
    )
    return _with_unknown(message, table.unknown)
