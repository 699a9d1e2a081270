"""Rules for versions whose blobs are in a blob dataset, which this library never writes.

Rows find their blobs by their row ids. New rows would have none, and moved rows would get a copy
that older releases ignore, so both are refused.
"""

from collections.abc import Iterable

from lancetable.commit.transaction import (
    Append,
    DataReplacement,
    Merge,
    Operation,
    Overwrite,
    Restore,
    Rewrite,
    Update,
)
from lancetable.errors import UnsupportedError
from lancetable.format.manifest import DataFile, Manifest


def check_rows_stay(manifest: Manifest, what: str) -> None:
    """Refuse a change, described by ``what``, of a version with a blob dataset.

    Raises:
        UnsupportedError: the version has a blob dataset.
    """
    if manifest.blob_dataset_version is None:
        return
    names = ", ".join(repr(one.name) for one in manifest.schema.fields if one.is_in_blob_dataset)
    raise UnsupportedError(
        f"the table keeps column {names} in a blob dataset, a format of releases 0.19 to 0.39, so"
        f" it is not possible to {what}; write the rows into a new table first, for example with"
        " create_table(new_uri, table.scan(), stable_row_ids=True)"
    )


def check_keeps_blobs(manifest: Manifest, operation: Operation) -> None:
    """Refuse an operation after which rows would not have the blobs they should have.

    Raises:
        UnsupportedError: it adds or moves rows, or writes a column of the blob dataset.
    """
    if manifest.blob_dataset_version is None:
        return
    match operation:
        case Append(fragments) if fragments:
            check_rows_stay(manifest, "add rows")
        case Rewrite():
            check_rows_stay(manifest, "move rows")
        case Update():
            if operation.new_fragments:
                check_rows_stay(manifest, "add or move rows")
            _check_files(manifest, (f for one in operation.updated_fragments for f in one.files))
        case Merge(fragments) if fragments is not manifest.fragments:
            known = {one.id for one in manifest.fragments}
            if any(one.id not in known or one.row_ids is None for one in fragments):
                check_rows_stay(manifest, "add or move rows")
            _check_files(manifest, (file for one in fragments for file in one.files))
        case DataReplacement(replacements):
            _check_files(manifest, (one.new_file for one in replacements))
        case _:
            return


def _check_files(manifest: Manifest, files: Iterable[DataFile]) -> None:
    ids = _blob_fields(manifest)
    if any(not ids.isdisjoint(file.fields) for file in files):
        check_rows_stay(manifest, "change values of that column")


def _blob_fields(manifest: Manifest) -> set[int]:
    return {field.id for field in manifest.schema.fields if field.is_in_blob_dataset}


def with_blob_dataset(before: Manifest, made: Manifest, operation: Operation) -> Manifest:
    """Return the version that an operation made, with the blob dataset if it still needs one.

    Raises:
        UnsupportedError: a column would lose its mark as a column of the blob dataset.
    """
    if before.blob_dataset_version is None or isinstance(operation, Restore):
        return made
    if isinstance(operation, Overwrite):
        return made._replace(blob_dataset_version=None)
    kept = _blob_fields(before).intersection(field.id for field in made.schema.fields)
    if not kept <= _blob_fields(made):
        check_rows_stay(before, "change the storage class of that column")
    return made if kept else made._replace(blob_dataset_version=None)
