"""The primary key, as recorded in the metadata of its fields."""

from collections.abc import Mapping

from lancetable.format.schema.model import Field, Schema

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
_TRUE = {"true", "1", "yes"}


def primary_key_position(metadata: Mapping[str, str]) -> int | None:
    """Return the place in the key that metadata gives a field; 0 for one without a number."""
    position = metadata.get(PRIMARY_KEY_POSITION, "")
    if position.isascii() and position.isdigit() and len(position) <= 10:
        return int(position)
    return 0 if metadata.get(PRIMARY_KEY, "").lower() in _TRUE else None


def primary_key(schema: Schema) -> tuple[Field, ...]:
    """Return the fields of the key: numbered ones first, the others by id."""
    members = [field for field in schema.walk() if field.primary_key_position is not None]
    return tuple(sorted(members, key=lambda field: (_rank(field), field.id)))


def _rank(field: Field) -> int:
    return field.primary_key_position or 2**32
