"""Join the rows of a merge with those of the table; neither side has to fit in the driver.

::

    source rows ──► bucket by key ──┐
                                    ├── shuffle ──► one task per bucket: match, decide, write
    table: key, row address ──► bucket by key ──┘

Of the table only keys and row addresses travel. In a task the core matches keys, decides which
clause acts, and writes changed and inserted rows; what comes back is small: names of new files,
which rows changed, and eight bytes for each inserted key. The driver commits it as one version.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from lancetable.format.encoding.kernels.xxhash import Hashes, hash_words
from lancetable.format.manifest import Fragment
from lancetable.fragment.projection import ROW_ADDRESS
from lancetable.fragment.readers import Readers
from lancetable.fragment.write.writer import remove_fragments
from lancetable.operations.keys.join import Pairs, SourceKeys
from lancetable.operations.keys.keys import InsertedKeys, codes_of, comparable
from lancetable.operations.keys.spill import RowBuffer
from lancetable.operations.merge.clauses import When
from lancetable.operations.merge.decide import Matched, condition_sides, decide_pairs, numbered
from lancetable.operations.merge.match_rows import MergePlan, MergeWork, PartDone
from lancetable.operations.merge.source import SourcePlan
from lancetable.operations.rows.find_rows import by_fragment
from lancetable.operations.rows.move_rows import target_of
from lancetable.operations.rows.parts import parts
from lancetable.operations.run.runner import Threads
from lancetable.scan import execute
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.spark.casts import Casts
from lancetable.spark.errors import explain_missing_modules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lancetable.commit.snapshot import Snapshot


ADDRESS, KEY = "_lancetable_address", "_lancetable_key"


def key_fields(snapshot: "Snapshot", on: Sequence[str]) -> list[StructField]:
    """Return the columns in which row addresses and keys of a table travel."""
    shown = plan(snapshot.manifest.schema, ScanRequest(tuple(on))).schema
    forms = [comparable(pa.nulls(0, field.type), field.name) for field in shown]
    kinds = [BinaryType() if pa.types.is_large_binary(one.type) else LongType() for one in forms]
    keys = [StructField(f"{KEY}{at}", kind) for at, kind in enumerate(kinds)]
    return [StructField(ADDRESS, LongType()), *keys]


def scan_keys(part: "Snapshot", on: Sequence[str]) -> Iterator[tuple[pa.Array, list[pa.Array]]]:
    """Yield row addresses as Spark has them, and keys in comparable form."""
    planned = plan(part.manifest.schema, ScanRequest((*on, ROW_ADDRESS)))
    for piece in execute.run(planned, Readers(part), ScanOptions(threads=1)):
        if not piece.rows:
            continue
        *columns, addresses = [
            chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) for chunks in piece.columns
        ]
        keys = [comparable(one, name) for one, name in zip(columns, on, strict=True)]
        yield addresses.view(pa.int64()), keys


def carried(key: pa.Array) -> pa.Array:
    """Return a comparable key in a type that Spark has."""
    if pa.types.is_large_binary(key.type):
        return key.cast(pa.binary())
    return key.view(pa.int64())


def uncarried(column: pa.ChunkedArray, like: pa.DataType) -> pa.Array:
    """Return comparable keys that travelled."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, column.type)
    return array.cast(like) if pa.types.is_large_binary(like) else array.view(like)


BUCKET = "_lancetable_bucket"
_ROWS_PER_BUCKET = 512 * 1024
_RESULT = "result binary"
_dumps: Any = cloudpickle.dumps


