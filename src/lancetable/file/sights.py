"""What can be said of the leaves of a field before any file is opened, worked out once."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from lancetable.file.leaves import Leaf, leaves_of, owns_column
from lancetable.format.encoding.base import Column
from lancetable.format.encoding.gather import GatherLeaf, gather_leaf
from lancetable.format.encoding.leaf import Kind, kind_of
from lancetable.format.encoding.repdef import Layers, any_layers
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type


class Sight(NamedTuple):
    """What can be said of a leaf before any file is opened; packed structs have no kind yet."""

    leaf: Leaf
    kind: Kind | None
    is_simple: bool
    gather: GatherLeaf | None = None
    """How single rows are gathered; None when they are not."""


class LeafPlan(NamedTuple):
    """A leaf and the column it is read from."""

    leaf: Leaf
    number: int
    column: Column
    kind: Kind
    is_simple: bool
    layers: Layers | None
    """The full layers of the column, when single rows of it can be gathered."""


@lru_cache(maxsize=4096)
def sights_of(field: Field) -> list[Sight]:
    """Return the leaves of a field in depth-first order."""
    paths = _paths(field, ())
    return [_sight(leaf, path) for leaf, path in zip(leaves_of(field), paths, strict=True)]


def _paths(field: Field, above: tuple[bool, ...]) -> Iterator[tuple[bool, ...]]:
    """Yield for each leaf which of the nodes from it to the root are lists."""
    if owns_column(field):
        yield (False, *above)
        return
    is_list = field.logical_type.startswith(("list", "large_list", "map"))
    for child in field.children:
        yield from _paths(child, (is_list, *above))


def _sight(leaf: Leaf, path: tuple[bool, ...]) -> Sight:
    field = leaf.field
    if field.is_json:
        return Sight(leaf, kind_of(pa.large_binary()), is_simple=False)
    if field.is_packed and not field.is_blob:
        return Sight(leaf, None, is_simple=False)
    kind = kind_of(arrow_type(field))
    is_whole = leaf.factor == 1 and not leaf.widths and not field.is_blob
    return Sight(
        leaf,
        kind,
        is_simple=leaf.depth == 0 and not field.is_blob,
        gather=gather_leaf(kind, any_layers(path)) if is_whole else None,
    )
