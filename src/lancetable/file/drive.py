"""Drive many readings at once: each round of requests becomes one batch of I/O."""

from collections.abc import Sequence
from typing import TypeVar

from lancetable.format.encoding.base import Reading, Span
from lancetable.store import ByteRange, ReadableFile

T = TypeVar("T")


def drive(file: ReadableFile, readings: Sequence[Reading[T]]) -> list[T]:
    """Run readings to their end and return their results in order."""
    if file.is_mapped:
        return [run(file, reading) for reading in readings]
    return _run_together(file, readings)


def run(file: ReadableFile, reading: Reading[T]) -> T:
    """Run one reading whose requests cost nothing."""
    try:
        wanted = next(reading)
        while True:
            wanted = reading.send(_fetch(file, wanted) if wanted else [])
    except StopIteration as finished:
        result: T = finished.value
        return result


def _fetch(file: ReadableFile, wanted: Sequence[Span]) -> list[memoryview]:
    return file.read_ranges([ByteRange(span.start, span.stop) for span in wanted])


def _run_together(file: ReadableFile, readings: Sequence[Reading[T]]) -> list[T]:
    results: dict[int, T] = {}
    waiting: dict[int, Sequence[Span]] = {}
    try:
        for number, reading in enumerate(readings):
            _advance(reading, None, number, waiting, results)
        while waiting:
            spans = [span for wanted in waiting.values() for span in wanted]
            buffers = iter(_fetch(file, spans) if spans else [])
            for number, wanted in list(waiting.items()):
                answer = [next(buffers) for _ in wanted]
                _advance(readings[number], answer, number, waiting, results)
    finally:
        for reading in readings:
            reading.close()
    return [results[number] for number in range(len(readings))]


def _advance(
    reading: Reading[T],
    answer: Sequence[memoryview] | None,
    number: int,
    waiting: dict[int, Sequence[Span]],
    results: dict[int, T],
) -> None:
    try:
        waiting[number] = next(reading) if answer is None else reading.send(answer)
    except StopIteration as finished:
        results[number] = finished.value
        waiting.pop(number, None)
