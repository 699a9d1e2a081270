"""Find the sequences of three letters or digits in texts.

The token of a sequence is the number that its characters make to base 37: ``0`` counts 1 and ``a``,
which large letters equal, counts 11.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

BASE = 37
_TOKEN_BITS = 16
CODES = np.zeros(256, np.uint8)
CODES[[*range(ord("0"), ord("9") + 1), *range(ord("A"), ord("Z") + 1)]] = np.arange(1, BASE)
CODES[ord("a") : ord("z") + 1] = CODES[ord("A") : ord("Z") + 1]


class Tokens(NamedTuple):
    """Tokens, and the numbers of the texts that hold them."""

    tokens: npt.NDArray[np.uint32]
    texts: npt.NDArray[np.uint32]


def trigrams(values: pa.LargeBinaryArray) -> Tokens:
    """Return each token of each ASCII text once, by the number of the text."""
    edges = np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: len(values) + 1]
    data = values.buffers()[2]
    if DLL is None:
        return _trigrams(np.frombuffer(data or b"", np.uint8)[edges[0] : edges[-1]], np.diff(edges))
    room = int(edges[-1] - edges[0])
    found = Tokens(np.empty(room, np.uint32), np.empty(room, np.uint32))
    seen = np.zeros((1 << _TOKEN_BITS) // 64, np.uint64)
    count = DLL.lt_trigrams(
        0 if data is None else data.address,
        address(edges),
        len(values),
        address(CODES),
        BASE,
        address(seen),
        *map(address, found),
    )
    return Tokens(found.tokens[:count], found.texts[:count])


def _trigrams(data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> Tokens:
    codes = CODES[data].astype(np.uint32)
    texts = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    before, last, code = codes[:-2], codes[1:-1], codes[2:]
    is_token = (before > 0) & (last > 0) & (code > 0) & (texts[:-2] == texts[2:])
    found = (before * np.uint32(BASE) + last) * np.uint32(BASE) + code
    keys = np.unique((texts[:-2][is_token] << np.uint64(_TOKEN_BITS)) | found[is_token])
    tokens = (keys & np.uint64((1 << _TOKEN_BITS) - 1)).astype(np.uint32)
    return Tokens(tokens, (keys >> np.uint64(_TOKEN_BITS)).astype(np.uint32))
