"""Shred a nested Arrow array into leaf columns with levels.

The reverse of ``repdef``. Going from the root to the leaf, every node adds its nulls and lists to
the entries: a null or empty list keeps one entry without a value, any other list becomes one entry
per item, of which the first carries the repetition level of the node.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.format.arrays import numbers
from lancetable.format.encoding.base import Integers, Levels
from lancetable.format.encoding.repdef import Layer, Mask
from lancetable.format.schema.model import Field

LISTS = frozenset({"list", "list.struct", "large_list", "large_list.struct", "map"})


class Shredded(NamedTuple):
    """A leaf column: one value per visible entry, levels per entry, layers inner-most first."""

    field: Field
    values: pa.Array
    rep: Levels | None
    def_: Levels | None
    layers: tuple[Layer, ...]

    @property
    def has_lists(self) -> bool:
        """True when rows may have more or fewer than one entry."""
        return self.rep is not None


class _Node(NamedTuple):
    """A node on the way from the root to a leaf, with its array."""

    array: pa.Array
    layer: Layer
    is_list: bool
    width: int = 1
    """How many entries below make one of this node: the length of lists of fixed size."""


def shred(field: Field, array: pa.Array) -> Iterator[Shredded]:
    """Yield the leaf columns of a field in depth-first order; ``array`` has storage types."""
    yield from _shred(field, array, ())


def _shred(field: Field, array: pa.Array, above: tuple[_Node, ...]) -> Iterator[Shredded]:
    if not field.children or field.is_packed or field.is_blob:
        yield _leaf(field, array, above)
        return
    if field.logical_type in LISTS:
        node = _Node(array, _list_layer(array, above), is_list=True)
        yield from _shred(field.children[0], _list_items(array), (*above, node))
        return
    if field.logical_type.startswith("fixed_size_list:"):
        node = _Node(array, _item_layer(array, above), False, array.type.list_size)  # noqa: FBT003
        yield from _shred(field.children[0], _fixed_items(array), (*above, node))
        return
    layer = _item_layer(array, above)
    if field.nullable and any(below.logical_type in LISTS for below in field.walk()):
        # pylance cannot read structs of lists of which only some pages say that they may be null.
        layer = Layer.NULLABLE_ITEM
    node = _Node(array, layer, is_list=False)
    for number, child in enumerate(field.children):
        yield from _shred(child, array.field(number), (*above, node))


def _may_be_null(array: pa.Array, above: tuple[_Node, ...]) -> bool:
    """Return whether a node may be null: also when a struct right above it may.

    pylance takes what is inside a null struct for null, and reads it wrong where layers differ.
    """
    is_inside = bool(above) and above[-1].layer is Layer.NULLABLE_ITEM
    return is_inside or array.null_count > 0


def _item_layer(array: pa.Array, above: tuple[_Node, ...]) -> Layer:
    return Layer.NULLABLE_ITEM if _may_be_null(array, above) else Layer.ALL_VALID_ITEM


def _list_layer(array: pa.Array, above: tuple[_Node, ...]) -> Layer:
    lengths = np.diff(_offsets(array))
    validity = valid_mask(array)
    has_nulls = _may_be_null(array, above)
    has_empties = bool(((lengths == 0) if validity is None else (lengths == 0) & validity).any())
    if has_nulls:
        return Layer.NULL_AND_EMPTY_LIST if has_empties else Layer.NULLABLE_LIST
    return Layer.EMPTYABLE_LIST if has_empties else Layer.ALL_VALID_LIST


def _offsets(array: pa.Array) -> Integers:
    """Return where each list starts in the items, and where the last one ends."""
    return np.asarray(array.offsets.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def _list_items(array: pa.Array) -> pa.Array:
    if pa.types.is_map(array.type):
        return pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[array.type.key_field, array.type.item_field]
        )
    return array.values


def _fixed_items(array: pa.Array) -> pa.Array:
    """Return the items of lists of fixed size, those of null lists included."""
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def valid_mask(array: pa.Array) -> Mask | None:
    """Return which values are not null; None stands for all of them."""
    if not array.null_count:
        return None
    mask: Mask = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    return mask


def _leaf(field: Field, array: pa.Array, above: tuple[_Node, ...]) -> Shredded:
    leaf_layer = _item_layer(array, above)
    layers = (leaf_layer, *(node.layer for node in reversed(above)))
    if not above and leaf_layer is Layer.ALL_VALID_ITEM:
        return Shredded(field, array, None, None, layers)
    levels = sum(layer.levels for layer in layers)
    walk = _Walk(len(above[0].array) if above else len(array), levels, _count_lists(above))
    for node in above:
        if node.is_list:
            walk.enter_list(node)
        else:
            walk.enter_item(node.array, node.layer)
            if node.width != 1:
                walk.repeat(node.width)
    walk.enter_item(array, leaf_layer)
    def_ = walk.def_ if levels else None
    return Shredded(field, walk.values(array), walk.rep if walk.has_lists else None, def_, layers)


def _count_lists(nodes: tuple[_Node, ...]) -> int:
    return sum(node.is_list for node in nodes)


class _Walk:
    """The entries while node after node is entered, from the outside."""

    def __init__(self, rows: int, levels: int, lists: int) -> None:
        self.def_: Levels = np.zeros(rows, np.uint16)
        self.rep: Levels = np.zeros(rows, np.uint16)
        self.place: Integers | None = None
        """For each entry its place in the array of the current node, -1 without one."""
        self._level = levels
        self._list = lists
        self.has_lists = lists > 0

    def enter_item(self, array: pa.Array, layer: Layer) -> None:
        """Mark the nulls of a struct or a leaf."""
        validity = valid_mask(array)
        if layer.levels and validity is not None:
            is_null = self._look_up(~validity, default=False)
            self.def_[is_null & (self.def_ == 0)] = self._level
        self._level -= layer.levels

    def repeat(self, width: int) -> None:
        """Take the items of lists of fixed size, which null ones have too."""
        self.def_ = np.repeat(self.def_, width)
        self.rep = np.repeat(self.rep, width)

    def enter_list(self, node: _Node) -> None:
        """Mark null and empty lists and take the items of the others."""
        offsets = _offsets(node.array)
        validity = valid_mask(node.array)
        is_normal = self._normal()
        open_entries = is_normal & (self.def_ == 0)
        self.rep[is_normal & (self.rep == 0)] = self._list
        null_level = self._level - (node.layer is Layer.NULL_AND_EMPTY_LIST)
        if validity is not None:
            self.def_[open_entries & self._look_up(~validity, default=False)] = null_level
        lengths = self._look_up(np.diff(offsets), default=0)
        is_empty = (lengths == 0) & is_normal & (self.def_ == 0)
        self.def_[is_empty] = self._level
        self._expand(offsets, lengths, is_normal & (self.def_ == 0))
        self._level -= node.layer.levels
        self._list -= 1

    def _expand(self, offsets: Integers, lengths: Integers, is_open: Mask) -> None:
        counts = np.where(is_open, lengths, 1)
        firsts = np.cumsum(counts) - counts
        begins = self._look_up(offsets[:-1], default=0)
        total = int(counts.sum())
        inside = np.arange(total) - np.repeat(firsts, counts)
        place = np.repeat(np.where(is_open, begins, -1), counts)
        self.place = np.where(place >= 0, place + inside, -1)
        rep = np.zeros(total, np.uint16)
        rep[firsts] = self.rep
        self.rep = rep
        self.def_ = np.repeat(self.def_, counts)

    def _normal(self) -> Mask:
        if self.place is None:
            return np.ones(len(self.def_), np.bool_)
        normal: Mask = self.place >= 0
        return normal

    def _look_up(self, per_node: npt.NDArray[Any], *, default: int) -> npt.NDArray[Any]:
        """Return for each entry what an array says about the current node."""
        if self.place is None:
            return per_node
        if not len(per_node):
            return np.full(len(self.place), default, per_node.dtype)
        found = per_node[np.maximum(self.place, 0)]
        found[self.place < 0] = default
        return found

    def values(self, array: pa.Array) -> pa.Array:
        """Return the values of the visible entries."""
        if self.place is None:
            return array
        places = self.place[self.place >= 0]
        if not len(places):
            return array[:0]
        first, last = int(places[0]), int(places[-1])
        if last - first + 1 == len(places):
            return array.slice(first, len(places))
        return array.take(numbers(places))
