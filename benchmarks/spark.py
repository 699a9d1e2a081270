"""Measure Lance tables inside Spark: pairs of jobs that alternate in one local session.

Run as ``python -m benchmarks.spark``; ``--docs`` writes the table to ``docs/spark.md``. Each line
shows our time divided by the other one, and the largest ratio allowed. The bound of a scan is a
Python source that returns one ready batch repeatedly: the time Spark needs to receive rows from
Python. With ``--jar`` the JVM connector in that archive reads the same table, too.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from rich.console import Console
from rich.table import Table

import lancetable
from benchmarks.machine import copy_speed
from lancetable.operations.columns.add import FunctionOptions, add_columns_by
from lancetable.operations.results import ChangeOptions
from lancetable.spark import LanceTable, SparkRunner, session

DIMENSIONS = 768
BATCH = 64 * 1024
NUMBERS = "id bigint, x double"
ROWS = "id bigint, k int, x double, s string"


class Pair(NamedTuple):
    """Two jobs that give the same; ``most`` is what our time may be over the other's."""

    name: str
    other: str
    most: float
    ours: Callable[[], object]
    theirs: Callable[[], object]


class Connector(NamedTuple):
    """The connector of the JVM: where its archive is, and the class of its source.

    The class is named in full, since its short name is that of our source.
    """

    jar: str
    source: str


class ReadySource(DataSource):
    """Gives one prebuilt batch as often as is needed for a number of rows."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def reader(self, schema: StructType) -> "ReadyReader":
        return ReadyReader(int(self.options["rows"]), schema.fieldNames())


class ReadyReader(DataSourceReader):
    def __init__(self, rows: int, names: list[str]) -> None:
        self.rows, self.names = rows, names

    def partitions(self) -> list[InputPartition]:
        each = 1024 * 1024
        return [InputPartition(min(each, self.rows - at)) for at in range(0, self.rows, each)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        left = partition.value
        ready = ready_batch().select(self.names)
        while left > 0:
            yield ready.slice(0, min(left, BATCH))
            left -= BATCH


def ready_batch() -> pa.RecordBatch:
    ids = np.arange(BATCH)
    return pa.record_batch(
        {
            "id": pa.array(ids),
            "k": pa.array((ids % 1000).astype(np.int32)),
            "x": pa.array(ids * 0.5),
            "s": pa.array([f"name-{number % 100_000}" for number in ids]),
        }
    )


def vectors(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        ids = batch.column("id")
        chance = np.random.default_rng(ids[0].as_py() if len(ids) else 0)
        values = chance.random(len(ids) * DIMENSIONS, np.float32)
        offsets = pa.array(np.arange(len(ids) + 1, dtype=np.int32) * DIMENSIONS)
        lists = pa.ListArray.from_arrays(offsets, pa.array(values))
        yield pa.RecordBatch.from_arrays([ids, lists], ["id", "v"])


def norms(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A step of a pipeline that looks at every value of every vector."""
    for batch in batches:
        matrix = batch.column("v").flatten().to_numpy().reshape(-1, DIMENSIONS)
        total = float(np.einsum("ij,ij->", matrix, matrix))
        yield pa.RecordBatch.from_pydict({"total": [total]})


