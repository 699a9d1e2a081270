"""What did a writer do to make a version: as far as a reader wants to know."""

from collections.abc import Mapping
from dataclasses import dataclass, field

COMMIT_MESSAGE = "__lance_commit_message"


@dataclass(frozen=True, slots=True)
class Transaction:
    """The step from one version to the next.

    ``operation`` is the specification's name, such as ``Append``; ``Unknown`` for a later one.
    """

    read_version: int
    uuid: str
    operation: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def message(self) -> str | None:
        """What the writer said about it."""
        return self.properties.get(COMMIT_MESSAGE)
