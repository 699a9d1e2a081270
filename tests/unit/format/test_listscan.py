"""The walk over the levels of lists against a slow, obvious one."""

import numpy as np
import pytest

from lancetable.format.encoding import listscan
from lancetable.format.encoding.base import Levels
from lancetable.format.encoding.repdef import Layer, layers_of

LAYERS = layers_of([Layer.NULLABLE_ITEM, Layer.NULL_AND_EMPTY_LIST])
NULL_ITEM, NULL_LIST, EMPTY_LIST = 1, 2, 3

needs_kernels = pytest.mark.skipif(
    not listscan.can_scan(LAYERS), reason="the compiled kernels are not there"
)


def chunk_of(chance: np.random.Generator, levels: list[int]) -> list[tuple[int, int]]:
    """Return entries of a chunk, which starts with a row: whether one starts a row, its level."""
    found: list[tuple[int, int]] = []
    for _ in range(200):
        level = int(chance.choice(levels))
        is_start = not found or level > NULL_ITEM or found[-1][1] > NULL_ITEM
        found.append((int(is_start or chance.random() < 0.3), level))
    return found


def scanned(chunks: list[list[tuple[int, int]]]) -> listscan.ListScan | None:
    rep = np.array([rep for chunk in chunks for rep, _ in chunk], np.uint16)
    def_ = np.array([level for chunk in chunks for _, level in chunk], np.uint16)
    starts = [sum(rep for rep, _ in chunk) for chunk in chunks]
    firsts = np.concatenate([[0], np.cumsum(starts)])
    levels = np.array([len(chunk) for chunk in chunks])
    counts = np.array([sum(level <= NULL_ITEM for _, level in chunk) for chunk in chunks])
    picked = listscan.ListChunks(levels, counts, firsts)
    return listscan.scan_lists(range(int(firsts[-1])), rep, def_, picked, LAYERS)


MIXES = [
    ([0], [0]),
    ([0, NULL_LIST, EMPTY_LIST], [0, EMPTY_LIST]),
    ([0, NULL_LIST], [0, NULL_ITEM, EMPTY_LIST]),
    ([0, NULL_ITEM], [0, NULL_LIST]),
    ([NULL_LIST], [0, NULL_ITEM]),
    ([NULL_ITEM], [EMPTY_LIST]),
]


@needs_kernels
@pytest.mark.parametrize("mix", MIXES)
def test_chunks_with_and_without_null_values_stand_beside_each_other(
    mix: tuple[list[int], list[int]],
) -> None:
    chance = np.random.default_rng(7)
    chunks = [chunk_of(chance, levels) for levels in (*mix, *mix)]
    scan = scanned(chunks)
    assert scan is not None
    edges, row_levels, item_levels = [0], [], []
    for rep, level in (entry for chunk in chunks for entry in chunk):
        if rep:
            edges.append(edges[-1])
            row_levels.append(level if level > NULL_ITEM else 0)
        if level <= NULL_ITEM:
            item_levels.append(level)
            edges[-1] += 1
    assert scan.offsets.tolist() == edges
    assert (scan.before, scan.items) == (0, len(item_levels))
    assert _levels(scan.row_levels, len(row_levels)) == row_levels
    assert _levels(scan.item_levels, len(item_levels)) == item_levels


def _levels(found: Levels | None, count: int) -> list[int]:
    return [0] * count if found is None else found.tolist()


@needs_kernels
@pytest.mark.parametrize(
    "entry", [(0, NULL_LIST), (0, EMPTY_LIST), (2, 0), (1, 4)], ids=["null", "empty", "rep", "def"]
)
@pytest.mark.parametrize("levels", [[0], [0, NULL_ITEM]])
def test_levels_that_cannot_be_are_left_to_the_general_way(
    entry: tuple[int, int], levels: list[int]
) -> None:
    chunk = chunk_of(np.random.default_rng(7), levels)
    assert scanned([chunk, chunk]) is not None
    chunk[100] = entry
    assert scanned([chunk, chunk]) is None
