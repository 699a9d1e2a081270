"""Read the next rows while those before them are written.

A change decodes rows and encodes them again. Both take about as long, so a helper reads
the next rows meanwhile; where reading takes longer, both read.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from lancetable.format.manifest import Fragment
from lancetable.scan.prefetch import Crew

Job = TypeVar("Job")
Rows = TypeVar("Rows")

AHEAD = 2
"""So many pieces of rows are read or being read, beside the one that is written."""
FEW_ROWS = 4096
"""To read many fragments of fewer rows is work for Python, which threads cannot share."""


def read_ahead(
    read: Callable[[Job], Rows], jobs: Iterable[Job], fragments: Sequence[Fragment]
) -> Iterator[Rows]:
    """Yield what is read of some fragments for each job, in order, ahead of who takes it."""
    rows = sum(one.physical_rows for one in fragments)
    can_share = (os.cpu_count() or 1) > 1 and rows >= FEW_ROWS * len(fragments)
    if not can_share:
        return map(read, jobs)
    return Crew(read, lambda _: 0, helpers=1, most=0, most_jobs=AHEAD).map(iter(jobs))
