"""Rows in another order: the same through files as in memory."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from lancetable.errors import StoreError
from lancetable.operations.compact.order import MOST_PARTS, reordered

COUNT = 5_000


def batches(step: int = 700) -> Iterator[pa.RecordBatch]:
    for first in range(0, COUNT, step):
        numbers = range(first, min(first + step, COUNT))
        words = [f"w{number % 7}" for number in numbers]
        yield pa.record_batch(
            {
                "n": pa.array(numbers, pa.int64()),
                "s": pa.array(words).dictionary_encode(),
                "list": pa.array([[number] * (number % 4) for number in numbers]),
            }
        )


@pytest.mark.parametrize("each", [1, 333, COUNT - 1, COUNT, 10 * COUNT])
def test_rows_come_in_the_order_that_is_asked_for(each: int) -> None:
    order = np.random.default_rng(3).permutation(COUNT)
    made = list(reordered(batches(), order, lambda: each))
    numbers = np.concatenate([batch["n"].to_numpy() for batch in made])
    assert numbers.tolist() == order.tolist()
    words = [word for batch in made for word in batch["s"].to_pylist()]
    assert words == [f"w{number % 7}" for number in order]
    largest = max(batch.num_rows for batch in made)
    assert largest <= max(each, -(-COUNT // MOST_PARTS))


def test_no_rows_are_no_rows() -> None:
    assert list(reordered(iter(()), np.empty(0, np.int64), lambda: 1)) == []


def test_a_folder_that_is_not_there_is_named() -> None:
    order = np.arange(COUNT)[::-1]
    with pytest.raises(StoreError, match="nowhere"):
        list(reordered(batches(), order, lambda: 10, "/nowhere/at/all"))
