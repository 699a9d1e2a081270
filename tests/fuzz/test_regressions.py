"""Damaged bytes that were once answered badly, each as small as it can be."""

from contextlib import suppress

import pytest

from lancetable.errors import CorruptError, UnsupportedError
from tests.fixtures_catalog import GOLDEN
from tests.fuzz.files import FileSubject
from tests.fuzz.judge import IN_TABLE, judge
from tests.fuzz.tables import TableSubject
from tests.handmade import Column, Layout, Page, data_file, flat, handle

REFUSED = (CorruptError, UnsupportedError)
INLINE = Layout(constant_layout={"layers": [1], "inline_value": b"\x07\0\0\0"})


@pytest.mark.parametrize("rows", [(1 << 64) - 1, 1 << 63, (1 << 63) - 1, 1 << 48, 4, 2])
def test_a_file_that_claims_other_rows_than_its_columns(rows: int) -> None:
    data = data_file("2.2", [Column("x", "int32")], [[Page(3, INLINE)]], rows)
    with pytest.raises(REFUSED):
        handle(data).read()


def test_a_null_column_that_says_it_has_no_nulls() -> None:
    page = Page(3, Layout(constant_layout={"layers": [3]}))
    data = data_file("2.1", [Column("x", "null", nullable=False)], [[page]], 3)
    with suppress(*REFUSED):
        assert handle(data).read().column(0).null_count == 3


def test_a_full_zip_page_with_fewer_rows_than_it_claims() -> None:
    """The third value says that it goes on with the list before it."""
    layout = Layout(
        full_zip_layout={
            "bits_rep": 1,
            "bits_per_value": 32,
            "num_items": 3,
            "num_visible_items": 3,
            "value_compression": flat(32),
            "layers": [1, 2],
        }
    )
    fields = [Column("x", "list"), Column("item", "int32", 0)]
    page = Page(3, layout, [bytes.fromhex("01 01000000 01 02000000 00 03000000"), b"\0\5\n\x0f"])
    data = data_file("2.1", fields, [[page]], 3)
    with pytest.raises(REFUSED):
        handle(data).read()


def test_a_file_without_columns_keeps_its_rows() -> None:
    assert handle(data_file("2.1", [], [], 5)).read().num_rows in {0, 5}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("2.1/fullzip_forced", 162),
        ("2.1/fullzip_forced", 310),
        ("2.2/fullzip_forced", 110),
        ("2.1/strings_huge_values", 434),
        ("2.0/lists_dict_and_null_items", 113),
    ],
)
def test_files_that_were_read_badly(name: str, number: int) -> None:
    subject = FileSubject.load(GOLDEN / "file" / f"{name}.lance")
    mutant = subject.mutant(number)
    wrong = judge(lambda: subject.read(mutant.data), REFUSED, len(mutant.data))
    assert wrong is None, f"{mutant.text}: {wrong}"


def test_two_columns_of_one_name() -> None:
    subject = TableSubject.load(GOLDEN / "releases" / "pylance-4.0.2" / "nested_default.lance")
    mutant = subject.mutant(97)
    wrong = judge(lambda: subject.read(mutant.objects), IN_TABLE, subject.size)
    assert wrong is None, f"{mutant.text}: {wrong}"
