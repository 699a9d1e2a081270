"""Make batches of one size out of batches of any size."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lancetable.format.limits import NO_LIMIT, read_limits


def exact_batches(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of exactly ``rows`` rows; the last one may have fewer."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        first = 0
        while first < batch.num_rows:
            part = batch.slice(first, rows - held)
            first += part.num_rows
            held += part.num_rows
            waiting.append(part)
            if held == rows:
                yield _joined(waiting)
                waiting, held = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    limits = read_limits()
    if limits.max_batch_bytes != NO_LIMIT:
        rows = sum(batch.num_rows for batch in batches)
        limits.check_batch(sum(batch.nbytes for batch in batches), rows)
    if not batches[0].num_columns:
        rows = sum(batch.num_rows for batch in batches)
        empty = pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
        return empty.replace_schema_metadata(batches[0].schema.metadata)
    return pa.concat_batches(batches)
