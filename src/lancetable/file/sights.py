"""What can be said of the leaves of a field before any file is opened, worked out once."""

from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from lancetable.file.leaves import Leaf, leaves_of
from lancetable.format.encoding.leaf import Kind, kind_of
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type


class Sight(NamedTuple):
    """What can be said of a leaf before any file is opened; packed structs have no kind yet."""

    leaf: Leaf
    kind: Kind | None
    is_simple: bool


@lru_cache(maxsize=4096)
def sights_of(field: Field) -> list[Sight]:
    """Return the leaves of a field in depth-first order."""
    return [_sight(leaf) for leaf in leaves_of(field)]


def _sight(leaf: Leaf) -> Sight:
    field = leaf.field
    if field.is_json:
        return Sight(leaf, kind_of(pa.large_binary()), is_simple=False)
    if field.is_packed and not field.is_blob:
        return Sight(leaf, None, is_simple=False)
    is_simple = leaf.depth == 0 and not field.is_blob
    return Sight(leaf, kind_of(arrow_type(field)), is_simple)
