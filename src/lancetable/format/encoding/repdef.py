"""Repetition and definition levels, which encode lists and nulls.

Every page of a nested column stores, beside its values, a repetition and a definition level per
entry (2.1 and later). Zero means the inner-most thing: definition 0 is a valid value, repetition 0
the next element of the current inner-most list. ``layers`` names the nodes from the leaf to the
root, and each takes the next definition levels:

| layer | levels it takes |
|---|---|
| all valid item, all valid list | none |
| nullable item, nullable list, emptyable list | one |
| list with nulls and empties | two: null, then empty |

An entry that stands for a null or empty list has no value; it is *invisible*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Levels
from lancetable.format.encoding.kernels.compiled import LIBRARY, Library

Mask = npt.NDArray[np.bool_]


class Layer(IntEnum):
    """The kinds of one node of the path from leaf to root in a page."""

    ALL_VALID_ITEM = 1
    ALL_VALID_LIST = 2
    NULLABLE_ITEM = 3
    NULLABLE_LIST = 4
    EMPTYABLE_LIST = 5
    NULL_AND_EMPTY_LIST = 6

    @property
    def is_list(self) -> bool:
        """True for the layer of a list or a map."""
        return self not in {Layer.ALL_VALID_ITEM, Layer.NULLABLE_ITEM}

    @property
    def levels(self) -> int:
        """Number of definition levels of the layer."""
        if self in {Layer.ALL_VALID_ITEM, Layer.ALL_VALID_LIST}:
            return 0
        return 2 if self is Layer.NULL_AND_EMPTY_LIST else 1


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a page, inner-most first, and what follows from them."""

    items: tuple[Layer, ...]
    max_rep: int
    max_def: int
    max_visible: int
    depths: tuple[int, ...]
    """For each definition level the number of list layers inside or at its own layer."""


def layers_of(items: Sequence[Layer]) -> Layers:
    """Count levels and lists."""
    depths = [0]
    lists = 0
    max_visible: int | None = None
    for layer in items:
        if layer.is_list:
            max_visible = len(depths) - 1 if max_visible is None else max_visible
            lists += 1
        depths.extend([lists] * layer.levels)
    max_def = len(depths) - 1
    visible = max_def if max_visible is None else max_visible
    return Layers(tuple(items), lists, max_def, visible, tuple(depths))


@lru_cache(maxsize=256)
def any_layers(are_lists: tuple[bool, ...]) -> Layers:
    """Return layers in which anything may be null, and every list empty, from the leaf outwards."""
    return layers_of(
        [Layer.NULL_AND_EMPTY_LIST if is_list else Layer.NULLABLE_ITEM for is_list in are_lists]
    )


class Node(NamedTuple):
    """One layer of some rows, decoded; ``offsets`` are those of a list."""

    length: int
    validity: Mask | None
    offsets: npt.NDArray[np.signedinteger[Any]] | None


def check_levels(rep: Levels | None, def_: Levels | None, layers: Layers) -> None:
    """Refuse levels that the layers do not know.

    Raises:
        CorruptError: a level is too high, or both kinds do not go together.
    """
    if rep is not None and len(rep) and int(rep.max()) > layers.max_rep:
        raise CorruptError(f"a repetition level is above {layers.max_rep}")
    if def_ is not None and len(def_) and int(def_.max()) > layers.max_def:
        raise CorruptError(f"a definition level is above {layers.max_def}")
    if rep is not None and def_ is not None and len(rep) != len(def_):
        raise CorruptError(
            f"a page has {len(rep)} repetition levels and {len(def_)} definition levels"
        )
    if rep is None and layers.max_rep:
        raise CorruptError("a page with lists has no repetition levels")


def visible(def_: Levels | None, layers: Layers) -> Mask | None:
    """Return which entries have a value; None stands for all of them."""
    if def_ is None or layers.max_visible >= layers.max_def:
        return None
    shown: Mask = def_ <= layers.max_visible
    return shown


def leaf_validity(def_: Levels | None, layers: Layers) -> Mask | None:
    """Return which of the visible entries are not null; None stands for all of them."""
    if def_ is None or layers.max_visible == 0:
        return None
    shown = visible(def_, layers)
    valid: Mask = (def_ if shown is None else def_[shown]) == 0
    return valid


def unravel(
    rep: Levels | None,
    def_: Levels | None,
    layers: Layers,
    length: int,
    widths: Mapping[int, int] | None = None,
) -> tuple[Node, ...]:
    """Turn levels into the nodes above the leaf, inner-most first.

    Args:
        rep: repetition levels, None without lists.
        def_: definition levels, None when everything is valid.
        layers: the layers of the page.
        length: number of entries, for pages without any level.
        widths: for a layer that is a list of fixed size, how many entries make one list.
    """
    walk = _Walk(rep, def_, layers, length)
    nodes: list[Node] = []
    for number, layer in enumerate(layers.items):
        if widths and number in widths:
            walk.shrink(widths[number])
        node = walk.list_node(number) if layer.is_list else walk.item_node(number)
        if number:
            nodes.append(node)
    return tuple(nodes)


