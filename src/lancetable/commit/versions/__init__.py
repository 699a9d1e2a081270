"""Versions of a table: find one, list them all."""

from lancetable.commit.versions.find import check_may_change, load, read_hint
from lancetable.commit.versions.listing import (
    VersionInfo,
    detached_version,
    list_versions,
    listed,
    listed_entries,
    manifest_view,
    newest_in_order,
    versions_among,
)

__all__ = [
    "VersionInfo",
    "check_may_change",
    "detached_version",
    "list_versions",
    "listed",
    "listed_entries",
    "load",
    "manifest_view",
    "newest_in_order",
    "read_hint",
    "versions_among",
]
