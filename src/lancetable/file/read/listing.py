"""List the pages of a data file."""

from collections.abc import Iterable, Iterator, Mapping

from lancetable.file.model import PageInfo
from lancetable.format.encoding.base import Column
from lancetable.format.schema.model import Field, Schema


def page_infos(
    columns: Iterable[Column], schema: Schema, numbers: Mapping[int, int]
) -> list[PageInfo]:
    """Describe every page of some columns; ``numbers`` says which column holds which field."""
    names = dict(_column_names(schema, numbers))
    found: list[PageInfo] = []
    for number, column in enumerate(columns):
        for index, page in enumerate(column.pages):
            text = str(page.description)
            sizes = tuple(buffer.size for buffer in page.buffers)
            found.append(PageInfo(number, names.get(number, ""), index, page.rows, text, sizes))
    return found


def _column_names(schema: Schema, numbers: Mapping[int, int]) -> Iterator[tuple[int, str]]:
    def names(field: Field, prefix: str) -> Iterator[tuple[int, str]]:
        name = f"{prefix}{field.name}"
        if field.id in numbers:
            yield numbers[field.id], name
        for child in field.children:
            yield from names(child, f"{name}.")

    for field in schema.fields:
        yield from names(field, "")
