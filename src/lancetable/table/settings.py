"""Keyword arguments of operations, generated from their option classes.

Run ``python -m tests.architecture.test_settings`` after a change of an option class.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, TypedDict

from lancetable.fragment.write.progress import ProgressCallback


class CheckSettings(TypedDict, total=False):
    """Fields of :class:`lancetable.CheckOptions`."""

    level: Literal["metadata", "files", "data", "indices"]
    all_versions: bool
    journal: str | None


class CleanupSettings(TypedDict, total=False):
    """Fields of :class:`lancetable.CleanupOptions`."""

    older_than: timedelta | str
    keep_last: int
    versions: Sequence[int] | None
    unverified_after: timedelta | str
    all_branches: bool
    clones: Sequence[str]
    remove_damaged: bool
    files_per_second: float | None


class CompactSettings(TypedDict, total=False):
    """Fields of :class:`lancetable.CompactOptions`."""

    target_rows: int
    target_bytes: int | str
    max_bytes_per_file: int | str | None
    deleted_share: float
    sort_by: Sequence[str]
    z_order_by: Sequence[str]
    indices: Literal["reuse", "remap", "uncover"] | None
    memory_bytes: int | str
    threads: int
    copy_pages: bool


class IndexSettings(TypedDict, total=False):
    """Fields of :class:`lancetable.IndexOptions`."""

    name: str | None
    replace: bool
    train: bool
    fragments: Sequence[int] | None
    segments: int
    memory_bytes: int | str


class OptimizeSettings(TypedDict, total=False):
    """Fields of :class:`lancetable.OptimizeOptions`."""

    mode: Literal["auto", "append", "merge", "rebuild"]
    memory_bytes: int | str


class ScanSettings(TypedDict, total=False):
    """Fields of :class:`lancetable.ScanOptions`."""

    batch_rows: int
    batch_bytes: int | str
    memory_bytes: int | str
    strict: bool
    threads: int
    lease_seconds: int | None


class WriteSettings(TypedDict, total=False):
    """Fields of :class:`lancetable.WriteOptions`."""

    max_rows_per_file: int
    max_bytes_per_file: int | str
    page_bytes: int | str
    storage_version: str | None
    pending_bytes: int | str
    target_bases: Sequence[str]
    progress: bool | ProgressCallback
