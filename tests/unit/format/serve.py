"""Serves readings from bytes, the way a file would."""

from typing import TypeVar

from lancetable.format.encoding.base import Page, PageBuffer, Reading

T = TypeVar("T")


def serve(reading: Reading[T], data: bytes, rounds: list[int] | None = None) -> T:
    """Run a reading to its end; note in ``rounds`` how many spans it asks for each time."""
    view = memoryview(data)
    try:
        spans = next(reading)
        while True:
            assert all(0 <= span.start <= span.stop <= len(data) for span in spans)
            if rounds is not None:
                rounds.append(len(spans))
            spans = reading.send([view[span.start : span.stop] for span in spans])
    except StopIteration as done:
        result: T = done.value
        return result


def page_of(description: object, rows: int, *buffers: bytes) -> tuple[Page, bytes]:
    """Return a page over buffers, which start at odd places, and the bytes that hold them."""
    data, places = b"", []
    for buffer in buffers:
        data += b"?" * 3
        places.append(PageBuffer(len(data), len(buffer)))
        data += buffer
    return Page(rows, 0, tuple(places), description), data
