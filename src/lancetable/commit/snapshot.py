"""One version of a table, which everything that reads is based on.

Files of a version are usually below the root of the table. A file with a base id is below one of
the base paths of the manifest instead, which may be anywhere; its path must not leave that base.
"""

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from lancetable.errors import CorruptError, FileNotFoundInStoreError, InputError
from lancetable.format.manifest import (
    BasePath,
    DataFile,
    DeletionFile,
    Fragment,
    IndexSegment,
    Manifest,
)
from lancetable.format.manifest.codec import decode_manifest
from lancetable.format.manifest.envelope import section
from lancetable.format.manifest.names import (
    BLOB_DATASET,
    DETACHED_BIT,
    MAX_VERSION,
    Scheme,
    checked_path,
    data_path,
    deletion_path,
    index_folder,
    manifest_path,
    parse_manifest_name,
    transaction_path,
)
from lancetable.fragment.source import read_whole
from lancetable.store import Store, TableLocation
from lancetable.store.location import folder_and_name

if TYPE_CHECKING:
    from lancetable.commit.transaction import Transaction


class Found(NamedTuple):
    """A manifest file and its content."""

    version: int
    path: str
    data: bytes
    scheme: Scheme = Scheme.V2
    """The naming scheme, if the manifest was found by its number."""


def check_number(version: int) -> None:
    """Check the number of a version.

    Raises:
        InputError: it is not a whole number in the range of versions.
    """
    number = cast("object", version)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_VERSION:
        raise InputError(f"version is {version!r}; give a whole number from 1")


def numbered(store: Store, version: int) -> Found | None:
    """Return the manifest of a version, detached or not; None when there is none.

    Raises:
        InputError: the number is not a valid version.
    """
    check_number(version)
    schemes = (Scheme.DETACHED,) if version & DETACHED_BIT else (Scheme.V2, Scheme.V1)
    for scheme in schemes:
        path = manifest_path(version, scheme)
        try:
            return Found(version, path, read_whole(store, path), scheme)
        except FileNotFoundInStoreError:
            continue
    return None


def decoded(store: Store, found: Found) -> Manifest:
    """Return the manifest in a file.

    Raises:
        CorruptError: it is damaged, or of another version than its name says.
        UnsupportedError: it needs a feature that this release does not know.
    """
    path = f"{store.root}/{found.path}"
    manifest = decode_manifest(found.data, path)
    if manifest.version != found.version:
        raise CorruptError(
            f"the name says version {found.version}, the content version {manifest.version}",
            path=path,
        )
    return manifest


class _Version(NamedTuple):
    location: TableLocation
    store: Store
    manifest: Manifest
    manifest_path: str
    branch: str | None = None


