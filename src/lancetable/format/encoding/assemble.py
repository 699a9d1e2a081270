"""Assemble the leaves of a nested field into one Arrow array.

Every leaf column carries the levels of all its ancestors, so each leaf alone tells where its lists
and nulls are. The first leaf of a node decides; the others must agree in length.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import Block, Indices
from lancetable.format.encoding.layout import Entries
from lancetable.format.encoding.leaf import Kind, keep_entries, leaf_array
from lancetable.format.encoding.listscan import ListScan, list_nodes
from lancetable.format.encoding.repdef import (
    Layers,
    Mask,
    Node,
    join_nodes,
    leaf_validity,
    unravel,
    visible,
)
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type

LARGEST_OFFSET = 2**31 - 1


class LeafRun(NamedTuple):
    """Some rows of a leaf column: its values, and the nodes above it from the inside out."""

    array: pa.Array
    nodes: tuple[Node, ...]


def leaf_run(
    entries: Entries,
    layers: Layers,
    kind: Kind,
    widths: Mapping[int, int] | None = None,
) -> LeafRun:
    """Turn decoded entries into values and nodes; ``widths`` as in ``unravel``."""
    if entries.lists is not None and not widths:
        return _scanned_run(entries.block, entries.lists, layers, kind)
    rep, def_, keep = entries.rep, entries.def_, entries.keep
    validity = leaf_validity(def_, layers)
    shown = visible(def_, layers)
    if shown is None and isinstance(entries.block, Indices):
        # Items may be large: look up those of the wanted entries only.
        indices, items = entries.block.indices[keep], entries.block.items
        validity = None if validity is None else validity[keep]
        array = leaf_array(Indices(indices, items), kind, validity)
    elif shown is None:
        array = keep_entries(leaf_array(entries.block, kind, validity), keep)
    else:
        array = _kept_values(leaf_array(entries.block, kind, validity), shown, keep)
    if len(layers.items) == 1:
        return LeafRun(array, ())
    rep = None if rep is None else rep[keep]
    def_ = None if def_ is None else def_[keep]
    return LeafRun(array, unravel(rep, def_, layers, len(array), widths))


def _kept_values(array: pa.Array, shown: Mask, keep: slice | Mask | Integers) -> pa.Array:
    """Return the values of the wanted entries; ``shown`` tells which entries have a value."""
    if not isinstance(keep, slice):
        return keep_entries(array, keep[shown])
    first = int(np.count_nonzero(shown[: keep.start]))
    return array.slice(first, int(np.count_nonzero(shown[keep])))


def _scanned_run(block: Block, scan: ListScan, layers: Layers, kind: Kind) -> LeafRun:
    validity = None if scan.item_levels is None else scan.item_levels == 0
    array = leaf_array(block, kind, validity)
    if scan.before or scan.items != len(array):
        array = array.slice(scan.before, scan.items)
    return LeafRun(array, list_nodes(scan, layers))


def join_runs(runs: Sequence[LeafRun]) -> LeafRun:
    """Put the runs of consecutive pages behind one another."""
    if len(runs) == 1:
        return runs[0]
    array = pa.concat_arrays([run.array for run in runs])
    return LeafRun(array, join_nodes([run.nodes for run in runs]))


def assemble(field: Field, leaves: Mapping[int, LeafRun]) -> pa.Array:
    """Build the array of a field from its leaf columns, keyed by field id.

    Raises:
        CorruptError: the leaves contradict each other.
    """
    return _Tree(leaves).build(field, 0)


class _Tree:
    def __init__(self, leaves: Mapping[int, LeafRun]) -> None:
        self.leaves = leaves

    def build(self, field: Field, depth: int) -> pa.Array:
        run = self.leaves.get(field.id)
        if run is not None:
            if len(run.nodes) != depth:
                raise CorruptError(
                    f"a column under {depth} nodes of field {field.name!r} has {len(run.nodes)}"
                )
            return run.array
        if field.logical_type == "struct":
            return self._struct(field, depth)
        if field.logical_type == "map":
            return self._map(field, depth)
        if field.logical_type.startswith("fixed_size_list:"):
            return self._fixed_size_list(field, depth)
        return self._list(field, depth)

    def _node(self, field: Field, depth: int) -> Node:
        for below in field.walk():
            run = self.leaves.get(below.id)
            if run is not None:
                if len(run.nodes) <= depth:
                    raise CorruptError(f"a column of field {field.name!r} has too few layers")
                return run.nodes[len(run.nodes) - 1 - depth]
        raise CorruptError(f"no column holds any part of field {field.name!r}")

    def _struct(self, field: Field, depth: int) -> pa.Array:
        node = self._node(field, depth)
        children = [self.build(child, depth + 1) for child in field.children]
        if any(len(child) != node.length for child in children):
            raise CorruptError(f"the columns of struct {field.name!r} differ in length")
        return pa.Array.from_buffers(
            arrow_type(field), node.length, [_bitmap(node.validity)], children=children
        )

    def _list(self, field: Field, depth: int) -> pa.Array:
        node = self._node(field, depth)
        child = self.build(field.children[0], depth + 1)
        is_large = field.logical_type.startswith("large_list")
        return _list_array(arrow_type(field), node, child, is_large=is_large)

    def _map(self, field: Field, depth: int) -> pa.Array:
        node = self._node(field, depth)
        if len(field.children[0].children) != 2:
            raise InputError(f"a part of map {field.name!r} cannot be read; ask for the whole map")
        entries = self.build(field.children[0], depth + 1)
        return _list_array(arrow_type(field), node, entries, is_large=False)

    def _fixed_size_list(self, field: Field, depth: int) -> pa.Array:
        node = self._node(field, depth)
        child = self.build(field.children[0], depth + 1)
        type_ = arrow_type(field)
        if len(child) != node.length * type_.list_size:
            raise CorruptError(f"the lists of field {field.name!r} are not filled")
        return pa.Array.from_buffers(type_, node.length, [_bitmap(node.validity)], children=[child])


def _list_array(type_: pa.DataType, node: Node, child: pa.Array, *, is_large: bool) -> pa.Array:
    if node.offsets is None:
        raise CorruptError("a column says that a list is none")
    if int(node.offsets[-1]) != len(child):
        raise CorruptError(f"lists of {int(node.offsets[-1])} items hold {len(child)}")
    if not is_large and len(child) > LARGEST_OFFSET:
        raise UnsupportedError("more than 2^31 list items in one batch; read fewer rows at once")
    offsets = node.offsets.astype(np.int64 if is_large else np.int32, copy=False)
    return pa.Array.from_buffers(
        type_, node.length, [_bitmap(node.validity), pa.py_buffer(offsets)], children=[child]
    )


def _bitmap(validity: Mask | None) -> pa.Buffer | None:
    if validity is None:
        return None
    return pa.py_buffer(np.packbits(validity, bitorder="little"))
