"""Options and results of a compaction."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypedDict, get_args

from lancetable.errors import InputError
from lancetable.operations.results import VersionResult

MiB = 1024 * 1024
IndexHandling: TypeAlias = Literal["reuse", "remap", "uncover"]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of rows done and the number of all rows."""
SORT_COPIES = 16
"""How many times a part of the rows may be in memory while it is put in order: as it was read, put
in order, joined, waiting for its page, encoded; and what the pool keeps of each."""
KEY_COPIES = 4
"""How many times the columns to sort by may be in memory: decoded, joined, ranked, sorted."""
ORDER_BYTES = 64
"""What the order itself takes for each row."""
_LEAST_MEMORY = 16 * MiB


class CompactSettings(TypedDict, total=False):
    """The options of a compaction as keyword arguments."""

    target_rows: int
    target_bytes: int
    max_bytes_per_file: int | None
    deleted_share: float
    sort_by: Sequence[str]
    z_order_by: Sequence[str]
    indices: IndexHandling | None
    memory_bytes: int
    threads: int
    copy_pages: bool


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """Options of a compaction: which fragments to rewrite, and how."""

    target_rows: int = 1024 * 1024
    """Fragments with fewer live rows are joined with their neighbours, up to about so many."""

    target_bytes: int = 4096 * MiB
    """The same for the bytes of their files: larger fragments are not joined with others."""

    max_bytes_per_file: int | None = None
    """About the most bytes of a new data file, judged by the sizes of the files it replaces; None
    for no limit of its own. A larger fragment is not split unless it is rewritten anyway."""

    deleted_share: float = 0.1
    """A fragment of which a larger share is deleted is rewritten, even alone."""

    sort_by: Sequence[str] = ()
    """Columns to sort by. All fragments are rewritten, in one order as far as the sorted columns
    of all rows fit in memory; the rows themselves need not, and go through files meanwhile."""

    z_order_by: Sequence[str] = ()
    """Columns whose ranks are interleaved to sort by all of them alike; not with ``sort_by``."""

    indices: IndexHandling | None = None
    """What becomes of index segments that hold row addresses.

    ``reuse`` records where rows went, so that segments stay in use; ``remap`` rewrites segments
    of known kinds; ``uncover`` lets them no longer describe the new fragments. Left out it is
    ``reuse`` where that can be done.
    """

    memory_bytes: int = 512 * MiB
    """About how much memory all tasks that run here at a time may take together."""

    threads: int = field(default_factory=lambda: min(os.cpu_count() or 1, 8))
    """How many tasks run at a time at most, when no runner is given."""

    copy_pages: bool = True
    """True to copy encoded pages as they are where that gives the same rows."""

    def __post_init__(self) -> None:
        for name in ("target_rows", "target_bytes", "threads"):
            if not _is_number(getattr(self, name), int) or getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)!r}; give a number from 1")
        most = self.max_bytes_per_file
        if most is not None and (not _is_number(most, int) or most < 1):
            raise InputError(f"max_bytes_per_file is {most!r}; give a number from 1, or None")
        if not _is_number(self.memory_bytes, int) or self.memory_bytes < _LEAST_MEMORY:
            raise InputError(
                f"memory_bytes is {self.memory_bytes!r}; give at least {_LEAST_MEMORY}"
            )
        if not _is_number(self.deleted_share, float) or not 0 <= self.deleted_share <= 1:
            raise InputError(f"deleted_share is {self.deleted_share!r}; give a number from 0 to 1")
        if self.sort_by and self.z_order_by:
            raise InputError("give sort_by or z_order_by, not both")
        for name in ("sort_by", "z_order_by"):
            object.__setattr__(self, name, _columns(name, getattr(self, name)))
        if self.indices is not None and self.indices not in get_args(IndexHandling):
            known = ", ".join(get_args(IndexHandling))
            raise InputError(f"indices is {self.indices!r}; use one of {known}")
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


def compact_options(settings: CompactSettings) -> CompactOptions:
    """Return the options with the given ones in place of the defaults.

    Raises:
        InputError: there is no such option, or its value makes no sense.
    """
    known = CompactOptions.__dataclass_fields__
    for name in settings:
        if name not in known:
            raise InputError(f"a compaction has no option {name!r}; there are {', '.join(known)}")
    return CompactOptions(**settings)


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, (int, kind)) and not isinstance(value, bool)


def _columns(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        raise InputError(f"{name} is a list of columns; write [{value!r}]")
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise InputError(f"{name} is a list of columns, not {value!r}")
    columns = tuple(value)
    for column in columns:
        if not isinstance(column, str):
            raise InputError(f"{name} names columns; {column!r} is no name")
    return columns


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
