"""What every compression owes: its values, single values, and a clear refusal of damaged bytes."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from lancetable.errors import CorruptError, UnsupportedError
from tests.contracts.pages import EXAMPLES, Example
from tests.handmade import Layout, Page, data_file, handle

REFUSED = (CorruptError, UnsupportedError)


def read(example: Example, page: Page) -> tuple[pa.Table, pa.Table]:
    """Read a page whole, and some rows of it."""
    opened = handle(data_file(example.version, example.fields(), [[page]], page.rows))
    rows = [page.rows - 1, 0, page.rows // 2]
    return opened.read(), opened.take(rows)


@pytest.fixture(params=EXAMPLES, ids=[example.name for example in EXAMPLES])
def example(request: pytest.FixtureRequest) -> Example:
    found: Example = request.param
    return found


def test_all_values_come_out(example: Example) -> None:
    whole, some = read(example, example.page)
    assert whole.column(0).to_pylist() == list(example.expected)
    last, middle = example.expected[-1], example.expected[len(example.expected) // 2]
    assert some.column(0).to_pylist() == [last, example.expected[0], middle]


def _without(page: Page, buffer: int, kept: int) -> Page:
    buffers = list(page.buffers)
    buffers[buffer] = buffers[buffer][:kept]
    return page._replace(buffers=buffers)


def _with(page: Page, buffer: int, place: int, value: int) -> Page:
    buffers = list(page.buffers)
    changed = bytearray(buffers[buffer])
    changed[place] = value
    buffers[buffer] = bytes(changed)
    return page._replace(buffers=buffers)


def test_truncated_buffers_are_refused(example: Example) -> None:
    for number, buffer in enumerate(example.page.buffers):
        step = max(1, len(buffer) // 60)
        for kept in range(0, len(buffer), step):
            with pytest.raises(REFUSED):
                read(example, _without(example.page, number, kept))


@dataclass
class Tally:
    """How often a damaged page was refused, and how often it gave rows."""

    refused: int = 0
    read: int = 0


def test_damaged_bytes_give_whole_rows_or_a_refusal(example: Example) -> None:
    tally = Tally()
    for number, buffer in enumerate(example.page.buffers):
        step = max(1, len(buffer) // 50)
        for place in range(0, len(buffer), step):
            for value in (0, 1, 0x7F, 0xFF):
                try:
                    whole, some = read(example, _with(example.page, number, place, value))
                except REFUSED:
                    tally.refused += 1
                    continue
                assert whole.num_rows == example.page.rows
                assert some.num_rows == 3
                whole.column(0).chunk(0).validate()
                tally.read += 1
    assert tally.read


@pytest.mark.parametrize("rows", [0, 1, 1 << 20, 1 << 47, (1 << 63) - 1])
def test_pages_that_claim_other_numbers_of_values(example: Example, rows: int) -> None:
    """A page that finds its rows through an index does not need the number."""
    layout = Layout.FromString(example.page.description.SerializeToString())
    kind = layout.WhichOneof("layout")
    getattr(layout, kind).num_items = min(rows, (1 << 32) - 1) if "zip" in kind else rows
    try:
        whole, _ = read(example, example.page._replace(description=layout))
    except REFUSED:
        return
    assert "zip" in kind
    assert whole.column(0).to_pylist() == list(example.expected)


@pytest.mark.parametrize("rows", [1, 1 << 20, 1 << 47, (1 << 63) - 1])
def test_pages_that_claim_other_numbers_of_rows_are_refused(example: Example, rows: int) -> None:
    with pytest.raises(REFUSED):
        read(example, example.page._replace(rows=rows))