class _Walk:
    """The levels while layer after layer is taken off, from the inside."""

    def __init__(
        self, rep: Levels | None, def_: Levels | None, layers: Layers, length: int
    ) -> None:
        self.rep = rep
        self.def_ = def_
        self.layers = layers
        self.length = length if rep is None and def_ is None else len(_present(rep, def_))
        self.taken = 0
        self.lists = 0

    def shrink(self, width: int) -> None:
        """Keep the first entry of every ``width``."""
        if self.length % width:
            raise CorruptError(f"{self.length} entries do not fill lists of {width}")
        self.length //= width
        self.def_ = None if self.def_ is None else self.def_[::width]

    def item_node(self, number: int) -> Node:
        layer = self.layers.items[number]
        def_ = self.def_
        if def_ is not None and self.lists < self.layers.max_rep:
            # Entries of null or empty lists further out are no items of this layer.
            known = self.layers.depths[-1] > self.lists
            if known:
                limit = self._levels_up_to(self.lists)
                def_ = def_[def_ <= limit]
        length = self.length if def_ is None else len(def_)
        if layer.levels == 0 or def_ is None:
            return Node(length, None, None)
        validity = def_ <= self.taken
        self.taken += 1
        return Node(length, validity, None)

    def list_node(self, number: int) -> Node:
        layer = self.layers.items[number]
        null, empty, upper = self._list_levels(layer)
        most = upper + self._nullable_items_after(number)
        self.taken = upper
        self.lists += 1
        if self.rep is None:
            raise CorruptError("a page with lists has no repetition levels")
        if LIBRARY is not None:
            return self._lists_compiled(LIBRARY, (null, empty, upper, most))
        starts = self.rep != 0
        node, kept = self._lists(starts, (null, empty, upper, most))
        self.rep = self.rep[kept] - np.uint16(1)
        self.def_ = None if self.def_ is None else self.def_[kept]
        self.length = len(self.rep)
        return node

    def _lists_compiled(self, library: Library, bounds: tuple[int, int, int, int]) -> Node:
        rep = np.ascontiguousarray(_present(self.rep, None))
        def_ = None if self.def_ is None else np.ascontiguousarray(self.def_)
        size = len(rep)
        offsets, valid = np.empty(size + 1, np.int64), np.empty(size, np.uint8)
        kept_rep = np.empty(size, np.uint16)
        kept_def = np.empty(0 if def_ is None else size, np.uint16)
        counts = np.empty(2, np.int64)
        nulls = library.lists(
            (rep, def_), np.array(bounds, np.int64), (offsets, valid), (kept_rep, kept_def), counts
        )
        lists, kept = counts.tolist()
        self.rep = kept_rep[:kept]
        self.def_ = None if def_ is None else kept_def[:kept]
        self.length = kept
        return Node(lists, valid[:lists].view(np.bool_) if nulls else None, offsets[: lists + 1])

    def _lists(self, starts: Mask, bounds: tuple[int, int, int, int]) -> tuple[Node, Mask]:
        null, empty, upper, most = bounds
        def_ = self.def_
        if def_ is None:
            places = np.flatnonzero(starts)
            return Node(len(places), None, np.append(places, len(starts))), starts
        hidden = starts & (def_ > most)
        is_null = starts & ~hidden & ((def_ == null) | (def_ > upper))
        is_empty = starts & (def_ == empty)
        opens = starts & ~hidden
        children = np.zeros(len(def_) + 1, np.int64)
        np.cumsum(~(hidden | is_null | is_empty), out=children[1:])
        offsets = np.append(children[:-1][opens], children[-1])
        has_nulls = bool(is_null.any())
        validity = ~is_null[opens] if has_nulls else None
        return Node(int(opens.sum()), validity, offsets), starts

    def _list_levels(self, layer: Layer) -> tuple[int, int, int]:
        first = self.taken + 1
        if layer is Layer.NULLABLE_LIST:
            return first, -1, first
        if layer is Layer.EMPTYABLE_LIST:
            return -1, first, first
        if layer is Layer.NULL_AND_EMPTY_LIST:
            return first, first + 1, first + 1
        return -1, -1, self.taken

    def _nullable_items_after(self, number: int) -> int:
        count = 0
        for layer in self.layers.items[number + 1 :]:
            if layer.is_list:
                break
            count += layer.levels
        return count

    def _levels_up_to(self, lists: int) -> int:
        """Return the highest definition level that lives inside ``lists`` list layers."""
        return max(level for level, depth in enumerate(self.layers.depths) if depth <= lists)


def _present(rep: Levels | None, def_: Levels | None) -> Levels:
    levels = rep if rep is not None else def_
    if levels is None:
        raise CorruptError("a page has no levels")
    return levels


def join_nodes(parts: Sequence[tuple[Node, ...]]) -> tuple[Node, ...]:
    """Put the nodes of consecutive rows behind one another, layer by layer."""
    if len(parts) == 1:
        return parts[0]
    return tuple(_join(layer) for layer in zip(*parts, strict=True))


def _join(nodes: Sequence[Node]) -> Node:
    length = sum(node.length for node in nodes)
    validity = None
    if any(node.validity is not None for node in nodes):
        validity = np.concatenate(
            [
                np.ones(node.length, np.bool_) if node.validity is None else node.validity
                for node in nodes
            ]
        )
    if nodes[0].offsets is None:
        return Node(length, validity, None)
    parts = [np.zeros(1, np.int64)]
    base = 0
    for node in nodes:
        if node.offsets is None:
            raise CorruptError("pages of one column disagree about where lists are")
        parts.append(node.offsets[1:] + base)
        base += int(node.offsets[-1])
    return Node(length, validity, np.concatenate(parts))
