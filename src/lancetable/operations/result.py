"""Base class of the results of all changes of a table."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class VersionResult:
    """The version of a table after a change, and whether the change made it."""

    version: int
    is_new_version: bool = field(default=True, kw_only=True)
    """False when there was nothing to change, so that ``version`` is the one there was."""
