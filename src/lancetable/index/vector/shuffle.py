"""Bring records together by partition: in memory, and beyond that in runs in a local file."""

from collections.abc import Callable, Iterator
from typing import IO

import numpy as np
import numpy.typing as npt

from lancetable.index.vector.columns import Records


class Shuffle:
    """Records of all partitions, given in any order and returned partition by partition."""

    def __init__(
        self,
        partitions: int,
        dtype: np.dtype[np.void],
        most_bytes: int,
        spill: Callable[[], IO[bytes]],
    ) -> None:
        self._partitions = partitions
        self._dtype = dtype
        self._most = most_bytes
        self._spill = spill
        self._file: IO[bytes] | None = None
        self._held: list[Records] = []
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._bytes = 0
        # Where the records of each partition start in each run, in records; the file holds the runs
        # one after the other, and the last one stays in memory.
        self._edges: list[npt.NDArray[np.int64]] = []
        self._written = 0

    def add(self, numbers: npt.NDArray[np.int64], records: Records) -> None:
        """Take records with the numbers of their partitions."""
        self._held.append(records)
        self._numbers.append(numbers)
        self._bytes += records.nbytes + numbers.nbytes
        if self._bytes >= self._most:
            run = self._run()
            self._file = self._file or self._spill()
            self._file.write(run.tobytes())
            self._written += len(run)

    def partitions(self) -> Iterator[Records]:
        """Yield the records of each partition in turn, as they were given."""
        last = self._run()
        firsts = self._written
        for number in range(self._partitions):
            parts = [self._read(*edges[number : number + 2]) for edges in self._edges[:-1]]
            first, stop = self._edges[-1][number : number + 2] - firsts
            yield np.concatenate([*parts, last[first:stop]])

    def _run(self) -> Records:
        """Return what is held, by partition, and note where each starts."""
        numbers = np.concatenate([*self._numbers, np.empty(0, np.int64)])
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers, minlength=self._partitions)
        self._edges.append(self._written + np.concatenate([[0], np.cumsum(counts)]))
        run = np.concatenate([*self._held, np.empty(0, self._dtype)])[order]
        self._held, self._numbers, self._bytes = [], [], 0
        return run

    def _read(self, first: int, stop: int) -> Records:
        assert self._file is not None
        self._file.seek(int(first) * self._dtype.itemsize)
        data = self._file.read(int(stop - first) * self._dtype.itemsize)
        return np.frombuffer(data, self._dtype)
