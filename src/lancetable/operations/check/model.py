"""Levels and results of a check."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lancetable.errors import (
    CorruptError,
    FileNotFoundInStoreError,
    InputError,
    VersionNotFoundError,
)
from lancetable.fragment.write.progress import ProgressCallback
from lancetable.options import check_options, option

DAMAGE = (CorruptError, FileNotFoundInStoreError, VersionNotFoundError)
"""Errors that prove damage. All others leave open what the bytes hold: a store that fails, a lack
of memory or descriptors, a format of a later release, a place that is not allowed."""


class Level(enum.IntEnum):
    """Thoroughness of a check."""

    METADATA = 0
    """Manifests, tags, branches, transactions: what they say, and whether it fits together."""
    FILES = 1
    """Also whether each file is there, has its size, a footer, and the rows it should have."""
    DATA = 2
    """Also every page of every file, nulls where the schema allows none, and whether each index
    segment finds the rows of some values."""
    INDICES = 3
    """Also whether each index segment finds the rows of all values."""

    @classmethod
    def named(cls, name: str) -> "Level":
        """Return the level of a name.

        Raises:
            InputError: there is no such level.
        """
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(level.name.lower() for level in cls)
            raise InputError(f"level is {name!r}; use one of {known}") from None


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of a check."""

    level: Literal["metadata", "files", "data", "indices"] = option(
        "files",
        help="How closely to look: metadata (manifests, references, transactions), files (also "
        "presence, size, footer and row count of every file), data (also every page, and some "
        "values of each index segment) or indices (also all their values).",
    )
    all_versions: bool = option(
        True,  # noqa: FBT003 - the default
        help="Look at all versions, not only at the latest.",
    )
    journal: str | None = option(
        None,
        help="File that records what was checked, so that a stopped check can continue.",
    )
    progress: ProgressCallback | None = None

    def __post_init__(self) -> None:
        check_options(self)


class Fault(NamedTuple):
    """Something wrong that one version would meet."""

    kind: str
    """One of manifest, transaction, fragment ids, data, nulls, deletion, row ids, blobs, index,
    index rows."""
    path: str
    message: str
    fragment: int | None = None
    segment: str | None = None
    """The id of an index segment."""
    is_damage: bool = True
    """False when it could not be checked: a format of a later release, a store that refuses."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a table, in which file, and what follows from it."""

    kind: str
    """One of manifest, transaction, fragment ids, data, nulls, deletion, row ids, blobs, index,
    index rows, tag, branch, hint."""
    path: str
    message: str
    consequence: str
    branch: str | None = None
    versions: tuple[int, ...] = ()
    """The versions that meet it."""
    fragments: tuple[int, ...] = ()
    is_damage: bool = True


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of a check."""

    level: Level
    latest: int | None
    """The newest version that can be opened."""
    versions: int
    """How many versions were looked at."""
    files: int
    """How many data, deletion and index files were looked at."""
    problems: tuple[Problem, ...]
    coverage: Mapping[str, float] = field(default_factory=dict)
    """The share of the latest version's rows that each index covers."""

    @property
    def is_ok(self) -> bool:
        """True when nothing is wrong."""
        return not self.problems
