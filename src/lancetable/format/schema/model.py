"""The schema of a table: a tree of fields with ids that never change their meaning.

On disk the tree is a list in depth-first order, each field naming its parent; here it is a tree.
Field ids, not names or positions, connect the schema with the columns of data files. The primary
key is recorded in the metadata of its fields.
"""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
Blobs: TypeAlias = Literal["descriptions", "bytes"]
"""What blob columns hold when they are read."""

BLOB_KEY = "lance-encoding:blob"
"""Marks a blob column; other writers look for the key only, whatever its value."""
STORAGE_CLASS = "lance-schema:storage-class"
"""Where releases 0.19 to 0.39 keep a column: in the blob dataset when the value is ``blob``."""
PACKED_KEYS = ("lance-encoding:packed", "packed")
BLOB_V2 = "lance.blob.v2"
JSON_EXTENSION = "lance.json"
BFLOAT16 = "lance.bfloat16"

NO_METADATA: Mapping[str, str] = {}
_ID = attrgetter("id")


class DictionaryPage(NamedTuple):
    """The place of a dictionary field's values in a manifest file (0.1 tables only)."""

    offset: int
    length: int


class Field(NamedTuple):
    """One node of the schema.

    ``logical_type`` is the text of the specification, for example ``list.struct``.
    """

    name: str
    id: int
    logical_type: str
    nullable: bool = True
    children: tuple["Field", ...] = ()
    metadata: Mapping[str, str] = NO_METADATA
    extension_name: str = ""
    dictionary: DictionaryPage | None = None
    primary_key_position: int | None = None
    """``None``: not part of the key; 0: part of it without a position; else counted from 1."""

    def __hash__(self) -> int:
        return hash((self.id, self.name, self.logical_type))  # a mapping has no hash

    @property
    def is_blob(self) -> bool:
        """True for a column whose payloads are stored out of line, of either generation."""
        if not self.metadata and not self.extension_name:
            return False
        return self.is_blob_v2 or BLOB_KEY in self.metadata

    @property
    def is_blob_v2(self) -> bool:
        """True for a blob column of the second generation (a struct of references)."""
        if self.logical_type != "struct":
            return False
        return self.extension_name == BLOB_V2 or BLOB_KEY in self.metadata

    @property
    def is_in_blob_dataset(self) -> bool:
        """True for a column that is in the blob dataset where the table has one."""
        return self.metadata.get(STORAGE_CLASS) == "blob"

    @property
    def is_packed(self) -> bool:
        """True for a struct stored row by row in a single column."""
        return self.logical_type == "struct" and any(
            self.metadata.get(key, "").lower() == "true" for key in PACKED_KEYS
        )

    @property
    def is_json(self) -> bool:
        """True for a column of JSON documents stored in binary form."""
        return self.logical_type == "json"

    def walk(self) -> Iterator["Field"]:
        """Yield this field and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


class Schema(NamedTuple):
    """The top-level fields and the schema's own metadata."""

    fields: tuple[Field, ...]
    metadata: Mapping[str, str] = NO_METADATA

    def __hash__(self) -> int:
        return hash(tuple(map(_ID, self.fields)))

    def walk(self) -> Iterator[Field]:
        """Yield every field of the tree, parents first."""
        for top in self.fields:
            yield from top.walk()


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
