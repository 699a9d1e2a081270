"""How do several readings share their rounds of fetching?"""

from collections.abc import Sequence
from typing import TypeVar

from lancetable.format.encoding.base import Reading, Span

T = TypeVar("T")


def together(readings: Sequence[Reading[T]]) -> Reading[list[T]]:
    """Run readings side by side: each round asks for the spans of all that still need some."""
    if len(readings) == 1:
        return [(yield from readings[0])]
    results: dict[int, T] = {}
    wanted: dict[int, Sequence[Span]] = {}
    for number, reading in enumerate(readings):
        try:
            wanted[number] = next(reading)
        except StopIteration as done:
            results[number] = done.value
    while wanted:
        received = yield [span for spans in wanted.values() for span in spans]
        asked, wanted, first = wanted, {}, 0
        for number, spans in asked.items():
            part = received[first : first + len(spans)]
            first += len(spans)
            try:
                wanted[number] = readings[number].send(part)
            except StopIteration as done:
                results[number] = done.value
    return [results[number] for number in range(len(readings))]
