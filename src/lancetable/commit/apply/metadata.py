"""Apply updates of configuration and metadata to a manifest."""

from collections.abc import Mapping

from lancetable.commit.transaction import MapUpdate, UpdateConfig
from lancetable.errors import InputError
from lancetable.format.manifest import Manifest
from lancetable.format.schema.model import EXTENSION_NAME, Field, primary_key_position


def updated_config(manifest: Manifest, operation: UpdateConfig) -> Manifest:
    """Return the manifest after an update of its mappings.

    Raises:
        InputError: the schema does not have a named field.
    """
    schema = manifest.schema
    if operation.schema_metadata is not None:
        schema = schema._replace(metadata=updated(schema.metadata, operation.schema_metadata))
    if operation.field_metadata:
        known = {field.id for field in schema.walk()}
        missing = operation.field_metadata.keys() - known
        if missing:
            raise InputError(
                f"the schema has no field with the id {min(missing)}, so its metadata cannot be set"
            )
        fields = tuple(_described(field, operation.field_metadata) for field in schema.fields)
        schema = schema._replace(fields=fields)
    config, table = operation.config, operation.table_metadata
    return manifest._replace(
        schema=schema,
        config=manifest.config if config is None else updated(manifest.config or {}, config),
        table_metadata=(
            manifest.table_metadata
            if table is None
            else updated(manifest.table_metadata or {}, table)
        ),
    )


def updated(mapping: Mapping[str, str], update: MapUpdate) -> dict[str, str]:
    """Return a mapping after an update."""
    result = {} if update.replace else dict(mapping)
    for key, value in update.entries.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


def _described(field: Field, updates: Mapping[int, MapUpdate]) -> Field:
    children = tuple(_described(child, updates) for child in field.children)
    update = updates.get(field.id)
    if update is None:
        return field if children == field.children else field._replace(children=children)
    metadata = updated(field.metadata, update)
    position = primary_key_position(metadata)
    if position is None and primary_key_position(field.metadata) is None:
        # Old tables mark the key outside the metadata.
        position = field.primary_key_position
    extension = field.extension_name
    if EXTENSION_NAME in field.metadata or EXTENSION_NAME in metadata:
        extension = metadata.get(EXTENSION_NAME, "")
    return field._replace(
        children=children,
        metadata=metadata,
        primary_key_position=position,
        extension_name=extension,
    )
