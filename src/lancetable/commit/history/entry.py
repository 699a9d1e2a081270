"""What is told about one version of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lancetable.commit.history.effects import UNKNOWN, Effect
from lancetable.format.manifest import WriterVersion


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version, and what it did."""

    version: int
    timestamp: datetime | None
    operation: str | None
    """The specification's name of it; ``None`` when the writer left no record."""
    effect: Effect = UNKNOWN
    writer: WriterVersion | None = None
    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    read_version: int | None = None
    """The version that the change was made for; others may have come in between."""
    uuid: str | None = None
