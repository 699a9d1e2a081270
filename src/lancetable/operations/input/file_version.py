"""Choose the version of new data files, and the next field id."""

from dataclasses import replace
from functools import lru_cache

from lancetable.errors import (
    InputError,
    SchemaError,
    UnsupportedError,
)
from lancetable.file.model import V2_1, V2_2, file_version
from lancetable.file.pages import page_builder
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.writer import (
    WriteOptions,
)

_VARIABLE = frozenset({"string", "binary", "large_string", "large_binary"})


def table_options(manifest: Manifest, options: WriteOptions) -> WriteOptions:
    """Return the options with the version of files that an existing table keeps.

    Raises:
        InputError: another version is requested.
        UnsupportedError: the table's version cannot be written any more.
    """
    version = storage_version(manifest)
    if options.storage_version not in {None, version}:
        raise InputError(
            f"the table keeps data files of version {version}; version {options.storage_version} "
            "can be chosen only when a table is created or overwritten"
        )
    if callable(options.progress):
        return replace(options, storage_version=version)
    return _of_version(options, version)


@lru_cache(maxsize=32)
def _of_version(options: WriteOptions, version: str) -> WriteOptions:
    return replace(options, storage_version=version)


def check_stored(schema: Schema, options: WriteOptions) -> None:
    """Check that the columns can be stored in files of the version of the options.

    Raises:
        SchemaError: a column needs a newer version.
        InputError: the metadata of a column names an encoding that does not exist.
    """
    for field in schema.fields:
        needed = needed_version(Schema((field,)))
        if needed == str(V2_2) and options.storage_version not in {None, needed}:
            raise SchemaError(
                f"column {field.name!r} needs data files of version {needed}, the table has "
                f"{options.storage_version}; create the table with storage_version={needed!r}"
            )
        page_builder(file_version(options.storage_version or needed))(field)


def storage_version(manifest: Manifest) -> str:
    """Return the version of new data files of a table.

    Raises:
        UnsupportedError: it is one that cannot be written any more.
    """
    version = manifest.data_format
    if not version or version in {"stable", "next"}:
        version = _version_of_files(manifest)
    if version in {"legacy", "0.1", "0.2"}:
        raise UnsupportedError(
            "the table keeps data files of version 0.1, which are read-only; copy it with "
            "create_table to write to it"
        )
    return str(file_version(version))


def replaced_version(manifest: Manifest) -> str:
    """Return the version of files for new rows that replace all rows of a table."""
    try:
        return storage_version(manifest)
    except UnsupportedError:
        return str(V2_1)


def _version_of_files(manifest: Manifest) -> str:
    for fragment in manifest.fragments:
        for file in fragment.files:
            return file.version_text
    return str(V2_1)


def needed_version(schema: Schema) -> str:
    """Return the version of files that a new table of this schema gets by itself."""
    return str(V2_2 if any(map(_needs_2_2, schema.walk())) else V2_1)


def _needs_2_2(field: Field) -> bool:
    text = field.logical_type
    if text == "map" or field.is_blob_v2 or text == "fixed_size_binary:0":
        return True
    if text.startswith("fixed_size_list:struct:"):
        return True
    return field.is_packed and any(below.logical_type in _VARIABLE for below in field.walk())


def next_field_id(manifest: Manifest) -> int:
    """Return the first field id that no column of a version, live or dropped, uses."""
    ids = [field.id for field in manifest.schema.walk()]
    if isinstance(manifest.fragments, StoredFragments):
        ids.append(manifest.fragments.largest_field_id())
    else:
        ids.extend(id_ for one in manifest.fragments for file in one.files for id_ in file.fields)
    if manifest.max_allocated_field_id is not None:
        ids.append(manifest.max_allocated_field_id)
    return max(ids, default=-1) + 1
