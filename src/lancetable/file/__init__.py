"""One data file: footer, columns and pages; from bytes to Arrow arrays."""

from lancetable.file.create import DataFileWriter, create_file
from lancetable.file.handle import DataFileHandle, open_file
from lancetable.file.model import FileVersion, PageInfo
from lancetable.file.read.reader import FileReader

__all__ = [
    "DataFileHandle",
    "DataFileWriter",
    "FileReader",
    "FileVersion",
    "PageInfo",
    "create_file",
    "open_file",
]
