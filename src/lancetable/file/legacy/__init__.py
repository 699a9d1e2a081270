"""Data files of version 0.1: no schema inside, one page per field and batch, no validity."""

from lancetable.file.legacy.dictionaries import read_manifest_dictionary
from lancetable.file.legacy.reader import LegacyFile

__all__ = ["LegacyFile", "read_manifest_dictionary"]
