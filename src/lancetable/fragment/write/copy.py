"""Join fragments by copying their pages, where that gives the same rows.

That is so when no row is deleted, every column is in files of the wanted version as the table
describes it, and the pages are not so small that reading many of them would cost more than
rewriting them once.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from lancetable.errors import LanceTableError
from lancetable.file.model import FileVersion, WrittenPage
from lancetable.file.write.copy import (
    COPYABLE,
    FilePart,
    Owner,
    PageCopier,
    StoredFile,
    holds_lists_in_structs,
    owners_of,
    structs_that_may_be_null,
)
from lancetable.format.manifest.model import DataFile, Fragment
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.projection import TOMBSTONE
from lancetable.fragment.source import Source
from lancetable.fragment.write.writer import (
    WriteTarget,
    begin_file,
    new_file_name,
    new_fragment,
    remove_fragments,
)
from lancetable.store import ReadableFile

LEAST_PAGE_ROWS = 8192
LEAST_PAGE_BYTES = 64 * 1024

_Layout = list[tuple[Field, list[Owner]]]


class _Pages(NamedTuple):
    """The pages of a column, and the file of its fragment that they are in."""

    file: int
    pages: list[WrittenPage]


class _Stored(NamedTuple):
    """A fragment whose pages can be copied: for each field that owns a column its pages."""

    fragment: Fragment
    columns: Mapping[int, _Pages]


class CopyTarget(NamedTuple):
    """The form of the copied files, and their destination."""

    schema: Schema
    version: FileVersion
    target: WriteTarget
    rows_per_file: int


def copy_fragments(
    source: Source, fragments: Sequence[Fragment], wanted: CopyTarget
) -> list[Fragment] | None:
    """Join fragments by copying pages; ``None`` when they have to be rewritten.

    Raises:
        CorruptError: a file is damaged.
        StoreError: a file cannot be read or written; nothing stays behind.
    """
    if wanted.version not in COPYABLE or any(one.deletion_file for one in fragments):
        return None
    if any(map(_is_tiny, fragments)):
        return None
    layout = owners_of(wanted.schema, wanted.version)
    stored: list[_Stored] = []
    for fragment in fragments:
        columns = _columns(source, fragment, layout, wanted.version)
        if columns is None or not _is_worth_it(fragment, columns):
            return None
        stored.append(_Stored(fragment, columns))
    if not _agree_on_structs(stored, layout):
        return None
    made: list[Fragment] = []
    try:
        for group in _outputs(stored, wanted.rows_per_file):
            made.append(_copied(source, group, wanted))  # noqa: PERF401 - kept when one fails
    except BaseException:
        remove_fragments(made, wanted.target)
        raise
    return made


def _agree_on_structs(stored: Sequence[_Stored], layout: _Layout) -> bool:
    """Return whether all pages of a column of structs of lists agree on what may be null."""
    owners = [one for field, each in layout if holds_lists_in_structs(field) for one in each]
    for owner, _ in owners:
        pages = (page for one in stored for page in one.columns[owner.id].pages)
        if len({structs_that_may_be_null(page) for page in pages}) > 1:
            return False
    return True


def _is_tiny(fragment: Fragment) -> bool:
    """Return whether the pages of a fragment are too small, without looking at them."""
    columns = sum(len(file.fields) for file in fragment.files)
    size = sum(file.size or 0 for file in fragment.files)
    return fragment.physical_rows < LEAST_PAGE_ROWS and size < LEAST_PAGE_BYTES * columns


def _outputs(stored: Sequence[_Stored], rows_per_file: int) -> list[list[_Stored]]:
    """Divide fragments among files; none is cut."""
    groups: list[list[_Stored]] = [[]]
    rows = 0
    for one in stored:
        if groups[-1] and rows + one.fragment.physical_rows // 2 > rows_per_file:
            groups.append([])
            rows = 0
        groups[-1].append(one)
        rows += one.fragment.physical_rows
    return groups


def _copied(source: Source, stored: Sequence[_Stored], wanted: CopyTarget) -> Fragment:
    name = new_file_name()
    copier = PageCopier(
        begin_file(wanted.target.store, wanted.target.path(name)), wanted.schema, wanted.version
    )
    try:
        for fragment, columns in stored:
            files = [FilePart(partial(_opened, source, file)) for file in fragment.files]
            copier.add(
                fragment.physical_rows,
                {id_: (files[number], pages) for id_, (number, pages) in columns.items()},
            )
        return new_fragment(name, copier.finish(), wanted.target)
    except BaseException:
        with suppress(LanceTableError):
            copier.abort()
        raise


def _is_worth_it(fragment: Fragment, columns: Mapping[int, _Pages]) -> bool:
    """Return whether pages are large enough to be kept as they are."""
    pages = max(len(pages) for _, pages in columns.values())
    bytes_ = sum(size for _, pages in columns.values() for page in pages for _, size in page[2])
    rows = fragment.physical_rows
    return rows >= LEAST_PAGE_ROWS * pages or bytes_ >= LEAST_PAGE_BYTES * pages * len(columns)


def _columns(
    source: Source, fragment: Fragment, layout: _Layout, version: FileVersion
) -> Mapping[int, _Pages] | None:
    """Return the pages of all columns; ``None`` when some cannot be copied."""
    if any(one.version != version for one in fragment.files):
        return None
    files = [_stored(source, file) for file in fragment.files]
    if any(file.rows != fragment.physical_rows for file in files):
        return None
    found: dict[int, _Pages] = {}
    for field, owners in layout:
        number = next((place for place, one in enumerate(files) if one.holds(field)), None)
        if number is None:
            return None
        for owner, factor in owners:
            pages = files[number].pages(owner, factor)
            if pages is None:
                return None
            found[owner.id] = _Pages(number, pages)
    return found


def _opened(source: Source, file: DataFile) -> ReadableFile:
    store, path = source.data_file_place(file)
    return store.open(path, size=file.size)


def _stored(source: Source, file: DataFile) -> StoredFile:
    pairs = zip(file.fields, file.column_indices, strict=False)
    columns = {id_: index for id_, index in pairs if id_ != TOMBSTONE}
    return StoredFile(_opened(source, file), file.path, columns)
