"""Versions of a table: finding one, opening it, and the names given to some of them."""

from lancetable.commit.refs import BranchInfo, TagInfo, branches, tags
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import VersionInfo, list_versions, load

__all__ = [
    "BranchInfo",
    "Snapshot",
    "TagInfo",
    "VersionInfo",
    "branches",
    "list_versions",
    "load",
    "tags",
]
