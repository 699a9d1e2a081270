"""External manifest stores, which record versions when the object store cannot decide races.

Such a store maps (base, version) to the path of a manifest. It must be able to create an entry that
must not exist yet; everything else is bookkeeping. ``base`` is the folder of the table, and paths
are those inside the bucket, as upstream writes them.
"""

from typing import NamedTuple, Protocol, runtime_checkable

from lancetable.errors import ExistsError


class ManifestEntry(NamedTuple):
    """The path of a version's manifest: staged, with a random suffix, or final."""

    version: int
    path: str
    size: int | None = None


@runtime_checkable
class ManifestStore(Protocol):
    """The operations of an external manifest store that a commit uses."""

    def get(self, base: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version, as the last write left it."""
        ...

    def latest(self, base: str) -> ManifestEntry | None:
        """Return the entry of the largest version; ``None`` when none is known."""
        ...

    def put_if_absent(self, base: str, entry: ManifestEntry) -> None:
        """Record a version; of many writers exactly one succeeds.

        Raises:
            ExistsError: the version is already recorded, possibly by this call if its request was
                repeated after the answer was lost, so the caller must compare the path.
            StoreError: it failed; unless ``is_certain`` it may have been recorded.
        """
        ...

    def put_if_present(self, base: str, entry: ManifestEntry) -> None:
        """Record another path for a version if it is recorded."""
        ...

    def delete(self, base: str) -> None:
        """Forget all versions of a table."""
        ...


class KeyValue(Protocol):
    """Any mapping of texts that can create an entry which must not exist yet."""

    def get(self, key: str) -> str | None:
        """Return the value of a key."""
        ...

    def put_if_absent(self, key: str, value: str) -> bool:
        """Set the value of a key that has none; return whether this call set it."""
        ...


class KeyValueManifests:
    """An external manifest store on top of anything with ``get`` and ``put_if_absent``.

    Entries are never changed: they keep the path of the staged manifest, which readers use only
    while the final one is missing. The latest version is found in the object store, which is at
    most one version behind.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: KeyValue) -> None:
        self.pairs = pairs

    def get(self, base: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version."""
        path = self.pairs.get(f"{base}/{version}")
        return None if path is None else ManifestEntry(version, path)

    def latest(self, base: str) -> ManifestEntry | None:
        """Return ``None``: keys cannot be searched."""
        return None

    def put_if_absent(self, base: str, entry: ManifestEntry) -> None:
        """Record a version."""
        if not self.pairs.put_if_absent(f"{base}/{entry.version}", entry.path):
            raise ExistsError(f"{base}: version {entry.version} is already recorded")

    def put_if_present(self, base: str, entry: ManifestEntry) -> None:
        """Leave the entry as it is."""

    def delete(self, base: str) -> None:
        """Leave the entries: a new table gets another place."""
