"""The fragments of one version, opened when first asked for, and how many live rows they have.

The readers of a version hold this, and nothing in here holds a reader. Without such a circle all
of it is freed, its files closed, as soon as the last reader is let go.
"""

from collections.abc import Iterable
from itertools import accumulate

from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.rowids import LiveIds, RowIdIndex
from lancetable.fragment.source import Source
from lancetable.store import spread


class OpenFragments:
    """The fragments of one version by their positions; safe to use from several threads."""

    __slots__ = ("_index", "_live", "_opened", "_positions", "_starts", "data_files", "source")

    def __init__(self, source: Source, live: Source | None = None) -> None:
        """Prepare to open fragments.

        ``live`` is the same version with its deletion files, when ``source`` has none so that
        deleted rows are read.
        """
        self.source = source
        self._live = None if live is None else OpenFragments(live)
        self.data_files = DataFiles(source)
        self._opened: dict[int, OpenFragment] = {}
        self._starts: list[int] | None = None
        self._positions: dict[int, int] | None = None
        self._index: RowIdIndex | None = None

    def __len__(self) -> int:
        return len(self.source.manifest.fragments)

    def __getitem__(self, position: int) -> OpenFragment:
        opened = self._opened.get(position)
        if opened is None:
            fragment = self.source.manifest.fragments[position]
            live = None if self._live is None else self._live[position]
            opened = OpenFragment(fragment, self.data_files, live)
            self._opened[position] = opened
        return opened

    @property
    def starts(self) -> list[int]:
        """The number of live rows before each fragment, and at the end the number of all."""
        if self._starts is None:
            rows = (self.live_rows(position) for position in range(len(self)))
            self._starts = list(accumulate(rows, initial=0))
        return self._starts

    def live_rows(self, position: int) -> int:
        """Return the number of live rows of one fragment; asks its files if it must."""
        known = self.source.manifest.fragments[position].live_rows
        if known is not None:
            return known
        opened = self[position]
        deletions = opened.deletions
        return opened.rows - (len(deletions) if deletions is not None else 0)

    def first_live_row(self, position: int) -> int:
        """Return the running number of a fragment's first live row among those of the version."""
        return self.starts[position] if self._live is None else self._live.starts[position]

    def with_deletions(self, positions: Iterable[int]) -> list[int]:
        """Return the fragments among these that have deleted rows, their deletion files read."""
        fragments = self.source.manifest.fragments
        found = [one for one in positions if fragments[one].deletion_file is not None]
        spread(lambda one: self[one].deletions, found, self.source.store.width)
        return found

    @property
    def positions(self) -> dict[int, int]:
        """The position of each fragment id in the manifest."""
        if self._positions is None:
            fragments = self.source.manifest.fragments
            self._positions = {}
            for number, fragment in enumerate(fragments):
                self._positions.setdefault(fragment.id, number)
        return self._positions

    @property
    def row_id_index(self) -> RowIdIndex | None:
        """The index from row ids to addresses; None when addresses are the row ids."""
        if self._index is None:
            live = []
            self.with_deletions(range(len(self)))
            for position in range(len(self)):
                opened = self[position]
                spans = opened.id_spans()
                if spans is None:
                    return None
                deletions = opened.deletions
                deleted = None if deletions is None else deletions.offsets
                live.append(LiveIds(opened.fragment.id, spans, deleted))
            self._index = RowIdIndex.of_fragments(live)
        return self._index
