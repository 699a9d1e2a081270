"""Files whose bytes cost something: every range that is asked for is counted."""

from collections.abc import Sequence

from lancetable.store import ByteRange


class CountingFile:
    """A file in memory that behaves like one in an object store."""

    is_mapped = False

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = len(content)
        self.ranges: list[ByteRange] = []
        self.rounds = 0

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return a copy of each range."""
        self.rounds += 1
        self.ranges += ranges
        return [memoryview(self._content[start:stop]) for start, stop in ranges]

    @property
    def bytes_read(self) -> int:
        """How many bytes were asked for."""
        return sum(stop - start for start, stop in self.ranges)