@dataclass(frozen=True, slots=True)
class Incoming:
    """The casts from batches of Spark to the types of the table."""

    carried: pa.Schema
    """The schema of Spark, up to names inside of lists and the time zone of the session."""
    casts: Casts

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the types of the table."""
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, self.carried, strict=True)
        ]
        return self.casts.apply(pa.RecordBatch.from_arrays(arrays, self.carried.names))

    def of(self, places: Sequence[int]) -> "Incoming":
        """Return the same for some of the columns only."""
        casts = Casts(
            pa.schema([self.casts.schema.field(at) for at in places]),
            tuple(self.casts.steps[at] for at in places),
        )
        return Incoming(pa.schema([self.carried.field(at) for at in places]), casts)


@dataclass(frozen=True, slots=True)
class SparkSpread:
    """The rows of a data frame, joined with the table by Spark."""

    frame: "DataFrame"
    incoming: Incoming
    keys: SourceKeys

    def run(self, plan: MergePlan, source: SourcePlan, fragments: list[Fragment]) -> MergeWork:
        """Carry out the merge on workers, and return what became of all rows.

        Raises:
            InputError: rows of the source share a key, or a value does not fit its column.
        """
        spark = self.frame.sparkSession
        buckets = _buckets(spark, plan.snapshot)
        left = self._source(source, buckets).groupBy(BUCKET)
        right = _table(spark, plan, buckets).groupBy(BUCKET)
        task = _Bucket(replace(plan, runner=Threads(1)), source, self.incoming)

        # Spark counts the parameters of what it is given, and takes those of a method wrongly.
        def run(source_rows: pa.Table, table_rows: pa.Table) -> pa.Table:
            return task.run(source_rows, table_rows)

        with explain_missing_modules():
            rows = left.cogroup(right).applyInArrow(run, _RESULT).collect()
        results = [pickle.loads(row["result"]) for row in rows]  # noqa: S301 - our own workers'
        done = [one for one in results if isinstance(one, PartDone)]
        failed = [one for one in results if not isinstance(one, PartDone)]
        if failed:
            fragments += [fragment for one in done for fragment in one.fragments]
            raise failed[0]
        work = MergeWork(plan, InsertedKeys(sum(one.inserted for one in done)), fragments)
        for one in done:
            work.absorb(one)
        work.take_rest()
        return work

    def _source(self, source: SourcePlan, buckets: int) -> "DataFrame":
        schema = StructType([*self.frame.schema.fields, StructField(BUCKET, LongType())])
        add = _AddBucket(self.incoming, source, self.keys, buckets)
        return self.frame.mapInArrow(add, schema)


def _buckets(spark: "SparkSession", snapshot: "Snapshot") -> int:
    """Return into how many groups keys are divided; each must fit into a worker."""
    rows = sum(one.physical_rows or 0 for one in snapshot.manifest.fragments)
    return max(int(spark.conf.get("spark.sql.shuffle.partitions")), 1 + rows // _ROWS_PER_BUCKET)


def _bucket_of(keys: list[pa.Array], buckets: int) -> pa.Array:
    """Return a bucket for each key; a key with a null in it equals no other, so any will do."""
    codes = codes_of(keys)
    hashes: Hashes = hash_words(codes.values)
    if codes.is_valid is not None:
        spread = np.arange(len(hashes), dtype=np.uint64)
        hashes = np.where(codes.is_valid, hashes, hash_words(spread))
    return pa.array(((hashes >> np.uint64(17)) % np.uint64(buckets)).astype(np.int64))


@dataclass(frozen=True, slots=True)
class _AddBucket:
    """Adds the bucket of its key to each row of the source."""

    incoming: Incoming
    source: SourcePlan
    keys: SourceKeys
    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kept = self.source.apply(self.incoming.apply(batch))
            yield batch.append_column(BUCKET, _bucket_of(self.keys.of(kept), self.buckets))


def _table(spark: "SparkSession", plan: MergePlan, buckets: int) -> "DataFrame":
    """Return bucket, row address and comparable key of every row of the table."""
    payloads = [_dumps(part) for part in parts(plan.snapshot)]
    scan = _ScanKeys(payloads, plan.on, buckets)
    rows = spark.range(0, len(payloads), 1, max(len(payloads), 1))
    schema = StructType([StructField(BUCKET, LongType()), *key_fields(plan.snapshot, plan.on)])
    return rows.mapInArrow(scan, schema)


@dataclass(frozen=True, slots=True)
class _ScanKeys:
    """Reads the keys of parts of the table."""

    payloads: list[bytes]
    on: tuple[str, ...]
    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                part = pickle.loads(self.payloads[place])  # noqa: S301 - the driver's
                yield from self._scan(part)

    def _scan(self, part: "Snapshot") -> Iterator[pa.RecordBatch]:
        for addresses, keys in scan_keys(part, self.on):
            arrays = [_bucket_of(keys, self.buckets), addresses, *map(carried, keys)]
            names = [BUCKET, ADDRESS, *(f"{KEY}{at}" for at in range(len(keys)))]
            yield pa.RecordBatch.from_arrays(arrays, names)


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Carries out what one bucket of the source asks for."""

    plan: MergePlan
    source: SourcePlan
    incoming: Incoming

    def run(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Return what became of the rows, or the error, as one row."""
        result: PartDone | Exception
        work = MergeWork(self.plan, InsertedKeys(None), [])
        try:
            self._take(work, left, right)
            result = work.done()
        except Exception as error:
            remove_fragments(work.fragments, target_of(self.plan.snapshot))
            result = error
        return pa.table({"result": pa.array([_dumps(result)], pa.binary())})

    def _take(self, work: MergeWork, left: pa.Table, right: pa.Table) -> None:
        rows = left.drop_columns([BUCKET])
        kept = RowBuffer(
            self.source.kept,
            [self.source.apply(self.incoming.apply(batch)) for batch in rows.to_batches()],
        )
        work.take_part(kept, is_last=False, matches=[self._matched(kept, right)])

    def _matched(self, kept: RowBuffer, right: pa.Table) -> Matched:
        plan = self.plan
        index = plan.keys.index(kept)
        none = kept.take(np.empty(0, np.int64), plan.keys.columns)
        forms = [one.type for one in plan.keys.of(none)]
        keys = [uncarried(right.column(f"{KEY}{at}"), form) for at, form in enumerate(forms)]
        places, rows = index.find_equal(keys)
        addresses = right.column(ADDRESS).to_numpy().view(np.uint64)[places]
        order = np.argsort(addresses, kind="stable")
        read = condition_sides(numbered(plan.clauses, When.MATCHED)).source
        narrow = kept.select(read) if read else RowBuffer(kept.schema, [])
        found = _by_position(plan.snapshot, addresses[order], rows[order])
        return decide_pairs(Readers(plan.snapshot), found, plan.clauses, narrow)


def _by_position(
    snapshot: "Snapshot",
    addresses: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int64],
) -> Iterator[tuple[int, Pairs]]:
    """Yield pairs by the positions of their fragments; addresses ascend."""
    positions = {one.id: at for at, one in enumerate(snapshot.manifest.fragments)}
    start = 0
    for id_, offsets in by_fragment(addresses).items():
        yield positions[id_], Pairs(offsets, rows[start : start + len(offsets)])
        start += len(offsets)
