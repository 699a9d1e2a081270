"""The source from which the rows of a fragment are read: the snapshot, as a protocol."""

from typing import Protocol

from lancetable.format.limits import NO_LIMIT, read_limits
from lancetable.format.manifest.model import DataFile, DeletionFile, Fragment, Manifest
from lancetable.store import Store


class Source(Protocol):
    """A table at one version: its manifest, and where the files it names are."""

    @property
    def store(self) -> Store:
        """The store that holds the manifest."""
        ...

    @property
    def manifest(self) -> Manifest:
        """The manifest of this version."""
        ...

    @property
    def manifest_path(self) -> str:
        """The path of the manifest file; 0.1 tables keep dictionary values in it."""
        ...

    def data_file_place(self, data_file: DataFile) -> tuple[Store, str]:
        """Return the store and the path of a data file."""
        ...

    def deletion_file_place(
        self, fragment: Fragment, deletion_file: DeletionFile
    ) -> tuple[Store, str]:
        """Return the store and the path of a deletion file."""
        ...

    def blob_dataset(self) -> "Source | None":
        """Return the table that holds the columns of storage class blob; None when there is none.

        Raises:
            FileNotFoundInStoreError: the version that the manifest names is missing.
        """
        ...

    def blob_place(self, base_id: int, uri: str, *, is_trusted: bool) -> tuple[Store, str]:
        """Return the store and the path of an external blob, when it may be followed."""
        ...


def read_whole(store: Store, path: str) -> bytes:
    """Return the content of a metadata file: a manifest, a deletion file, row ids.

    Raises:
        FileNotFoundInStoreError: there is no such file.
        LimitError: it exceeds the limit on opening; nothing of it was read.
    """
    limits = read_limits()
    if limits.max_open_bytes == NO_LIMIT:
        return store.read(path)
    limits.check_open(store.open(path).size, path)
    return store.read(path, most=limits.max_open_bytes)


def whose(manifest: Manifest, base_id: int | None) -> str:
    """Say below which base a missing file was looked for, when it is not the table's own."""
    base = None if base_id is None else manifest.base_path(base_id)
    if base is None:
        return ""
    return (
        f" from {base.path}, to which a clone, a branch or a table with several bases refers; was"
        " that table moved, removed or cleaned?"
    )
