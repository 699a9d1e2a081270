"""Versions of a table: finding one, opening it, and the names given to some of them.

Names stand in ``refs``, which most who open a table do not need.
"""

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import VersionInfo, list_versions, load

__all__ = [
    "Snapshot",
    "VersionInfo",
    "list_versions",
    "load",
]
