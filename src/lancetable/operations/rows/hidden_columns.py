"""Store row ids that are too large for the manifest as hidden columns of a data file.

The setting ``lance.row_lineage.spill`` of the table enables it. A sequence that would take more
than ``lance.row_lineage.inline_max_bytes`` is then written as a column of one more file of the
fragment. Only rows that were moved have their ids before the commit; others are numbered by it, and
those sequences are short.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.file.model import file_version
from lancetable.format.manifest import ColumnSequence, Fragment
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.projection import SPILLED_IDS
from lancetable.fragment.writer import (
    WriteOptions,
    WriteTarget,
    new_file_name,
    new_fragment,
    open_writer,
)
from lancetable.operations.input.file_version import table_options

SPILL = "lance.row_lineage.spill"
INLINE_MAX_BYTES = "lance.row_lineage.inline_max_bytes"
DEFAULT_MAX_BYTES = 200 * 1024
_TRUE = frozenset({"true", "1", "yes"})

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Spill:
    """Limit of sequences in the manifest, and the target of larger ones."""

    most: int
    target: WriteTarget
    options: WriteOptions

    @classmethod
    def of(cls, part: Snapshot, options: WriteOptions) -> Self | None:
        """Return the settings of a table, ``None`` when everything stays in the manifest.

        Raises:
            InputError: the setting of the table is no number.
        """
        config = part.manifest.config or {}
        if config.get(SPILL, "").lower() not in _TRUE:
            return None
        text = config.get(INLINE_MAX_BYTES, str(DEFAULT_MAX_BYTES))
        if not text.isdigit():
            raise InputError(f"the setting {INLINE_MAX_BYTES} is {text!r}; make it a number")
        return cls(int(text), WriteTarget(part.store), table_options(part.manifest, options))

    def kept_outside(self, fragment: Fragment, columns: Mapping[str, Numbers]) -> Fragment:
        """Return a fragment with one more file, which holds sequences by the name of their column.

        Raises:
            StoreError: the file cannot be written; nothing of it stays behind.
        """
        fields = tuple(Field(name, SPILLED_IDS[name], "uint64", nullable=False) for name in columns)
        name = new_file_name()
        version = file_version(self.options.storage_version or "")
        writer = open_writer(version, name, Schema(fields), self.target, self.options)
        try:
            arrays = [pa.array(numbers) for numbers in columns.values()]
            schema = pa.schema([pa.field(one, pa.uint64(), nullable=False) for one in columns])
            writer.write(pa.record_batch(arrays, schema=schema))
            file = new_fragment(name, writer.finish(), self.target).files[0]
        except BaseException:
            writer.abort()
            raise
        return fragment._replace(files=(*fragment.files, file))


OUTSIDE = ColumnSequence()
"""Marks a sequence of a fragment that is a column of its files."""
