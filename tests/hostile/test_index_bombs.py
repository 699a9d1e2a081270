"""Index files whose few bytes stand for billions of rows: the index is passed over."""

import logging
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

import lancetable as lt
from lancetable.errors import CorruptError, LimitError
from lancetable.format.manifest.roaring import decode_bitmap, decode_treemap
from lancetable.index.grouping import set_batches
from lancetable.index.row_map import decode_row_map

MiB = 1 << 20
ROWS = pa.table({"n": range(100), "s": [f"text {n}" for n in range(100)]})


@pytest.fixture(autouse=True)
def no_limits() -> Iterator[None]:
    yield
    lt.set_limits(None)


def bomb(values: int = 1 << 32) -> bytes:
    """Return a bitmap of all values below one."""
    rows = BitMap()
    rows.add_range(0, values)
    rows.run_optimize()
    return bytes(rows.serialize())


def as_map(*bitmaps: bytes) -> bytes:
    found = len(bitmaps).to_bytes(4, "little")
    for number, one in enumerate(bitmaps):
        found += number.to_bytes(4, "little") + len(one).to_bytes(4, "little") + one
    return found


def as_treemap(*bitmaps: bytes) -> bytes:
    parts = [n.to_bytes(4, "little") + b for n, b in enumerate(bitmaps)]
    return len(bitmaps).to_bytes(8, "little") + b"".join(parts)


def peak(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


KINDS = {
    "bitmap": ("n", "n = 7", "bitmaps", as_map),
    "label_list": ("l", "array_has(l, 7)", "bitmaps", as_map),
    "ngram": ("s", "contains(s, 'text 7')", "posting_list", as_treemap),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_that_names_billions_of_rows_is_passed_over(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    column, where, sets, form = KINDS[kind]
    table = lt.create_table(tmp_path / "t", ROWS.append_column("l", [[[n] for n in range(100)]]))
    content = form(bomb())

    def armed(stream: object, schema: pa.Schema, *, has_sizes: bool) -> Iterator[pa.RecordBatch]:
        for batch in set_batches(stream, schema, has_sizes=has_sizes):  # type: ignore[arg-type]
            place = schema.get_field_index(sets)
            column = pa.array([content] * batch.num_rows, schema.field(place).type)
            yield batch.set_column(place, schema.field(place), column)

    module = "ngram" if kind == "ngram" else "bitmap"
    monkeypatch.setattr(f"lancetable.index.scalar.{module}.set_batches", armed)
    table.indices.create(column, kind)
    expected = table.scan(where=where, use_indices=False).to_arrow()
    with caplog.at_level(logging.WARNING):
        assert peak(lambda: table.scan(where=where).to_arrow()) < 64 * MiB
    assert "max_page_bytes" in caplog.text
    assert table.scan(where=where).to_arrow() == expected
    assert table.count(where) == len(expected) > 0
    table.append(ROWS)
    with pytest.raises(LimitError, match="max_page_bytes"):
        table.indices.optimize(mode="merge")


@pytest.mark.parametrize(
    ("decode", "form"),
    [
        (decode_row_map, as_map),
        (partial(decode_treemap, most=1 << 40, limits=lt.ReadLimits(MiB, MiB)), as_treemap),
    ],
    ids=["map", "treemap"],
)
def test_many_small_sets_are_added_up(
    decode: Callable[[bytes], object], form: Callable[..., bytes]
) -> None:
    lt.set_limits(lt.ReadLimits(max_page_bytes=MiB))
    one = bomb(1 << 15)
    decode(form(*[one] * 4))
    with pytest.raises(LimitError, match="max_page_bytes"):
        decode(form(*[one] * 100))


def test_a_bitmap_without_a_limit_is_bounded_by_its_place() -> None:
    with pytest.raises(CorruptError, match="at most 100"):
        decode_bitmap(bomb(), most=100)
