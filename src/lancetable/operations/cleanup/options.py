"""Options and results of a cleanup."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from lancetable.errors import InputError

Progress = Callable[[int, int], None]
"""Called with the number of files removed so far, and of all that will be."""


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """Versions to keep, and how carefully the others are removed."""

    older_than: timedelta = timedelta(days=14)
    """Younger versions stay."""

    keep_last: int = 1
    """So many of the newest versions stay, however old they are."""

    versions: tuple[int, ...] | None = None
    """Remove exactly these versions instead."""

    unverified_after: timedelta = timedelta(days=7)
    """Files that no version ever named may belong to a writer at work; younger ones stay."""

    all_branches: bool = False
    """Clean the histories of all branches, not only the one that is open."""

    clones: tuple[str, ...] = ()
    """Addresses of shallow clones, whose files stay; the table does not record its clones."""

    remove_damaged: bool = False
    """Remove unreadable versions except the latest; the files they need are unknown."""

    files_per_second: float | None = None
    """How many files are removed in a second at most."""

    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.keep_last < 1:
            raise InputError(f"keep_last is {self.keep_last}, but the latest version always stays")
        for name in ("older_than", "unverified_after"):
            if getattr(self, name) < timedelta(0):
                raise InputError(f"{name} must not be negative, it is {getattr(self, name)}")
        if self.files_per_second is not None and not self.files_per_second > 0:
            raise InputError("files_per_second must be positive")


class Amount(NamedTuple):
    """A number of files and their bytes."""

    files: int = 0
    bytes: int = 0

    def plus(self, size: int) -> "Amount":
        """Return the amount with one more file."""
        return Amount(self.files + 1, self.bytes + size)


class KeptVersion(NamedTuple):
    """A version that stays, and why: its age, its place, a tag, a branch, or a lease."""

    branch: str | None
    version: int
    reason: str


class RemovedVersion(NamedTuple):
    """A version that goes."""

    branch: str | None
    version: int


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """Result of a cleanup: what it removed, or with a dry run would remove."""

    is_dry_run: bool
    removed_versions: tuple[RemovedVersion, ...]
    kept_versions: tuple[KeptVersion, ...]
    removed: Mapping[str, Amount]
    """Files by kind: manifest, transaction, data, deletion, index, blob, lease, temporary, and
    branch for what an interrupted creation or deletion of a branch left."""

    too_young: Mapping[str, Amount]
    """Files that no version names, but which are too young to be sure; by kind."""

    failed: tuple[str, ...] = field(default=())
    """Files that the store did not let go."""

    @property
    def files(self) -> int:
        """Number of files removed."""
        return sum(amount.files for amount in self.removed.values())

    @property
    def bytes(self) -> int:
        """Total size of the removed files in bytes."""
        return sum(amount.bytes for amount in self.removed.values())
