"""Options and results of a compaction."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from lancetable.errors import InputError
from lancetable.operations.results import VersionResult
from lancetable.options import check_options, option

MiB = 1024 * 1024
IndexHandling: TypeAlias = Literal["reuse", "remap", "uncover"]
SORT_COPIES = 16
"""How many times a part of the rows may be in memory while it is put in order: as it was read, put
in order, joined, waiting for its page, encoded; and what the pool keeps of each."""
KEY_COPIES = 4
"""How many times the columns to sort by may be in memory: decoded, joined, ranked, sorted."""
ORDER_BYTES = 64
"""What the order itself takes for each row."""
_LEAST_MEMORY = 16 * MiB


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """Options of a compaction: which fragments to rewrite, and how."""

    target_rows: int = option(
        1024 * 1024,
        minimum=1,
        help="Fragments with fewer live rows are joined with their neighbours, up to about this "
        "many.",
    )
    target_bytes: int = option(
        4096 * MiB,
        unit="bytes",
        minimum=1,
        help="Fragments with more bytes are not joined with others.",
    )
    max_bytes_per_file: int | None = option(
        None,
        unit="bytes",
        minimum=1,
        help="About the most bytes of a new data file, estimated from the files it replaces. "
        "Larger fragments are split only if they are rewritten anyway.",
    )
    deleted_share: float = option(
        0.1,
        minimum=0,
        maximum=1,
        help="A fragment is rewritten, even alone, when a larger share of its rows is deleted.",
    )
    sort_by: Sequence[str] = option(
        (),
        help="Columns to sort by. All fragments are rewritten, in one order as far as the sort "
        "columns of all rows fit in memory.",
    )
    z_order_by: Sequence[str] = option(
        (),
        help="Columns whose ranks are interleaved to sort by all of them alike; not with sort_by.",
    )
    indices: IndexHandling | None = option(
        None,
        help="Index segments with row addresses: reuse records where rows moved, remap rewrites "
        "segments of known kinds, uncover removes the new fragments from them. By default reuse "
        "where possible, and remap for vector indices with graphs.",
    )
    memory_bytes: int = option(
        512 * MiB,
        unit="bytes",
        minimum=_LEAST_MEMORY,
        help="About how much memory all tasks of this process may use together.",
    )
    threads: int = option(
        default_factory=lambda: min(os.cpu_count() or 1, 8),
        minimum=1,
        help="The most tasks that run at a time when no runner is given.",
    )
    copy_pages: bool = option(
        True,  # noqa: FBT003 - the default
        help="Copy encoded pages unchanged where that gives the same rows.",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.sort_by and self.z_order_by:
            raise InputError("give sort_by or z_order_by, not both")
        if self.is_sorted and self.indices == "reuse":
            raise InputError(
                "rows that change their order cannot be recorded for index segments; "
                "leave sort_by out, or use indices='uncover'"
            )

    @property
    def is_sorted(self) -> bool:
        """True when rows change their order."""
        return bool(self.sort_by or self.z_order_by)

    @property
    def tasks_at_a_time(self) -> int:
        """Number of tasks to run here at a time, limited by the memory."""
        return min(self.threads, self.memory_bytes // _LEAST_MEMORY)

    @property
    def task_bytes(self) -> int:
        """About how much memory one task may take."""
        return self.memory_bytes // self.tasks_at_a_time


@dataclass(frozen=True, slots=True)
class CompactResult(VersionResult):
    """Result of a compaction or of a dry run; without work there is no new version."""

    fragments_removed: int = 0
    fragments_added: int = 0
    rows: int = 0
    """Live rows that were rewritten."""
    deleted_rows: int = 0
    """Deleted rows whose place was given back."""
    bytes_before: int = 0
    bytes_after: int = 0
    fragments_copied: int = 0
    """New fragments whose pages were copied as they were."""
    indices_remapped: int = 0
    """Index segments that were rewritten."""
    attempts: int = 0
    is_dry_run: bool = False
    explanation: str = field(default="", repr=False, compare=False)

    def explain(self) -> str:
        """Return the plan of a dry run, one line for each group of fragments."""
        return self.explanation
