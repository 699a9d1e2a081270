"""Pages are encoded in the way that suits their values."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from lancetable.format.encoding.build.blocks import VariableValues
from lancetable.format.encoding.build.split import is_crowded, split_rows
from lancetable.format.encoding.build.shred import Shredded, shred
from lancetable.format.encoding.build.values import encode_bitpacked, block_widths, encode_variable
from lancetable.format.encoding.blocks import Chunks, FixedWidth, VariableWidth
from lancetable.format.schema.types import schema_from_arrow
