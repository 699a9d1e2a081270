"""What does a case need from an implementation, and which implementations are there?"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Modules are loaded by name, so that a process measuring one peer never imports another.
_MODULES = {
    "ours": "benchmarks.peers.ours",
    "pylance": "benchmarks.peers.pylance",
    "parquet": "benchmarks.peers.parquet",
    "delta": "benchmarks.peers.delta",
    "raw": "benchmarks.peers.raw",
}


class Handle(Protocol):
    """One open table; what a peer does not have raises NotImplementedError."""

    def version(self) -> int:
        """Return the version that was opened."""

    def count(self, where: str | None = None) -> int:
        """Return the number of rows, or of those for which the predicate holds."""

    def scan(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        """Return all rows as an Arrow table."""

    def stream(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows as record batches."""

    def take(self, rows: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows at these positions, in this order."""

    def head(self, rows: int) -> pa.Table:
        """Return the first rows."""

    def find_words(self, words: str, how: str, where: str | None = None) -> pa.Table:
        """Return the ten best rows for words, as `id` and score.

        Args:
            words: the words.
            how: `or`, `and`, `phrase` or `fuzzy`.
            where: a predicate that the rows match.
        """

    def find_near(
        self,
        column: str,
        vectors: npt.NDArray[np.float32],
        where: str | None = None,
        refine: int | None = None,
    ) -> pa.Table:
        """Return ten near rows of each vector, as `query_index`, `id` and distance.

        A single vector has no `query_index`.
        """

    def append(self, data: pa.Table) -> None:
        """Add rows."""

    def delete(self, where: str) -> None:
        """Delete the rows for which the predicate holds."""

    def update(self, values: dict[str, str], where: str) -> None:
        """Set columns of some rows to SQL expressions."""

    def upsert(self, data: pa.Table | pa.RecordBatchReader, key: str) -> None:
        """Replace the rows that have a key of the data and insert the others."""

    def versions(self) -> int:
        """List all versions with their times, and return how many there are."""

    def version_names(self) -> int:
        """List the numbers of all versions, and return how many there are."""

    def history(self) -> int:
        """Tell what every version did, and return how many there are."""

    def tag(self, name: str) -> None:
        """Give the version a name."""

    def branch(self, name: str) -> None:
        """Begin a branch with the version."""

    def cleanup(self) -> int:
        """Remove all versions but the latest, and return how many there were."""

    def add_column(self, name: str, expression: str) -> None:
        """Add a column computed from others."""

    def index(self, column: str, kind: str, memory_bytes: int | None = None) -> None:
        """Build an index on a column, within a memory where that can be said."""

    def compact(self, memory_bytes: int | None = None) -> None:
        """Write small fragments anew, within a memory where that can be said."""


class Peer(Protocol):
    """One implementation of Lance tables."""

    @property
    def name(self) -> str:
        """The name on the command line and in the results."""

    @property
    def count_program(self) -> str:
        """Python source that opens the table named by its first argument and prints its rows."""

    @property
    def is_comparable(self) -> bool:
        """Whether results are rows, so that they must equal those of the other peers."""

    @property
    def can_change(self) -> bool:
        """Whether tables can be changed; else cases that change one are not tried."""

    def open(self, uri: str) -> Handle:
        """Open the newest version of a table."""

    def create(self, uri: str, data: pa.Table | pa.RecordBatchReader) -> None:
        """Write a new table in file version 2.1."""


def peer_names() -> tuple[str, ...]:
    """Return the names that `load_peer` knows."""
    return tuple(_MODULES)


def load_peer(name: str) -> Peer:
    """Import one peer.

    Raises:
        ImportError: the library behind the peer is not installed.
    """
    peer: Peer = import_module(_MODULES[name]).PEER
    return peer
