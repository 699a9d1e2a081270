"""Transactions from their messages.

Old dialects are read: configuration changes before there were update maps, and rewrites before
there were groups. An operation that is not known becomes :class:`Unknown`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError

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
    Operation,
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
from lancetable.errors import CorruptError
from lancetable.format.manifest.codec import decode_base_paths
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.manifest.fragments.entry.codec import decode_data_file
from lancetable.format.manifest.indices.codec import (
    decode_files,
    decode_segments,
    decode_uuid,
)
from lancetable.format.manifest.mem_wal.codec import decode_compacted
from lancetable.format.manifest.model import Trust
from lancetable.format.proto import file_pb2, transaction_pb2
from lancetable.format.schema.codec import decode_fields, decode_metadata
from lancetable.format.schema.model import Field, Schema

_Message: TypeAlias = Any
_T = transaction_pb2.Transaction
_TRUST = Trust()


def decode_transaction(data: bytes | memoryview) -> Transaction:
    """Return the transaction of a message; its fragments are decoded when they are looked at.

    Raises:
        CorruptError: the bytes are not such a message.
    """
    try:
        message = _T.FromString(data)
    except DecodeError:
        raise CorruptError("the transaction is not a valid message") from None
    name = message.WhichOneof("operation")
    decode = _DECODERS.get(name)
    operation: Operation
    if decode is None:
        words = (name or "unknown").split("_")
        operation = Unknown("".join(word.capitalize() for word in words))
    else:
        operation = decode(getattr(message, name))
    return Transaction(
        message.read_version,
        message.uuid,
        operation,
        dict(message.transaction_properties),
        message.tag,
    )


def _fragments(messages: Sequence[_Message]) -> StoredFragments:
    return StoredFragments(messages, _TRUST)


def _schema(message: _Message) -> Schema:
    metadata = getattr(message, "schema_metadata", {})
    # Thousands of versions have the same schema; telling that is cheaper than decoding it.
    parts = tuple([field.SerializeToString(deterministic=True) for field in message.schema])
    return Schema(_fields(parts), decode_metadata(metadata))


@lru_cache(maxsize=64)
def _fields(parts: tuple[bytes, ...]) -> tuple[Field, ...]:
    return decode_fields([file_pb2.Field.FromString(part) for part in parts])


def _create_index(message: _Message) -> CreateIndex:
    return CreateIndex(
        tuple(decode_segments(message.new_indices)), tuple(decode_segments(message.removed_indices))
    )


def _rewrite(message: _Message) -> Rewrite:
    groups = [
        RewriteGroup(_fragments(group.old_fragments), _fragments(group.new_fragments))
        for group in message.groups
    ]
    if message.old_fragments or message.new_fragments:
        groups.append(
            RewriteGroup(_fragments(message.old_fragments), _fragments(message.new_fragments))
        )
    indices = [
        RewrittenIndex(
            decode_uuid(index.old_id, "a rewritten index"),
            decode_uuid(index.new_id, "a rewritten index"),
            index.new_index_details.type_url,
            index.new_index_details.value,
            index.new_index_version,
            decode_files(index.new_index_files),
        )
        for index in message.rewritten_indices
    ]
    return Rewrite(tuple(groups), tuple(indices))


def _key_filter(message: _Message) -> KeyFilter:
    fields = tuple(message.field_ids)
    if message.WhichOneof("data") == "exact":
        return KeyFilter(fields, ExactKeys(frozenset(message.exact.key_hashes)))
    bloom = message.bloom
    return KeyFilter(
        fields,
        BloomFilter(bloom.bitmap, bloom.num_bits, bloom.number_of_items, bloom.probability),
    )


def _update(message: _Message) -> Update:
    try:
        mode = UpdateMode(message.update_mode)
    except ValueError:
        raise CorruptError(f"update mode {message.update_mode} is not known") from None
    return Update(
        tuple(message.removed_fragment_ids),
        _fragments(message.updated_fragments),
        _fragments(message.new_fragments),
        tuple(message.fields_modified),
        decode_compacted(message.merged_generations),
        tuple(message.fields_for_preserving_frag_bitmap),
        mode,
        _key_filter(message.inserted_rows) if message.HasField("inserted_rows") else None,
        {id_: tuple(found.values) for id_, found in message.updated_fragment_offsets.items()},
        dict(message.updated_fragment_offset_bitmaps),
    )


def _map_update(message: _Message) -> MapUpdate:
    entries = {
        entry.key: entry.value if entry.HasField("value") else None
        for entry in message.update_entries
    }
    return MapUpdate(entries, message.replace)


def _update_config(message: _Message) -> UpdateConfig:
    found = {
        name: _map_update(getattr(message, f"{name}_updates"))
        for name in ("config", "table_metadata", "schema_metadata")
        if message.HasField(f"{name}_updates")
    }
    fields = {id_: _map_update(one) for id_, one in message.field_metadata_updates.items()}
    if message.upsert_values or message.delete_keys:
        entries = {**dict.fromkeys(message.delete_keys), **message.upsert_values}
        found.setdefault("config", MapUpdate(entries))
    if message.schema_metadata:
        found.setdefault("schema_metadata", MapUpdate(dict(message.schema_metadata), replace=True))
    for id_, one in message.field_metadata.items():
        fields.setdefault(id_, MapUpdate(dict(one.metadata), replace=True))
    return UpdateConfig(**found, field_metadata=fields)


_DECODERS: Mapping[str | None, Callable[[_Message], Operation]] = {
    "append": lambda m: Append(_fragments(m.fragments)),
    "delete": lambda m: Delete(
        _fragments(m.updated_fragments), tuple(m.deleted_fragment_ids), m.predicate
    ),
    "overwrite": lambda m: Overwrite(
        _fragments(m.fragments),
        _schema(m),
        dict(m.config_upsert_values),
        decode_base_paths(m.initial_bases),
    ),
    "create_index": _create_index,
    "rewrite": _rewrite,
    "merge": lambda m: Merge(_fragments(m.fragments), _schema(m), m.preserves_nullability),
    "restore": lambda m: Restore(m.version),
    "reserve_fragments": lambda m: ReserveFragments(m.num_fragments),
    "update": _update,
    "project": lambda m: Project(_schema(m), m.preserves_nullability),
    "update_config": _update_config,
    "data_replacement": lambda m: DataReplacement(
        tuple(Replacement(r.fragment_id, decode_data_file(r.new_file)) for r in m.replacements)
    ),
    "update_mem_wal_state": lambda m: UpdateMemWalState(decode_compacted(m.merged_generations)),
    "clone": lambda m: Clone(
        m.is_shallow,
        m.ref_name if m.HasField("ref_name") else None,
        m.ref_version,
        m.ref_path,
        m.branch_name if m.HasField("branch_name") else None,
    ),
    "update_bases": lambda m: UpdateBases(decode_base_paths(m.new_bases)),
}
