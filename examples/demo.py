"""A complete pipeline on a local Spark; `make demo` runs it.

The documents are the docstrings of the running Python. The pipeline extracts them in parallel,
stores them, adds vectors, merges a stream, compacts the table, searches it and reads old versions.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from examples import documents
from lancetable.operations.columns.add import FunctionOptions
from lancetable.spark import LanceTable, session, show_progress, upsert

INSTALLED = ("rich", "pyarrow", "sqlglot", "numpy")
QUESTION = "send an email message over smtp"
_COUNTS = ("Added", "Removed", "Updated")
console = Console(highlight=False)


class Demo:
    """The steps of the demo, each printed while it runs."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.path = str(folder / "documents.lance")
        self.inbox = str(folder / "inbox.lance")
        self.checkpoint = str(folder / "checkpoint")
        self.cores = spark.sparkContext.defaultParallelism

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print a title, the progress and the duration of a step."""
        console.print(f"\n[bold cyan]{title}[/]")
        began = time.perf_counter()
        with show_progress(self.spark, "  tasks", console):
            yield
        console.print(f"  [dim]{time.perf_counter() - began:.1f} s[/]")

    def table(self) -> LanceTable:
        """Return the table at its latest version."""
        return LanceTable.forPath(self.spark, self.path)

    def extracted(self, modules: list[tuple[str, str]]) -> DataFrame:
        """Return the documents of some modules; Spark's workers read them."""
        rows = self.spark.createDataFrame(modules, "module string, path string")
        parts = rows.repartition(4 * self.cores)
        return parts.mapInArrow(documents.extract, documents.SCHEMA)

    def extract_and_write(self) -> None:
        """Create a table with the documents of the standard library."""
        modules = documents.standard_library()
        with self.step(f"1. Extract the docstrings of {len(modules)} modules and write a table"):
            self.extracted(modules).write.format("lance").mode("append").save(self.path)
            say(f"{self.table().count():,} documents, version {self.table().snapshot().version}")

    def add_vectors(self) -> None:
        """Add a vector to every document."""
        with self.step("2. Add a column of vectors, computed by the workers"):
            options = FunctionOptions(inputs=("id", "doc"), batch_rows=2048)
            self.table().addColumns(documents.embed, options)
            shown = self.table().toDF().schema["embedding"]
            say(f"embedding: {shown.dataType.simpleString()}, stored as {shown.metadata}")

    def fill_inbox(self) -> None:
        """Write cleaned documents, and those of installed packages, to another table."""
        with self.step("3. Write new and changed documents to another table"):
            old = self.table().toDF().select("id", "package", "kind", "doc", "source")
            changed = old.where("doc like '%\\n%' and package in ('json', 'argparse', 'asyncio')")
            arrived = (changed.mapInArrow(documents.clean, documents.SCHEMA), *self.news())
            for rows in arrived:
                rows.write.format("lance").mode("append").save(self.inbox)
            inbox = LanceTable.forPath(self.spark, self.inbox)
            say(f"{inbox.count():,} documents in {inbox.snapshot().version} versions")

    def news(self) -> Iterator[DataFrame]:
        """Yield the documents of installed packages."""
        for name in INSTALLED:
            modules = documents.packages([name])
            if modules:
                yield self.extracted(modules[:200])

    def follow(self) -> int:
        """Run the stream until the inbox is read; return the version of the table after it."""
        stream = self.spark.readStream.format("lance").option("startingVersion", 1)
        rows = stream.option("maxVersionsPerTrigger", 1).load(self.inbox)
        vectors = rows.mapInArrow(
            documents.with_embeddings, f"{documents.SCHEMA}, embedding array<float>"
        )
        query = (
            vectors.writeStream.foreachBatch(upsert(self.path, on="id"))
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return self.table().snapshot().version

    def stream(self) -> None:
        """Merge the other table into the first, then lose a checkpoint and repeat the batch."""
        with self.step("4. Merge them by a stream, one version of the inbox at a time"):
            before = self.table().count()
            version = self.follow()
            say(f"{before:,} documents became {self.table().count():,}, version {version}")
        with self.step("5. Restart the stream without the record of its last batch"):
            batch = self.forget()
            again = self.follow()
            say(f"batch {batch} was delivered again and skipped: still version {again}")

    def forget(self) -> int:
        """Remove the last entry from the commit log of Spark."""
        log = Path(self.checkpoint) / "commits"
        last = max(int(one.name) for one in log.glob("[0-9]*"))
        for one in (log / f"{last}", log / f".{last}.crc"):
            one.unlink(missing_ok=True)
        return last

    def merge_and_delete(self) -> None:
        """Update and delete documents in one commit."""
        with self.step("6. Merge: mark private documents and delete those of one package"):
            private = self.table().toDF().where("id like '%.\\\\_%'").select("id", "kind")
            source = private.selectExpr("id", "concat('private ', kind) kind")
            merge = self.table().alias("t").merge(source.alias("s"), "t.id = s.id")
            merge = merge.whenMatchedDelete("t.package = 'turtledemo'")
            (counts,) = merge.whenMatchedUpdate(set={"kind": "s.kind"}).execute().collect()
            say(f"{counts['num_updated_rows']:,} updated, {counts['num_deleted_rows']:,} deleted")
        with self.step("7. Delete very short documents"):
            say(f"{self.table().delete('length(doc) < 20'):,} deleted")

    def compact(self) -> None:
        """Compact the table in tasks that run on workers."""
        with self.step("8. Compact the fragments of many small changes"):
            (done,) = self.table().optimize().executeCompaction().collect()
            say(
                f"{done['numFragmentsRemoved']} fragments became {done['numFragmentsAdded']}, "
                f"{done['numBytesRemoved']:,} bytes {done['numBytesAdded']:,}"
            )

    def ask(self) -> None:
        """Find the documents that are closest to a text."""
        with self.step(f"9. The nearest documents to “{QUESTION}”"):
            query = documents.vector_of(QUESTION)
            found = self.table().mapInArrow(
                partial(documents.nearest, query=query, most=5),
                "id string, score double",
                columns=["id", "embedding"],
            )
            for row in found.orderBy("score", ascending=False).limit(5).collect():
                say(f"{row['score']:.2f}  {row['id']}")

    def travel(self) -> None:
        """Read an old version beside the new one."""
        with self.step("10. Read json.dumps in the first and in the latest version"):
            for version in (1, self.table().snapshot().version):
                frame = self.spark.read.format("lance").option("version", version).load(self.path)
                row = frame.where("id = 'json.dumps'").select("doc").first()
                lines = [] if row is None else row["doc"].splitlines()
                shown = repr(lines[2]) if len(lines) > 2 else "missing"
                count = self.spark.read.format("lance").option("version", version)
                rows = count.schema("kind string").load(self.path).count()
                say(f"version {version}: {rows:,} documents, its third line is {shown}")

    def history(self) -> None:
        """Show versions and files."""
        console.print("\n[bold cyan]11. Show the history and the files[/]")
        shown = Table("version", "operation", "added", "removed", "updated", "batch", box=None)
        for row in reversed(self.table().history().collect()):
            metrics, notes = row["operationMetrics"], row["operationParameters"]
            counts = [f"{metrics.get(f'numRows{name}', 0):,}" for name in _COUNTS]
            batch = notes.get("lancetable.txn_version", "")
            shown.add_row(str(row["version"]), row["operation"], *counts, batch)
        console.print(shown)
        files = Table("fragment", "rows", "deleted", "files", "bytes", box=None)
        for one in self.table().snapshot().manifest.fragments:
            deleted = 0 if one.deletion_file is None else one.deletion_file.deleted_rows
            size = sum(file.size or 0 for file in one.files)
            cells = (one.id, one.physical_rows, deleted, len(one.files), size)
            files.add_row(*(f"{cell:,}" for cell in cells))
        console.print(files)


def say(text: str) -> None:
    """Print one line of output."""
    console.print(f"  {text}", markup=False)


def main() -> None:
    """Run the pipeline in a temporary folder."""
    began = time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="lancetable-demo-"))
    console.print("[bold]A pipeline on Lance tables and Spark[/], through PySpark alone")
    with console.status("starting Spark"):
        spark = session(name="demo", settings={"spark.sql.adaptive.enabled": "false"})
    say(f"Spark {spark.version}, {time.perf_counter() - began:.0f} s to start")
    try:
        demo = Demo(spark, folder)
        for step in (
            demo.extract_and_write,
            demo.add_vectors,
            demo.fill_inbox,
            demo.stream,
            demo.merge_and_delete,
            demo.compact,
            demo.ask,
            demo.travel,
            demo.history,
        ):
            step()
        console.print(f"\n[bold]Done[/] in {time.perf_counter() - began:.0f} s")
    finally:
        spark.stop()
        if "--keep" in sys.argv:
            console.print(f"the tables are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