class Snapshot(_Version):
    """One version of a table.

    ``location`` is the table's root; ``store`` holds the files of this version, which for a branch
    is the branch's own folder. ``manifest_path`` is relative to it.
    """

    def __getstate__(self) -> None:
        """Leave out cached values, such as the index section."""

    @cached_property
    def version(self) -> int:
        """The number of the version."""
        return self.manifest.version

    @cached_property
    def scheme(self) -> Scheme:
        """The naming scheme of the manifests.

        Raises:
            InputError: the version is detached, so that nothing can follow it.
        """
        name = parse_manifest_name(self.manifest_path.rpartition("/")[2])
        if name is None or name.scheme is Scheme.DETACHED:
            raise InputError(
                f"version {self.version} is detached; check out a version of the history to write"
            )
        return name.scheme

    def data_file_place(self, file: DataFile) -> tuple[Store, str]:
        """Return the store that holds a data file, and the file's path in it.

        Raises:
            CorruptError: the file names a base that does not exist, or its path leaves the base.
        """
        base = self._base(file.base_id)
        if base is None or base.is_dataset_root:
            return self._store(base), data_path(file.path)
        return self._store(base), checked_path(file.path, "data file")

    def deletion_file_place(self, fragment: Fragment, file: DeletionFile) -> tuple[Store, str]:
        """Return the store that holds a deletion file, and the file's path in it.

        Raises:
            CorruptError: the file names a base that does not exist.
        """
        base = self._base(file.base_id)
        path = deletion_path(fragment.id, file)
        if base is None or base.is_dataset_root:
            return self._store(base), path
        return self._store(base), path.rpartition("/")[2]

    def index_place(self, segment: IndexSegment) -> tuple[Store, str]:
        """Return the store that holds an index segment, and the segment's folder in it.

        Raises:
            CorruptError: the segment names a base that does not exist.
        """
        base = self._base(segment.base_id)
        if base is None or base.is_dataset_root:
            return self._store(base), index_folder(segment.uuid)
        return self._store(base), segment.uuid

    def base_store(self, base_id: int) -> Store:
        """Return the store of a base path.

        Raises:
            CorruptError: the base does not exist, or its path is not absolute.
        """
        return self._store(self._base(base_id))

    def blob_place(self, base_id: int, uri: str, *, is_trusted: bool) -> tuple[Store, str]:
        """Return the store that holds an external blob, and the blob's path in it.

        ``base_id`` is 0 for an absolute address. ``is_trusted`` follows it wherever it leads.

        Raises:
            CorruptError: the base does not exist, or the address is not valid.
            InputError: it is outside of the table and not allowed.
        """
        base = self._base(base_id) if base_id else None
        address = uri if base is None else f"{base.path}/{checked_path(uri, 'blob')}"
        if not _is_absolute(address) or address.endswith("/"):
            raise CorruptError(f"a blob points at {uri!r}, which is not the address of a file").at(
                shown(self.store, self.manifest_path)
            )
        folder, name = folder_and_name(address)
        if not is_trusted:
            self.location.followed(address, "external blob", is_raw=True)
        return self.location.elsewhere(folder).open(), name

    def indices(self) -> tuple[IndexSegment, ...]:
        """Return the index segments of this version; they are read once.

        Fragments that share an id count as not covered: their rows share their addresses.

        Raises:
            CorruptError: the index section is damaged.
        """
        return self._indices

    @cached_property
    def _indices(self) -> tuple[IndexSegment, ...]:
        position = self.manifest.index_section
        if position is None:
            return ()
        from lancetable.format.manifest.indices.codec import (  # noqa: PLC0415 - seldom needed
            decode_index_section,
        )

        data = read_whole(self.store, self.manifest_path)
        try:
            segments = decode_index_section(section(data, position, "index section"))
        except CorruptError as cause:
            raise cause.at(shown(self.store, self.manifest_path)) from None
        from lancetable.commit.apply.coverage import without_shared  # noqa: PLC0415 - seldom needed
        from lancetable.commit.apply.derived_fields import shared_ids  # noqa: PLC0415

        shared = shared_ids(self.manifest)
        return tuple(without_shared(segments, shared) if shared else segments)

    def auxiliary_data(self) -> dict[str, bytes]:
        """Return the data that the writer attached to this version; most attach nothing.

        Raises:
            CorruptError: it is damaged.
        """
        position = self.manifest.auxiliary_section
        if position is None:
            return {}
        from lancetable.format.manifest.codec import decode_auxiliary  # noqa: PLC0415

        data = read_whole(self.store, self.manifest_path)
        try:
            return decode_auxiliary(section(data, position, "auxiliary data"))
        except CorruptError as cause:
            raise cause.at(shown(self.store, self.manifest_path)) from None

    def transaction(self) -> "Transaction | None":
        """Return the transaction that made this version; ``None`` when its writer left no record.

        Raises:
            CorruptError: the record is damaged.
        """
        return read_transaction(self.store, self.manifest, self.manifest_path)

    def blob_dataset(self) -> "Snapshot | None":
        """Return the version of the table ``_blobs`` that holds the blobs of this version.

        It is below the root of the table, or below that of the table that a clone was made from.
        ``None`` when the manifest names none.

        Raises:
            FileNotFoundInStoreError: that version does not exist.
            CorruptError: its manifest is damaged.
            InputError: it is outside of the table and not allowed.
        """
        version = self.manifest.blob_dataset_version
        if version is None:
            return None
        roots: list[TableLocation] = [self.location]
        bases = [base.path for base in self.manifest.base_paths if base.is_dataset_root]
        for path in (None, *filter(_is_absolute, bases)):
            if path is not None:
                roots.append(self.location.followed(path, "base path"))
            place = roots[-1].child(BLOB_DATASET)
            store = place.open()
            found = numbered(store, version)
            if found is not None:
                return Snapshot(place, store, decoded(store, found), found.path)
        raise FileNotFoundInStoreError(
            f"{shown(self.store, self.manifest_path)}: the blobs of version {self.version} are in "
            f"version {version} of the table {BLOB_DATASET}, which is missing"
            f" from {' and '.join(root.uri for root in roots)}"
        )

    def _base(self, base_id: int | None) -> BasePath | None:
        if base_id is None:
            return None
        base = self.manifest.base_path(base_id)
        if base is None:
            known = ", ".join(str(base.id) for base in self.manifest.base_paths) or "none"
            raise CorruptError(f"base path {base_id} is not listed; listed are: {known}").at(
                shown(self.store, self.manifest_path)
            )
        return base

    def _store(self, base: BasePath | None) -> Store:
        if base is None:
            return self.store
        if not _is_absolute(base.path):
            raise CorruptError(f"base path {base.id} is {base.path!r}, which is not absolute").at(
                shown(self.store, self.manifest_path)
            )
        return self.location.followed(base.path, "base path").open()


def _is_absolute(path: str) -> bool:
    if "\0" in path:
        return False
    return path.startswith(("/", "file:/")) or "://" in path or (path[1:3] in {":\\", ":/"})


def shown(store: Store, path: str) -> str:
    """Return a path as messages show it."""
    return f"{store.root}/{path}"


class HasTransaction(Protocol):
    """A manifest, or the part of it that locates its transaction."""

    @property
    def transaction_file(self) -> str:
        """The name of the transaction's own file."""
        ...

    @property
    def transaction_section(self) -> int | None:
        """The place of the transaction inside the manifest file."""
        ...


def read_transaction(
    store: Store, manifest: HasTransaction, path: str, data: bytes | memoryview | None = None
) -> "Transaction | None":
    """Return the transaction of a manifest, from the manifest itself or from its own file.

    Raises:
        CorruptError: the record is damaged.
    """
    from lancetable.commit.codec.decode import decode_transaction  # noqa: PLC0415 - seldom needed

    position = manifest.transaction_section
    try:
        if position is not None:
            data = read_whole(store, path) if data is None else data
            return decode_transaction(section(data, position, "transaction"))
        if manifest.transaction_file:
            path = transaction_path(manifest.transaction_file)
            return decode_transaction(read_whole(store, path))
    except CorruptError as cause:
        raise cause.at(shown(store, path)) from None
    except FileNotFoundInStoreError:
        return None
    return None
