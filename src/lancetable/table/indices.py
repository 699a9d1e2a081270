"""Indices of a table by name."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle
from lancetable.table.named import Named

if TYPE_CHECKING:
    from lancetable.format.manifest.model import IndexSegment


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One index of a table."""

    name: str
    columns: tuple[str, ...]
    kind: str
    """The name of the message that describes it, such as ``BTreeIndexDetails``."""
    segments: "tuple[IndexSegment, ...]"


@explaining
class Indices(Named[IndexInfo]):
    """The indices of a table by name, those of the format itself included."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _all(self) -> dict[str, IndexInfo]:
        from lancetable.format.manifest.indices.kinds import message_name

        snapshot = self._handle.snapshot
        grouped: dict[str, list[IndexSegment]] = {}
        for segment in snapshot.indices():
            grouped.setdefault(segment.name, []).append(segment)
        names = {field.id: field.name for field in snapshot.manifest.schema.walk()}
        return {
            name: IndexInfo(
                name,
                tuple(names.get(one, str(one)) for one in segments[0].fields),
                message_name(segments[0]),
                tuple(segments),
            )
            for name, segments in grouped.items()
        }

    def list(self) -> list[IndexInfo]:
        """Return all indices."""
        return [*self._all().values()]
