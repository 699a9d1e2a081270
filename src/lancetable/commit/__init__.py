"""Versions of a table: find and open them, and commit new ones."""

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import VersionInfo, list_versions, load

__all__ = [
    "Snapshot",
    "VersionInfo",
    "list_versions",
    "load",
]
