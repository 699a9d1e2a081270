"""Which rows are measured with?

Free of any peer, so that a process that measures the memory of one never loads another.
"""

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

SEED = 20_260_801
_START_OF_TIME = 1_700_000_000_000_000


def texts(rng: np.random.Generator, rows: int) -> pa.Array:
    """Return strings of twelve characters, `user` and eight random digits."""
    letters = np.empty((rows, 12), np.uint8)
    letters[:, :4] = np.frombuffer(b"user", np.uint8)
    letters[:, 4:] = rng.integers(48, 58, (rows, 8), np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(12)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))


def columns(rng: np.random.Generator, first: int, rows: int) -> dict[str, pa.Array]:
    """Return rows of the mixed table, their ids counted from ``first``."""
    ids = np.arange(first, first + rows, dtype=np.int64)
    times = _START_OF_TIME + ids * 1_000_000 + rng.integers(0, 1_000_000, rows)
    return {
        "id": pa.array(ids),
        # Both signs, so that the bit patterns use all 64 bits and the column is stored flat.
        "val": pa.array(rng.random(rows) * 2 - 1),
        "s": texts(rng, rows),
        "flag": pa.array(rng.random(rows) < 0.5),
        "ts": pa.array(times).view(pa.timestamp("us")),
    }


def batches(rows: int, step: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Yield rows of the mixed table one batch at a time."""
    rng = np.random.default_rng(SEED)
    for first in range(0, rows, step):
        yield pa.record_batch(columns(rng, first, min(step, rows - first)))


def upserted(rows: int, known: int, step: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Yield rows of which every second one has an id below ``known``; no id comes twice.

    Raises:
        ValueError: there are not enough ids for so many rows.
    """
    rng = np.random.default_rng(SEED + 1)
    # A number without a divisor in common with the count visits every id once.
    stride = 7_368_787
    if rows > known or math.gcd(stride, known) != 1:
        raise ValueError(f"{rows} rows cannot have different ids below {known}")
    for first in range(0, rows, step):
        count = min(step, rows - first)
        made = columns(rng, first, count)
        numbers = np.arange(first, first + count, dtype=np.int64)
        ids = numbers * stride % known
        made["id"] = pa.array(np.where(numbers % 2, ids, ids + 1_000_000_000))
        yield pa.record_batch(made)
