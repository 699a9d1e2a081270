"""Options and results of a cleanup."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from lancetable.fragment.write.progress import ProgressCallback
from lancetable.options import check_options, option


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """Versions to keep, and how carefully the others are removed."""

    older_than: timedelta = option(
        timedelta(days=14),
        unit="duration",
        minimum=0,
        help="Remove versions older than this, such as 14d, 12h or 0.",
    )
    keep_last: int = option(
        1, minimum=1, help="How many of the newest versions to keep, however old they are."
    )
    versions: tuple[int, ...] | None = option(
        None, in_cli=False, help="Remove exactly these versions instead."
    )
    unverified_after: timedelta = option(
        timedelta(days=7),
        unit="duration",
        minimum=0,
        help="Remove files that no version ever named when they are older than this; younger "
        "ones may belong to a running write.",
    )
    all_branches: bool = option(
        False,  # noqa: FBT003 - the default
        help="Clean the histories of all branches, not only the current one.",
    )
    clones: tuple[str, ...] = option(
        (),
        help="Addresses of shallow clones whose files must stay; a table does not record its "
        "clones.",
    )
    remove_damaged: bool = option(
        False,  # noqa: FBT003 - the default
        help="Remove unreadable versions except the latest.",
    )
    files_per_second: float | None = option(
        None, minimum=0, is_exclusive=True, help="The most files to remove in a second."
    )
    progress: ProgressCallback | None = None

    def __post_init__(self) -> None:
        check_options(self)


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
