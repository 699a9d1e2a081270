"""Which tables do the cases run on, and how are they made?

Everything comes from one seed and is written by pylance, once, into `benchmarks/.data` or the
folder named by the variable LANCETABLE_BENCH_DATA. Sizes are part of the folder names.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import write_fragments

from benchmarks import searched
from benchmarks.peers import load_peer
from benchmarks.rows import SEED, columns, texts

_REVISION = 2
_BATCH = 1 << 20
COLUMN_ROWS = 10_000
"""Rows of the tables with many columns."""
_DIMENSION = 768
_SMALL, _TINY = 10_000, 1_000
_WIDTH = 200
TAGS, LABELS, WORDS = 1_000, 1_000, 10_000
"""How many different values the columns of the table with indices have."""
KEY_STRIDE = 7_368_787
"""A prime: its multiples visit every position of a table once."""
_INDICES = {
    "key": "BTREE",
    "s": "BTREE",
    "tag": "BITMAP",
    "labels": "LABEL_LIST",
    "day": "ZONEMAP",
    "id": "BLOOMFILTER",
    "words": "NGRAM",
}


class TableKind(NamedTuple):
    """How one table is made, and how large."""

    build: Callable[[Path, int], None]
    size: int
    quick: int


def _write(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)

    def stream() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    lance.write_dataset(pa.RecordBatchReader.from_batches(first.schema, stream()), str(path))


def _spans(rows: int, step: int = _BATCH) -> Iterator[tuple[int, int]]:
    for first in range(0, rows, step):
        yield first, min(step, rows - first)


def _build_rows(path: Path, rows: int) -> None:
    rng = np.random.default_rng(SEED)
    _write(path, (pa.record_batch(columns(rng, *span)) for span in _spans(rows)))


def _build_nullable(path: Path, rows: int) -> None:
    rng = np.random.default_rng(SEED)

    def with_nulls(column: pa.Array) -> pa.Array:
        gaps = pa.array(rng.random(len(column)) < 0.1)
        return pc.if_else(gaps, pa.scalar(None, column.type), column)

    def batch(first: int, count: int) -> pa.RecordBatch:
        made = columns(rng, first, count)
        return pa.record_batch({name: with_nulls(array) for name, array in made.items()})

    _write(path, (batch(*span) for span in _spans(rows)))


def _build_stable(path: Path, rows: int) -> None:
    rng = np.random.default_rng(SEED)
    for first, count in _spans(rows, 250_000):
        data = pa.table(columns(rng, first, count))
        mode = "append" if first else "create"
        lance.write_dataset(
            data, str(path), mode=mode, enable_stable_row_ids=True, data_storage_version="2.1"
        )


def _build_vectors(path: Path, rows: int) -> None:
    rng = np.random.default_rng(SEED)

    def batch(count: int) -> pa.RecordBatch:
        values = pa.array(rng.random(count * _DIMENSION, np.float32))
        return pa.record_batch({"vector": pa.FixedSizeListArray.from_arrays(values, _DIMENSION)})

    _write(path, (batch(count) for _, count in _spans(rows, 20_000)))


def _lists(rng: np.random.Generator, rows: int, values: Callable[[int], pa.Array]) -> pa.Array:
    """Return lists of up to seven values; one in ten is null."""
    lengths = rng.integers(0, 8, rows)
    is_null = rng.random(rows) < 0.1
    lengths[is_null] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), values(int(offsets[-1])), mask=pa.array(is_null)
    )


def _build_nested(path: Path, rows: int) -> None:
    rng = np.random.default_rng(SEED)

    def numbers(count: int) -> pa.Array:
        return pa.array(rng.integers(0, 1 << 20, count, np.int32))

    def batch(count: int) -> pa.RecordBatch:
        x = pa.array(rng.integers(0, 1 << 40, count), mask=rng.random(count) < 0.1)
        point = pa.StructArray.from_arrays(
            [x, pa.array(rng.random(count)), texts(rng, count)],
            ["x", "y", "label"],
            mask=pa.array(rng.random(count) < 0.1),
        )
        words = _lists(rng, count, lambda total: texts(rng, total))
        return pa.record_batch(
            {"numbers": _lists(rng, count, numbers), "words": words, "point": point}
        )

    _write(path, (batch(count) for _, count in _spans(rows)))


def _one_row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "val": [number / 2]})


def _build_versions(path: Path, versions: int) -> None:
    dataset = lance.write_dataset(_one_row(0), str(path))
    for number in range(1, versions):
        dataset = lance.write_dataset(_one_row(number), dataset, mode="append")


def _build_overwrites(path: Path, versions: int) -> None:
    for number in range(versions):
        lance.write_dataset(_one_row(number), str(path), mode="overwrite" if number else "create")


def _build_fragments(path: Path, fragments: int) -> None:
    dataset = lance.write_dataset(_one_row(0).slice(0, 0), str(path))
    pieces = [
        piece for number in range(fragments) for piece in write_fragments(_one_row(number), dataset)
    ]
    operation = lance.LanceOperation.Append(pieces)
    lance.LanceDataset.commit(str(path), operation, read_version=dataset.version)


def _build_fragments_of(rows: int, path: Path, fragments: int) -> None:
    rng = np.random.default_rng(SEED)
    for number in range(fragments):
        data = pa.table(columns(rng, number * rows, rows))
        lance.write_dataset(data, str(path), mode="append" if number else "create")


def _build_wide(path: Path, rows: int) -> None:
    """Write rows of about 850 bytes, 100 000 in each fragment."""
    rng = np.random.default_rng(SEED)
    for first, count in _spans(rows, 100_000):
        made = columns(rng, first, count)
        values = pa.array(rng.random(count * _WIDTH, np.float32))
        made["vector"] = pa.FixedSizeListArray.from_arrays(values, _WIDTH)
        lance.write_dataset(pa.table(made), str(path), mode="append" if first else "create")


def _build_indexed(path: Path, rows: int) -> None:
    rng = np.random.default_rng(SEED)

    def batch(first: int, count: int) -> pa.RecordBatch:
        ids = np.arange(first, first + count, dtype=np.int64)
        keys = ids * KEY_STRIDE % rows
        users = keys * KEY_STRIDE % 100_000_000
        labels = rng.integers(0, LABELS, (count, 3)).astype(str)
        words = rng.integers(0, WORDS, (count, 4))
        return pa.record_batch(
            {
                "id": ids,
                "key": keys,
                "s": [f"user{user:08d}" for user in users.tolist()],
                "tag": rng.integers(0, TAGS, count),
                "labels": [[f"label {one}" for one in row] for row in labels.tolist()],
                "day": ids,
                "words": [" ".join(f"word{one:05d}" for one in row) for row in words.tolist()],
                "val": rng.random(count),
            }
        )

    _write(path, (batch(*span) for span in _spans(rows, 100_000)))
    dataset = lance.dataset(str(path))
    for column, kind in _INDICES.items():
        dataset.create_scalar_index(column, kind)


def _build_values(path: Path, rows: int) -> None:
    """Write columns for every kind of index; none of them is in order."""
    rng = np.random.default_rng(SEED)
    vocabulary = [
        "".join(map(chr, rng.integers(97, 123, rng.integers(3, 10)))) for _ in range(5_000)
    ]
    labels = pa.array([f"label {number}" for number in range(50)])

    def batch(first: int, count: int) -> pa.RecordBatch:
        keys = np.arange(first, first + count, dtype=np.int64) * KEY_STRIDE % rows
        at = pa.array(rng.integers(16 * 10**14, 17 * 10**14, count)).cast(pa.timestamp("us"))
        offsets = pa.array(np.arange(0, 3 * count + 1, 3, dtype=np.int32))
        chosen = labels.take(pa.array(rng.integers(0, 50, 3 * count)))
        ranks = np.minimum(rng.zipf(1.3, (count, 12)), len(vocabulary)) - 1
        points = np.zeros((count, 21), np.uint8)
        points[:, :5] = (1, 1, 0, 0, 0)
        points[:, 5:] = rng.uniform(-180, 180, (count, 2)).view(np.uint8)
        documents = [f'{{"a":{key},"b":"v{key % 7}"}}' for key in keys.tolist()]
        return pa.record_batch(
            {
                "key": keys,
                "price": rng.standard_normal(count),
                "at": at,
                "user": [f"user-{key:08d}" for key in keys.tolist()],
                "tag": [f"tag {tag:03d}" for tag in rng.integers(0, 200, count).tolist()],
                "labels": pa.ListArray.from_arrays(offsets, chosen),
                "words": [" ".join(vocabulary[one] for one in row) for row in ranks.tolist()],
                "place": [point.tobytes() for point in points],
                "document": pa.array(documents, pa.json_()),
            }
        )

    _write(path, (batch(*span) for span in _spans(rows, 100_000)))


def _build_keys(path: Path, rows: int) -> None:
    rng = np.random.default_rng(SEED)
    numbers = (rng.integers(0, 1 << 62, count) for _, count in _spans(rows))
    _write(path, (pa.record_batch({"key": some}) for some in numbers))


def _build_texts(path: Path, rows: int) -> None:
    def batch(first: int, count: int) -> pa.RecordBatch:
        ids = np.arange(first, first + count)
        return pa.record_batch({"id": ids, "tag": searched.tags(ids), "text": searched.texts(ids)})

    _write(path, (batch(*span) for span in _spans(rows, 100_000)))
    dataset = lance.dataset(str(path))
    dataset.create_scalar_index("text", "INVERTED", with_position=True)
    dataset.create_scalar_index("tag", "BITMAP")


def _build_clustered(path: Path, rows: int, names: Sequence[str] = ("vector",)) -> None:
    """Write the same vectors into each column."""
    ids = np.arange(rows)
    values = pa.array(searched.vectors(ids).reshape(-1))
    vectors = pa.FixedSizeListArray.from_arrays(values, searched.DIMENSION)
    table = {"id": ids, "tag": searched.tags(ids), **dict.fromkeys(names, vectors)}
    lance.write_dataset(pa.table(table), str(path))


def _build_near(path: Path, rows: int) -> None:
    """Write a column with an index for each kind of vector index."""
    kinds = tuple(searched.PARTITION_ROWS)
    _build_clustered(path, rows, kinds)
    for kind in kinds:
        load_peer("pylance").open(str(path)).index(kind, kind)
    lance.dataset(str(path)).create_scalar_index("tag", "BITMAP")


def _build_columns(path: Path, width: int) -> None:
    rng = np.random.default_rng(SEED)
    values = {f"c{number}": pa.array(rng.random(COLUMN_ROWS)) for number in range(width)}
    _write(path, iter([pa.record_batch(values)]))


TABLES = {
    "columns": TableKind(_build_columns, 100, 10),
    "single": TableKind(_build_versions, 1, 1),
    "versions": TableKind(_build_versions, 5_000, 500),
    "overwrites": TableKind(_build_overwrites, 3_333, 333),
    "rows": TableKind(_build_rows, 10_000_000, 1_000_000),
    "vectors": TableKind(_build_vectors, 200_000, 20_000),
    "fragments": TableKind(_build_fragments, 1_000, 1_000),
    "nullable": TableKind(_build_nullable, 1_000_000, 100_000),
    "nested": TableKind(_build_nested, 1_000_000, 100_000),
    "stable": TableKind(_build_stable, 1_000_000, 100_000),
    "small": TableKind(partial(_build_fragments_of, _SMALL), 100, 100),
    "tiny": TableKind(partial(_build_fragments_of, _TINY), 1_000, 200),
    "values": TableKind(_build_values, 1_000_000, 50_000),
    "keys": TableKind(_build_keys, 50_000_000, 2_000_000),
    "indexed": TableKind(_build_indexed, 1_000_000, 100_000),
    "texts": TableKind(_build_texts, 1_000_000, 100_000),
    "clustered": TableKind(_build_clustered, 100_000, 20_000),
    "near": TableKind(_build_near, 100_000, 20_000),
    "wide": TableKind(_build_wide, 2_500_000, 500_000),
}


def data_folder() -> Path:
    """Return the folder of all tables; the writer's version is part of it."""
    chosen = os.environ.get("LANCETABLE_BENCH_DATA")
    root = Path(chosen) if chosen else Path(__file__).parent / ".data"
    return root / f"r{_REVISION}-pylance-{version('pylance')}"


def table_size(name: str, *, quick: bool) -> int:
    """Return the number of rows, versions or fragments of a table."""
    kind = TABLES[name]
    return kind.quick if quick else kind.size


def table_path(name: str, *, quick: bool, size: int | None = None) -> Path:
    """Return where a table is, or will be once it is built; of its usual size if none is given."""
    return data_folder() / f"{name}-{size or table_size(name, quick=quick)}"


def ensure_table(name: str, *, quick: bool, size: int | None = None) -> Path:
    """Return the path of a table, building it if this is its first use."""
    path = table_path(name, quick=quick, size=size)
    if not path.exists():
        unfinished = path.with_name(path.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        TABLES[name].build(unfinished, size or table_size(name, quick=quick))
        unfinished.rename(path)
    return path


def rows_of(name: str, size: int) -> int:
    """Return how many rows a table of some size has."""
    return COLUMN_ROWS if name == "columns" else size