def scan_with_pylance(uri: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance

        dataset = lance.dataset(uri)
        fragments = dataset.get_fragments()
        for batch in batches:
            for place in batch.column(0).to_pylist():
                for rows in fragments[place].to_batches():
                    yield summed(rows)

    return scan


def scan_with_ours(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in batches:
        yield summed(rows)


def summed(rows: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow.compute as pc

    lengths = pc.sum(pc.binary_length(rows.column("s"))).as_py() or 0
    total = float(pc.sum(rows.column("x")).as_py() or 0) + lengths
    return pa.RecordBatch.from_pydict({"total": [total]})


class Bench:
    """The tables, and the jobs on them."""

    def __init__(self, folder: Path, rows: int, wide: int, connector: Connector | None) -> None:
        self.folder, self.rows, self.wide, self.connector = folder, rows, wide, connector
        # Workers import what an installed package has compiled; a checkout may not have it.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        settings = {"spark.driver.maxResultSize": "2g"}
        if connector is not None:
            settings["spark.jars"] = connector.jar
        self.spark = session(master="local[2]", memory="3g", settings=settings)
        self.spark.dataSource.register(ReadySource)
        self.number = 0
        self.uri, self.vectors = self.path("rows"), self.path("vectors")

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def frame(self) -> DataFrame:
        made = "id", "cast(id % 1000 as int) k", "id * 0.5D x", "concat('name-', id % 100000) s"
        return self.spark.range(0, self.rows, 1, 4).selectExpr(*made)

    def wide_frame(self) -> DataFrame:
        rows = self.spark.range(0, self.wide, 1, 4)
        return rows.mapInArrow(vectors, "id bigint, v array<float>")

    def prepare(self) -> None:
        write = self.frame().write.format("lance").mode("append")
        write.option("maxRowsPerFile", 512 * 1024).save(self.uri)
        types = f"v=float32[{DIMENSIONS}]"
        self.wide_frame().write.format("lance").mode("append").option("types", types).save(
            self.vectors
        )
        self.wide_frame().write.parquet(self.path("vectors.parquet"))
        self.parquet(self.path("rows.parquet"))
        table = lancetable.create_table(
            self.path("worn"), schema=lancetable.open_table(self.uri).schema
        )
        batch = ready_batch()
        for _ in range(100):
            table.append(batch.slice(0, 20_000))

    def parquet(self, path: str) -> None:
        self.frame().write.parquet(path)

    def wide_parquet(self, path: str) -> None:
        self.wide_frame().write.parquet(path)

    def fresh(self) -> str:
        self.number += 1
        return self.path(f"written-{self.number}")

    def dropped(self, write: Callable[[str], object]) -> Callable[[], object]:
        """Return the write as a job that removes what it wrote."""

        def run() -> None:
            path = self.fresh()
            try:
                write(path)
            finally:
                shutil.rmtree(path, ignore_errors=True)

        return run

    def scanned(self, format_: str, schema: str) -> Callable[[], object]:
        def run() -> object:
            reader = self.spark.read.format(format_)
            # The JVM prunes columns of a source of its own by itself.
            if format_ in ("ready", "lance"):
                reader = reader.schema(schema)
            if format_ == "ready":
                reader = reader.option("rows", self.rows)
            frame = reader.load(self.uri)
            totals = [f"sum({name})" for name in ("id", "x")]
            if "s string" in schema:
                totals += ["sum(k)", "sum(length(s))"]
            return frame.selectExpr(*totals).collect()

        return run

    def filtered(self) -> object:
        """Sum a few rows; the table applies the predicate because the frame is made with it."""
        table = LanceTable.forPath(self.spark, self.uri)
        return table.toDF(columns=["x"], where="k = 7").selectExpr("sum(x)").collect()

    def filtered_parquet(self) -> object:
        frame = self.spark.read.parquet(self.path("rows.parquet"))
        return frame.where("k = 7").selectExpr("sum(x)").collect()

    def compacted(self, wave: int) -> Callable[[], object]:
        """Compact a shallow copy: one task at a time, or as many as there are cores."""

        def run(path: str) -> None:
            copy = lancetable.open_table(self.path("worn")).clone(path)
            runner = SparkRunner(self.spark, wave=wave)
            copy.compact(runner=runner, target_rows=250_000, copy_pages=False)

        return self.dropped(run)

    def filled(self, wave: int) -> Callable[[], object]:
        def work(batch: pa.RecordBatch) -> pa.RecordBatch:
            texts = [str(text).upper()[::-1] for text in batch.column("s").to_pylist()]
            return pa.RecordBatch.from_arrays([pa.array(texts)], ["upper"])

        def run(path: str) -> None:
            lancetable.open_table(self.path("worn")).clone(path)
            copy = LanceTable.forPath(self.spark, path).snapshot()
            change = ChangeOptions(runner=SparkRunner(self.spark, wave=wave))
            schema = pa.schema([("upper", pa.string())])
            add_columns_by(copy, work, FunctionOptions(("s",), schema, change=change))

        return self.dropped(run)

    def against_connector(self) -> list[Pair]:
        if self.connector is None:
            return []
        schemas = {"scan 2 numbers": NUMBERS, "scan 4 columns": ROWS}
        return [
            Pair(
                name,
                "connector",
                1.0,
                self.scanned("lance", schema),
                self.scanned(self.connector.source, schema),
            )
            for name, schema in schemas.items()
        ]

    def pairs(self) -> list[Pair]:
        spark, wide = self.spark, self.wide_frame
        types = f"v=float32[{DIMENSIONS}]"
        fragments = len(lancetable.open_table(self.uri).fragments)
        ours = LanceTable.forPath(spark, self.uri)
        of_vectors = LanceTable.forPath(spark, self.vectors)
        lance = "lance"
        return [
            Pair(
                "scan 2 numbers",
                "transport",
                1.25,
                self.scanned(lance, NUMBERS),
                self.scanned("ready", NUMBERS),
            ),
            Pair(
                "scan 4 columns",
                "transport",
                1.25,
                self.scanned(lance, ROWS),
                self.scanned("ready", ROWS),
            ),
            *self.against_connector(),
            Pair("filter 1 column", "parquet", 3.5, self.filtered, self.filtered_parquet),
            Pair(
                "write 4 columns",
                "parquet",
                1.0,
                self.dropped(lambda p: self.frame().write.format(lance).mode("append").save(p)),
                self.dropped(self.parquet),
            ),
            Pair(
                "write vectors",
                "parquet",
                0.35,
                self.dropped(
                    lambda p: (
                        wide().write.format(lance).mode("append").option("types", types).save(p)
                    )
                ),
                self.dropped(self.wide_parquet),
            ),
            Pair(
                "vectors into Python",
                "parquet",
                1 / 8,
                lambda: of_vectors.mapInArrow(norms, "total double", columns=["v"]).collect(),
                lambda: (
                    spark.read.parquet(self.path("vectors.parquet"))
                    .mapInArrow(norms, "total double")
                    .collect()
                ),
            ),
            Pair(
                "scan inside a task",
                "pylance",
                1.0,
                lambda: ours.mapInArrow(scan_with_ours, "total double").collect(),
                lambda: (
                    spark.range(0, fragments, 1, fragments)
                    .mapInArrow(scan_with_pylance(self.uri), "total double")
                    .collect()
                ),
            ),
            Pair(
                "compact 100 fragments",
                "one at a time",
                0.625,
                self.compacted(256),
                self.compacted(1),
            ),
            Pair(
                "backfill 100 fragments", "one at a time", 0.625, self.filled(256), self.filled(1)
            ),
        ]


class Measured(NamedTuple):
    """The times of a pair, round by round."""

    pair: Pair
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The best of ours over the best of theirs: what other work on the machine hides least."""
        return min(self.ours) / min(self.theirs)

    @property
    def of_medians(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def is_hit(self) -> bool:
        return self.ratio <= self.pair.most

    def cells(self) -> tuple[str, ...]:
        """Return a line of the table, for the terminal and for the page."""
        return (
            self.pair.name,
            self.pair.other,
            f"{min(self.ours):.2f}",
            f"{min(self.theirs):.2f}",
            f"{self.ratio:.2f}",
            f"{self.of_medians:.2f}",
            f"{self.pair.most:.3g}",
            "hit" if self.is_hit else "miss",
        )


HEADS = ("job", "against", "ours s", "other s", "ratio", "of medians", "at most", "")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "spark.md"
BEGIN, END = "<!-- benchmarks.spark begins -->", "<!-- benchmarks.spark ends -->"


def as_markdown(results: Sequence[Measured], about: str) -> str:
    """Return what stands on the page: how it was measured, and the table."""
    lines = [HEADS, ("---",) * len(HEADS), *(one.cells() for one in results)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{about}\n\n{table}"


def into_page(page: str, content: str) -> str:
    """Return the page with other content between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def timed(job: Callable[[], object]) -> float:
    began = time.perf_counter()
    job()
    return time.perf_counter() - began


def measure(pair: Pair, rounds: int) -> Measured:
    """Run both jobs in turn, after once to warm up."""
    for job in (pair.ours, pair.theirs):
        job()
    times = [(timed(pair.ours), timed(pair.theirs)) for _ in range(rounds)]
    ours, theirs = zip(*times, strict=True)
    return Measured(pair, ours, theirs)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--repeat", type=int, default=5, help="rounds after one to warm up")
    parser.add_argument("--case", help="only pairs whose name contains this")
    parser.add_argument("--jar", metavar="FILE", help="archive of the connector of the JVM")
    parser.add_argument(
        "--jar-source",
        metavar="CLASS",
        default="com.lancedb.lance.spark.LanceDataSource",
        help="the class of its source; %(default)s unless given",
    )
    parser.add_argument("--docs", action="store_true", help="write the table to docs/spark.md")
    chosen = parser.parse_args(arguments)
    if chosen.docs and chosen.case:
        parser.error("the page gets all pairs; leave out --case")
    if chosen.jar and not Path(chosen.jar).is_file():
        parser.error(f"there is no file {chosen.jar}")
    connector = Connector(chosen.jar, chosen.jar_source) if chosen.jar else None
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="lancetable-bench-"))
    share = 10 if chosen.quick else 1
    speed = copy_speed()
    bench = Bench(folder, 10_000_000 // share, 200_000 // share, connector)
    results = []
    try:
        bench.prepare()
        for pair in bench.pairs():
            if chosen.case and chosen.case not in pair.name:
                continue
            found = measure(pair, chosen.repeat)
            results.append(found)
            console.print(
                f"{pair.name}: {found.ratio:.2f} of {pair.other}, at most {pair.most:.3g}"
            )
    finally:
        bench.spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    shown = Table(*HEADS)
    for found in results:
        shown.add_row(*found.cells())
    console.print(shown)
    if chosen.docs:
        about = (
            f"{bench.rows:,} rows of 4 columns and {bench.wide:,} vectors of {DIMENSIONS} floats, "
            f"{chosen.repeat} alternating rounds of each pair, ratio of the best times; "
            f"{os.cpu_count()} cores, memory copy {speed} GB/s before and {copy_speed()} after:"
        )
        PAGE.write_text(into_page(PAGE.read_text(), as_markdown(results, about)))
        console.print(f"written to {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
