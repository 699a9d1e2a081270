"""How are values laid out when some slots have none?"""

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.blocks import (
    Block,
    FixedSizeLists,
    FixedWidth,
    Structs,
    VariableWidth,
)

Mask = npt.NDArray[np.bool_]


def spread(block: Block, shown: Mask) -> Block:
    """Return a block with one slot per mask entry; slots that are not shown are empty."""
    match block:
        case VariableWidth(offsets, data):
            place = np.zeros(len(shown) + 1, np.int64)
            np.cumsum(shown, out=place[1:])
            return VariableWidth(offsets[place], data)
        case FixedWidth(data, width):
            out = np.zeros((len(shown), width), np.uint8)
            out[shown] = data.reshape(-1).view(np.uint8).reshape(-1, width)
            return FixedWidth(out, width)
        case Structs(children, _):
            return Structs(tuple(spread(child, shown) for child in children), len(shown))
        case FixedSizeLists(dimension, items, validity, _):
            each = np.repeat(shown, dimension)
            spread_validity = None
            if validity is not None:
                spread_validity = np.zeros(len(each), np.bool_)
                spread_validity[each] = validity
            return FixedSizeLists(dimension, spread(items, each), spread_validity, len(shown))
        case _:
            raise CorruptError("values of a page cannot be laid out between nulls")
