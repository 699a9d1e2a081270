"""Read the values of a dictionary field of a 0.1 table.

The manifest file keeps them, in a page like that of a data file with its own positions.
"""

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.file.drive import drive
from lancetable.file.legacy.pages import Batch, read_batch
from lancetable.format.schema.logical import logical_type
from lancetable.format.schema.model import DictionaryPage, Field
from lancetable.store import ReadableFile


def read_manifest_dictionary(
    file: ReadableFile, page: DictionaryPage, value_type: pa.DataType
) -> pa.Array:
    """Return the values of a dictionary field from the manifest file.

    Raises:
        CorruptError: the page reaches out of the file.
    """
    if page.length < 0:
        raise CorruptError(f"a dictionary in the manifest has {page.length} values")
    values = Field("dictionary", 0, logical_type(value_type, "dictionary"), nullable=False)
    batch = Batch(0, np.array([[page.offset, page.length]], np.int64), file.size, {})
    return drive(file, [read_batch(values, batch, range(page.length))])[0]
