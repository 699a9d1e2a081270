"""Run the steps of an operation on the workers of Spark.

Tasks travel inside the function that the workers run, one for each partition of a range of numbers;
one small row comes back for each. That works in classic sessions and over Connect. Spark may run a
task twice; its steps write files of new names only, and only the results that are collected here
count, so the second run does no harm.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, cast

import pyarrow as pa
from pyspark import cloudpickle

from lancetable.commit.options import CommitOptions
from lancetable.errors import InputError
from lancetable.spark.errors import explain_missing_modules
from lancetable.spark.sessions.progress import observed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")

PATIENT = CommitOptions(deadline_seconds=3600)
"""Work on a cluster takes long, and is done again all the same when another writer came first."""
WAVE = 256
"""The number of tasks that are sent at a time; each worker gets all of them."""
_dumps: Callable[[object], bytes] = cloudpickle.dumps
_RESULT = "id bigint, result binary"
_ARROW = pa.schema([("id", pa.int64()), ("result", pa.binary())])


class SparkRunner:
    """Workers of a Spark session; ``progress`` gets the number of finished tasks."""

    def __init__(
        self,
        spark: "SparkSession",
        *,
        wave: int = WAVE,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        if wave < 1:
            raise InputError(f"wave is {wave}; give a number of tasks from 1")
        self._spark = spark
        self._wave = wave
        self._progress = progress

    def map(self, step: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of each task, in the order of the tasks."""
        waiting = iter(tasks)
        done = 0
        while wave := list(islice(waiting, self._wave)):
            results = self._run(step, wave, done)
            done += len(wave)
            if self._progress is not None:
                self._progress(done)
            for place in range(len(wave)):
                yield cast("Result", pickle.loads(results[place]))  # noqa: S301 - our own workers'

    def _run(
        self, step: Callable[[Task], Result], tasks: list[Task], before: int
    ) -> dict[int, bytes]:
        number = len(tasks)
        work = _Work(_dumps(step), [_dumps(task) for task in tasks])
        frame = self._spark.range(0, number, 1, number).mapInArrow(work, _RESULT)
        with explain_missing_modules(), self._watched(before):
            return {row["id"]: row["result"] for row in frame.collect()}

    def _watched(self, before: int) -> AbstractContextManager[None]:
        progress = self._progress
        if progress is None:
            return nullcontext()
        return observed(self._spark, lambda done, _: progress(before + done))


class _Work:
    """Runs the step on a worker, for the tasks whose numbers it is given."""

    def __init__(self, step: bytes, payloads: list[bytes]) -> None:
        self._step = step
        self._payloads = payloads

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        step = pickle.loads(self._step)  # noqa: S301 - the driver's
        for batch in batches:
            for place in batch.column(0).to_pylist():
                task = pickle.loads(self._payloads[place])  # noqa: S301 - the driver's
                result = _dumps(step(task))
                yield pa.RecordBatch.from_pydict({"id": [place], "result": [result]}, _ARROW)
