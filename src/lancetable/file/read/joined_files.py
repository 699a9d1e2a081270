"""The same columns of many small files, decoded together.

What a page costs besides its values is the same for ten rows and for ten thousand. Neighbouring
pages that are described alike are joined as bytes and decoded as one.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, cast

import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.file.leaf_info import LeafPlan
from lancetable.file.model import V2_0
from lancetable.file.read.reader import FileReader
from lancetable.format.encoding.assemble import leaf_run
from lancetable.format.encoding.base import Page
from lancetable.format.encoding.layouts.joined_files import StoredPage, read_joined, shape_of
from lancetable.format.schema.model import Field
from lancetable.store import ByteRange

if TYPE_CHECKING:
    from lancetable.format.encoding.layouts.miniblock import MiniBlock


class _Place(NamedTuple):
    """A page of a column and the file it is in."""

    file: FileReader
    plan: LeafPlan
    page: Page


def can_read_together(file: FileReader) -> bool:
    """Return whether the pages of a file may be joined with those of others."""
    return file.version != V2_0 and file.file.is_mapped


def read_together(files: Sequence[FileReader], field: Field) -> list[pa.Array]:
    """Return all rows of a column of several files, one file behind the other.

    Raises:
        CorruptError: a page is damaged; which one may not be known.
    """
    plans = [file.field(field).plans for file in files]
    if any(len(each) != 1 or not each[0].is_simple for each in plans):
        return [chunk for file in files for chunk in file.read([field], range(file.rows))[0]]
    places = [
        _Place(file, plan, page)
        for file, (plan,) in zip(files, plans, strict=True)
        for page in plan.column.pages
    ]
    found: list[pa.Array] = []
    for shape, group in groupby(places, key=lambda place: shape_of(place.page.description)):
        run = list(group)
        if shape is None or len(run) == 1:
            found += [chunk for place in run for chunk in _alone(place, field)]
        else:
            found.append(_joined(run))
    return found


def _alone(place: _Place, field: Field) -> list[pa.Array]:
    page = place.page
    return place.file.read([field], range(page.first_row, page.first_row + page.rows))[0]


def _joined(places: Sequence[_Place]) -> pa.Array:
    stored: list[StoredPage] = []
    for file, _, page in places:
        layout = cast("MiniBlock", page.description)
        if page.rows != layout.items:
            raise CorruptError(f"a page of {page.rows} rows holds {layout.items} values")
        wanted = [ByteRange(*page.buffer(number).whole()) for number in (0, 1)]
        words, chunks = file.file.read_ranges(wanted)
        stored.append(StoredPage(words, chunks, layout))
    plan = places[0].plan
    entries = read_joined(stored)
    return leaf_run(entries, stored[0].layout.layers, plan.kind, plan.leaf.widths).array
