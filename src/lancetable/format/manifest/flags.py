"""Feature flags, which decide whether a version may be read and written.

A reader stops at a reader flag it does not support; writer flags never stop reading. Some flags
come in pairs, set in both words or in neither.
"""

import enum

from lancetable.errors import CorruptError, UnsupportedError


class Feature(enum.IntFlag):
    """The bits of both words."""

    DELETION_FILES = 1
    STABLE_ROW_IDS = 2
    V2_FORMAT = 4
    TABLE_CONFIG = 8
    BASE_PATHS = 16
    NO_TRANSACTION_FILE = 32
    DATA_OVERLAYS = 64
    COVERING_INDEX = 128
    MIXED_FILE_VERSIONS = 256
    FRAGMENT_REUSE_WITH_STABLE_ROW_IDS = 512
    TAGGED_FRAGMENT_REUSE = 1024
    SPILLED_ROW_LINEAGE = 2048
    RESERVED_12 = 4096
    RESERVED_13 = 8192
    MANAGED_BLOBS = 16384
    LASTING_FIELD_IDS = 32768
    ZONE_WRITE_SEEDS = 65536


READABLE = (
    Feature.DELETION_FILES
    | Feature.STABLE_ROW_IDS
    | Feature.V2_FORMAT
    | Feature.TABLE_CONFIG
    | Feature.BASE_PATHS
    | Feature.NO_TRANSACTION_FILE
    | Feature.COVERING_INDEX
    | Feature.MIXED_FILE_VERSIONS
    | Feature.TAGGED_FRAGMENT_REUSE
    | Feature.SPILLED_ROW_LINEAGE
    | Feature.MANAGED_BLOBS
    | Feature.LASTING_FIELD_IDS
)
STICKY = (
    Feature.MIXED_FILE_VERSIONS
    | Feature.TAGGED_FRAGMENT_REUSE
    | Feature.MANAGED_BLOBS
    | Feature.LASTING_FIELD_IDS
)
"""Flags that stay once they are set; the others follow from what a version contains."""
_READABLE = int(READABLE)
_PAIRED = int(
    Feature.MIXED_FILE_VERSIONS
    | Feature.TAGGED_FRAGMENT_REUSE
    | Feature.MANAGED_BLOBS
    | Feature.ZONE_WRITE_SEEDS
)

_MEANINGS = {
    Feature.DATA_OVERLAYS: "values patched by overlay files",
    Feature.FRAGMENT_REUSE_WITH_STABLE_ROW_IDS: "a fragment reuse index beside stable row ids",
    Feature.RESERVED_12: "reserved, probably for clustering",
    Feature.RESERVED_13: "reserved",
    Feature.ZONE_WRITE_SEEDS: "seeds for zone statistics kept in the manifest",
}


def check_readable(reader: int, writer: int) -> None:
    """Return quietly when a version with these flags can be read.

    Raises:
        UnsupportedError: a reader flag marks a feature this release cannot read.
        CorruptError: only one half of a pair is set.
    """
    refused = reader & ~_READABLE
    if refused:
        bit = refused & -refused
        raise UnsupportedError(
            f"reader feature flag {bit} ({meaning(bit)}) is set, which this release cannot read; "
            "use a newer release, the table was left untouched"
        )
    half = (reader ^ writer) & _PAIRED
    if half:
        bit = half & -half
        raise CorruptError(
            f"feature flag {bit} ({meaning(bit)}) is set for readers or writers only, "
            "it must be set for both"
        )


def check_writable(reader: int, writer: int) -> None:
    """Return quietly when a table with these flags can be written to, copied or cleaned up.

    Raises:
        UnsupportedError: a writer flag marks a feature this release cannot maintain.
        CorruptError: rows have stable ids for writers only.
    """
    refused = writer & ~_READABLE
    if refused:
        bit = refused & -refused
        raise UnsupportedError(
            f"writer feature flag {bit} ({meaning(bit)}) is set, which this release cannot write; "
            "use a newer release, the table was left untouched"
        )
    if writer & ~reader & Feature.STABLE_ROW_IDS:
        raise CorruptError(
            "feature flag 2 (stable row ids) is set for writers but not for readers, so new rows "
            "could get no ids; restore a version before it, or copy the rows into a new table"
        )


def meaning(bit: int) -> str:
    """Return a short description of a flag."""
    try:
        feature = Feature(bit)
    except ValueError:
        return "meaning unknown"
    name = feature.name
    if name is None or bit not in Feature.__members__.values():
        return "meaning unknown"
    return _MEANINGS.get(feature) or name.replace("_", " ").lower()
