"""Options of a commit: its message, its notes and how long to retry."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import COMMIT_MESSAGE
from lancetable.errors import InputError
from lancetable.options import check_options, option


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """Options of a commit: what the history records, and how long to retry."""

    message: str | None = option(None, help="A note for the history.")
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further notes for the history."""
    attempts: int | None = option(
        None, minimum=1, help="The most attempts to create the next version; by default unlimited."
    )
    deadline_seconds: float = option(
        30.0, minimum=0, help="How long to retry after other writers were faster."
    )
    strict: bool = option(
        False,  # noqa: FBT003 - the default
        help="Fail if other writers committed since the version was read, whatever they did.",
    )
    detached: bool = option(
        False,  # noqa: FBT003 - the default
        help="Create a version outside the history, which only its number finds.",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not isinstance(cast("object", self.properties), Mapping) or not all(
            isinstance(one, str) for pair in self.properties.items() for one in pair
        ):
            raise InputError(f"properties is {self.properties!r}; give a mapping of text to text")

    @classmethod
    def of(cls, commit: "CommitOptions | str | None") -> "CommitOptions":
        """Return the options that the argument ``commit`` stands for; text is the message.

        Raises:
            InputError: the argument is something else.
        """
        if commit is None:
            return cls()
        if isinstance(commit, str):
            return cls(message=commit)
        if not isinstance(cast("object", commit), cls):
            raise InputError(f"commit is {commit!r}; give a message or CommitOptions")
        return commit

    def recorded(self) -> dict[str, str]:
        """Return the properties of the transaction, the message among them."""
        if self.message is None:
            return dict(self.properties)
        return {**self.properties, COMMIT_MESSAGE: self.message}


class CommitResult(NamedTuple):
    """The new version, and the number of attempts it took."""

    snapshot: Snapshot
    attempts: int


class CreateMode(enum.Enum):
    """Behaviour of ``create_table`` when the table exists."""

    ERROR = "error"
    IGNORE = "ignore"
    OVERWRITE = "overwrite"
