"""The compiled readers of a page's tables agree with the NumPy ones, on damaged tables too."""

import random

import numpy as np
import pytest

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import PageBuffer
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.layouts import chunks, miniblock
from lancetable.format.encoding.layouts.chunks import ChunkShape
from lancetable.format.encoding.layouts.miniblock import MiniBlock
from lancetable.format.encoding.repdef import Layer, layers_of

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="there are no compiled kernels")


def layout(items: int, *, is_large: bool) -> MiniBlock:
    shape = ChunkShape(None, None, 1, is_large)
    layers = layers_of([Layer.ALL_VALID_ITEM])
    return MiniBlock(shape, Flat(64), None, 0, layers, False, items)


def outcome(work: object) -> object:
    try:
        found = work()  # type: ignore[operator]
    except CorruptError:
        return "corrupt"
    return [part.tolist() if isinstance(part, np.ndarray) else part for part in found]


@pytest.mark.parametrize("seed", range(200))
def test_chunk_words(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    is_large = chance.random() < 0.5
    count = chance.randrange(1, 40)
    power = chance.randrange(1, 16)
    powers = [power if chance.random() < 0.9 else chance.randrange(16) for _ in range(count)]
    sizes = [chance.randrange(1, 1 << 12) for _ in range(count)]
    words = np.array([size - 1 for size in sizes], "<u4") << 4 | np.array(powers, "<u4")
    items = sum(1 << power for power in powers[:-1]) + chance.randrange(0, (1 << powers[-1]) + 2)
    bytes_ = sum(sizes) * 8 + chance.choice([0, 0, 0, 8])
    data = words.astype("<u4" if is_large else "<u2").view(np.uint8)
    page = layout(items, is_large=is_large)
    quick = outcome(lambda: page._chunk_table(data, PageBuffer(0, bytes_)))
    monkeypatch.setattr(miniblock, "chunk_table", lambda *_: None)
    assert quick == outcome(lambda: page._chunk_table(data, PageBuffer(0, bytes_)))


@pytest.mark.parametrize("seed", range(100))
def test_repetition_index(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    count = chance.randrange(1, 30)
    pairs = np.array(
        [[chance.randrange(0, 9), chance.choice([0, 0, 3])] for _ in range(count)], "<u8"
    )
    if chance.random() < 0.2:
        pairs[chance.randrange(count), chance.randrange(2)] = 1 << 60
    opens = pairs[:, 1] > 0
    starting = pairs[:, 0].astype(np.int64) + opens - np.append(False, opens[:-1])
    rows = int(starting.sum()) + chance.choice([0, 0, 0, 1])
    data = pairs.reshape(-1).view(np.uint8)
    quick = outcome(lambda: [chunks.parse_row_index(data, count, rows).firsts])
    monkeypatch.setattr(chunks, "row_firsts", lambda *_: None)
    assert quick == outcome(lambda: [chunks.parse_row_index(data, count, rows).firsts])
