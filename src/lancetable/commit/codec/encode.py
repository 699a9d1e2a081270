"""Transactions into their messages."""

from typing import Any, TypeAlias, assert_never

from lancetable.commit.transaction import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    ExactKeys,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Transaction,
    Unknown,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)
from lancetable.errors import InputError
from lancetable.format.manifest.codec import encode_base_paths
from lancetable.format.manifest.fragments.codec import encode_fragments
from lancetable.format.manifest.fragments.entry.codec import encode_data_file
from lancetable.format.manifest.indices.codec import encode_files, encode_segments, encode_uuid
from lancetable.format.manifest.mem_wal.codec import encode_compacted
from lancetable.format.proto import transaction_pb2
from lancetable.format.schema.codec import encode_fields, encode_metadata
from lancetable.format.schema.model import Schema

_Message: TypeAlias = Any
_T = transaction_pb2.Transaction


def encode_transaction(transaction: Transaction) -> bytes:
    """Return the message of a transaction.

    Raises:
        InputError: the operation is not known to this release.
    """
    message = _T(
        read_version=transaction.read_version,
        uuid=transaction.uuid,
        tag=transaction.tag,
        transaction_properties=dict(transaction.properties),
        **_operation(transaction.operation),
    )
    return bytes(message.SerializeToString())


def _operation(  # noqa: C901, PLR0911, PLR0912 - one branch for each operation
    operation: Operation,
) -> dict[str, _Message]:
    match operation:
        case Append(fragments):
            return {"append": _T.Append(fragments=encode_fragments(fragments))}
        case Delete(updated, deleted, predicate):
            message = _T.Delete(
                updated_fragments=encode_fragments(updated),
                deleted_fragment_ids=deleted,
                predicate=predicate,
            )
            return {"delete": message}
        case Overwrite(fragments, schema, config, bases):
            message = _T.Overwrite(
                fragments=encode_fragments(fragments),
                config_upsert_values=dict(config),
                initial_bases=encode_base_paths(bases),
                **_schema_parts(schema),
            )
            return {"overwrite": message}
        case Update():
            return {"update": _update_message(operation)}
        case Merge(fragments, schema, preserves):
            message = _T.Merge(
                fragments=encode_fragments(fragments),
                preserves_nullability=preserves,
                **_schema_parts(schema),
            )
            return {"merge": message}
        case Rewrite():
            return {"rewrite": _rewrite_message(operation)}
        case CreateIndex(new, removed):
            message = _T.CreateIndex(
                new_indices=encode_segments(new), removed_indices=encode_segments(removed)
            )
            return {"create_index": message}
        case Restore(version):
            return {"restore": _T.Restore(version=version)}
        case ReserveFragments(count):
            return {"reserve_fragments": _T.ReserveFragments(num_fragments=count)}
        case Project(schema, preserves):
            message = _T.Project(schema=encode_fields(schema), preserves_nullability=preserves)
            return {"project": message}
        case UpdateConfig():
            return {"update_config": _update_config_message(operation)}
        case DataReplacement(replacements):
            groups = [
                _T.DataReplacementGroup(fragment_id=id_, new_file=encode_data_file(file))
                for id_, file in replacements
            ]
            return {"data_replacement": _T.DataReplacement(replacements=groups)}
        case UpdateMemWalState(tables):
            message = _T.UpdateMemWalState(merged_generations=encode_compacted(tables))
            return {"update_mem_wal_state": message}
        case Clone(is_shallow, name, version, path, branch):
            message = _T.Clone(
                is_shallow=is_shallow,
                ref_name=name,
                ref_version=version,
                ref_path=path,
                branch_name=branch,
            )
            return {"clone": message}
        case UpdateBases(bases):
            return {"update_bases": _T.UpdateBases(new_bases=encode_base_paths(bases))}
        case Unknown(name):
            raise InputError(f"operation {name!r} is not known to this release, nothing was done")
        case _:
            assert_never(operation)


def _schema_parts(schema: Schema) -> dict[str, _Message]:
    return {"schema": encode_fields(schema), "schema_metadata": encode_metadata(schema.metadata)}


def _rewrite_message(operation: Rewrite) -> _Message:
    message = _T.Rewrite()
    for old, new in operation.groups:
        message.groups.add(old_fragments=encode_fragments(old), new_fragments=encode_fragments(new))
    for index in operation.rewritten_indices:
        stored = message.rewritten_indices.add(
            old_id=encode_uuid(index.old_id),
            new_id=encode_uuid(index.new_id),
            new_index_version=index.index_version,
            new_index_files=encode_files(index.files),
        )
        if index.type_url or index.details:
            stored.new_index_details.type_url = index.type_url
            stored.new_index_details.value = index.details
    return message


def _update_message(operation: Update) -> _Message:
    message = _T.Update(
        removed_fragment_ids=operation.removed_fragment_ids,
        updated_fragments=encode_fragments(operation.updated_fragments),
        new_fragments=encode_fragments(operation.new_fragments),
        fields_modified=operation.fields_modified,
        merged_generations=encode_compacted(operation.compacted_sstables),
        fields_for_preserving_frag_bitmap=operation.fields_for_preserving_frag_bitmap,
        update_mode=int(operation.update_mode),
        updated_fragment_offset_bitmaps=dict(operation.updated_fragment_offset_bitmaps),
    )
    for id_, offsets in operation.updated_fragment_offsets.items():
        message.updated_fragment_offsets[id_].values.extend(offsets)
    if operation.inserted_rows is not None:
        fields, keys = operation.inserted_rows
        stored = message.inserted_rows
        stored.field_ids.extend(fields)
        if isinstance(keys, ExactKeys):
            stored.exact.key_hashes.extend(sorted(keys.key_hashes))
            stored.exact.SetInParent()
        else:
            stored.bloom.CopyFrom(_T.BloomFilter(**keys._asdict()))
    return message


def _map_update_message(update: MapUpdate) -> _Message:
    entries = [
        transaction_pb2.UpdateMapEntry(key=key, value=value)
        for key, value in update.entries.items()
    ]
    return transaction_pb2.UpdateMap(update_entries=entries, replace=update.replace)


def _update_config_message(operation: UpdateConfig) -> _Message:
    message = _T.UpdateConfig()
    for name in ("config", "table_metadata", "schema_metadata"):
        update = getattr(operation, name)
        if update is not None:
            getattr(message, f"{name}_updates").CopyFrom(_map_update_message(update))
    for id_, update in operation.field_metadata.items():
        message.field_metadata_updates[id_].CopyFrom(_map_update_message(update))
    return message
