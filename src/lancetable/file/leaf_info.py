"""Find the columns of a data file that hold a field.

From 2.1 on only leaves own columns: primitives (lists of fixed size included), packed structs,
blobs and structs without fields. In 2.0 every struct and list owns one too, before its children.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from lancetable.errors import UnsupportedError
from lancetable.file.model import V2_0, FileVersion
from lancetable.format.encoding.base import Column
from lancetable.format.encoding.gather import GatherLeaf, gather_leaf
from lancetable.format.encoding.leaf import Kind, kind_of
from lancetable.format.encoding.repdef import Layers, any_layers
from lancetable.format.schema.logical import split_fixed_size_list
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type

_LISTS = ("list", "large_list", "map")
NO_WIDTHS: Mapping[int, int] = {}


class Leaf(NamedTuple):
    """A field that owns a column.

    ``widths`` says which layers above it, counted from the leaf, are lists of fixed size, and how
    many entries make one; ``factor`` is their product.
    """

    field: Field
    depth: int
    widths: Mapping[int, int]
    factor: int


def owns_column(field: Field) -> bool:
    """Return whether the field is a leaf of the column tree."""
    return not field.children or field.is_blob or field.is_packed


@lru_cache(maxsize=4096)
def leaves_of(field: Field) -> list[Leaf]:
    """Return the leaves of a field in depth-first order."""
    return list(_leaves(field, ()))


def _leaves(field: Field, above: tuple[int, ...]) -> Iterator[Leaf]:
    """``above`` has for each ancestor the number of entries that make one of it.

    Raises:
        UnsupportedError: a list is inside lists of fixed size.
    """
    if owns_column(field):
        widths = {len(above) - place: size for place, size in enumerate(above) if size > 1}
        factor = 1
        for size in above:
            factor *= size
        yield Leaf(field, len(above), widths or NO_WIDTHS, factor)
        return
    if field.logical_type.startswith(_LISTS) and any(size > 1 for size in above):
        raise UnsupportedError(
            f"field {field.name!r} is a list inside lists of fixed size, which cannot be read"
        )
    size = 1
    if field.logical_type.startswith("fixed_size_list:"):
        size = split_fixed_size_list(field.logical_type)[1]
    for child in field.children:
        yield from _leaves(child, (*above, size))


def columns_by_walk(schema: Schema, version: FileVersion) -> dict[int, int]:
    """Number the columns of a file by its own schema: field id to column."""
    owners = [field for top in schema.fields for field in column_owners(top, version)]
    return {field.id: number for number, field in enumerate(owners)}


def column_owners(field: Field, version: FileVersion) -> Iterator[Field]:
    """Yield the fields at and below a field that own a column, in the order of their columns."""
    is_leaf = owns_column(field)
    if is_leaf or version == V2_0:
        yield field
    if not is_leaf:
        for child in field.children:
            yield from column_owners(child, version)


class LeafInfo(NamedTuple):
    """The properties of a leaf known before any file is opened; packed structs have no kind yet."""

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
def leaf_infos(field: Field) -> list[LeafInfo]:
    """Return the leaves of a field in depth-first order."""
    paths = _paths(field, ())
    return [_leaf_info(leaf, path) for leaf, path in zip(leaves_of(field), paths, strict=True)]


def _paths(field: Field, above: tuple[bool, ...]) -> Iterator[tuple[bool, ...]]:
    """Yield for each leaf which of the nodes from it to the root are lists."""
    if owns_column(field):
        yield (False, *above)
        return
    is_list = field.logical_type.startswith(("list", "large_list", "map"))
    for child in field.children:
        yield from _paths(child, (is_list, *above))


def _leaf_info(leaf: Leaf, path: tuple[bool, ...]) -> LeafInfo:
    field = leaf.field
    if field.is_json:
        return LeafInfo(leaf, kind_of(pa.large_binary()), is_simple=False)
    if field.is_packed and not field.is_blob:
        return LeafInfo(leaf, None, is_simple=False)
    kind = kind_of(arrow_type(field))
    is_whole = leaf.factor == 1 and not leaf.widths and not field.is_blob
    return LeafInfo(
        leaf,
        kind,
        is_simple=leaf.depth == 0 and not field.is_blob,
        gather=gather_leaf(kind, any_layers(path)) if is_whole else None,
    )
