"""What is a case: a function, the table it runs on, and the ratio it should reach?"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from benchmarks.peers import Handle, Peer

RECALL_TARGET = 0.995
"""Least accepted ratio of recalls: ours is hardly less than pylance's."""
PEAK_TARGET = 1.25
"""Least accepted ratio of memory: ours is at most four fifths of pylance's."""


class Unit(Enum):
    """What a sample of a case counts."""

    SECONDS = "s"
    """Time around the function."""
    PROCESSOR = "CPU"
    """Time of the processor in seconds, as returned by the function."""
    BYTES = "B"
    """Memory, as returned by the function."""
    RECALL = "recall"
    """Part of the nearest rows, as returned by the function; of this more is better."""


class Subject(NamedTuple):
    """What a case's function gets to work with."""

    peer: Peer
    uri: str
    table: Handle
    """The table, open before the clock starts and kept for all repeats."""
    rows: list[int]
    """Random positions, new ones for every repeat and the same for all peers."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is measured."""

    name: str
    title: str
    table: str
    """The name of the table in `benchmarks.data`."""
    run: Callable[[Subject], object]
    target: float = 1
    """Least accepted ratio of pylance's median to ours; nothing may be slower than pylance."""
    draws: int = 0
    """How many random positions the function wants."""
    unit: Unit = Unit.SECONDS
    repeats: int | None = None
    """A fixed number of repeats, for cases that start processes or change a table."""
    calls: int = 1
    """How many calls one repeat makes in a row; cases without fixed repeats make what fits."""
    prepare: Callable[[Subject], Subject] | None = None
    """What happens before the clock starts, for cases that change a table: a copy of it."""
    settle: Callable[[Subject], None] | None = None
    """What happens after the clock has stopped."""
    is_change: bool = False
    """Whether a table is changed, which not every peer can."""
    sizes: tuple[int, ...] = ()
    """Sizes of the table at which the case is measured, to see how it grows; else its usual one."""
    quick_sizes: tuple[int, ...] = ()
    """The same for a quick run."""
