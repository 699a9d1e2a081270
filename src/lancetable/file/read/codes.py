"""Columns of a file with few distinct values, and their rows as they are stored."""

from typing import TypeAlias

import pyarrow as pa

from lancetable.file.drive import drive
from lancetable.file.error_context import Placed
from lancetable.file.leaf_info import LeafPlan
from lancetable.file.model import V2_0
from lancetable.file.read.reader import FileReader
from lancetable.format.encoding.assemble import leaf_run
from lancetable.format.encoding.base import Page, Reading, Rows
from lancetable.format.encoding.codes import Coded, coded_rows, coded_runs
from lancetable.format.encoding.layouts.constant import ConstantPage
from lancetable.format.encoding.layouts.miniblock import MiniBlock, MiniBlockPage
from lancetable.format.schema.model import Field
from lancetable.store import check_size

CodedChunk: TypeAlias = pa.Array | Coded
"""Rows of a page; an array where each row has its value."""


def has_codes(reader: FileReader, field: Field) -> bool:
    """Return whether pages of a field hold codes or runs in place of a value for each row."""
    plans = [] if reader.version == V2_0 else reader.field(field).plans
    return len(plans) == 1 and _is_coded(plans[0])


def _is_coded(plan: LeafPlan) -> bool:
    is_own = plan.is_simple and not plan.leaf.field.is_json and not plan.leaf.field.is_packed
    return is_own and any(map(_is_coded_page, plan.column.pages))


def _is_coded_page(page: Page) -> bool:
    layout = page.description
    if isinstance(layout, MiniBlock):
        return layout.dictionary is not None or layout.runs is not None
    return isinstance(layout, ConstantPage)


def read_coded(reader: FileReader, field: Field, rows: range) -> list[CodedChunk]:
    """Read rows of a field as its pages store them."""
    if not has_codes(reader, field):
        return reader.read([field], rows)[0]
    (plan,) = reader.field(field).plans
    check_size(reader.file)
    picked = plan.column.pick(rows)
    return drive(reader.file, [_page(reader, plan, index, inside) for index, inside in picked])


def _page(reader: FileReader, plan: LeafPlan, index: int, rows: Rows) -> Reading[CodedChunk]:
    with Placed(reader.path, f"column {plan.number} page {index}"):
        opened, layout = yield from reader.open_page(plan, index)
        if isinstance(opened, MiniBlockPage) and isinstance(rows, range):
            values = opened.layout.runs
            if values is not None:
                runs, keep = yield from opened.read_runs(values, rows)
                return coded_runs(runs, keep, plan.kind)
        entries = yield from opened.read(rows)
        coded = coded_rows(entries, layout.layers, plan.kind)
        return leaf_run(entries, layout.layers, plan.kind).array if coded is None else coded
