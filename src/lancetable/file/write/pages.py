"""Encode the rows of a column as pages, for each version of the format.

From 2.1 on every leaf makes pages of its own; in 2.0 every struct and list makes one too. The
writer asks once, by version, and then only knows this contract.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache, partial
from typing import NamedTuple, Protocol

import pyarrow as pa

from lancetable.errors import InputError, SchemaError, UnsupportedError
from lancetable.file.leaf_info import column_owners, leaves_of
from lancetable.file.model import V2_0, V2_1, V2_2, FileVersion
from lancetable.format.encoding.build import choose
from lancetable.format.encoding.build.blocks import PageDraft
from lancetable.format.encoding.build.compress import TextCoder
from lancetable.format.encoding.build.field_options import FieldOptions, options_of
from lancetable.format.encoding.build.fullzip import build_blobs
from lancetable.format.encoding.build.shred import LISTS, Shredded, shred
from lancetable.format.encoding.build.small import MOST_VALUES, small_page
from lancetable.format.encoding.jsonb import encode_jsonb
from lancetable.format.encoding.leaf import kind_of
from lancetable.format.encoding.v20 import build as build20
from lancetable.format.schema.model import Field


class PageBuilder(Protocol):
    """Builds the pages of one top-level column."""

    owners: tuple[Field, ...]
    """The fields that own a column, in the order of their columns."""

    def build(self, array: pa.Array) -> Iterable[tuple[int, PageDraft]]:
        """Return pages of some rows, each with the number of the owner of its column."""
        ...


def page_builder(version: FileVersion) -> Callable[[Field], PageBuilder]:
    """Return what makes the builder of a column in a file of some version.

    Raises:
        UnsupportedError: such files are not written.
    """
    found = _BUILDERS.get(version)
    if found is None:
        raise UnsupportedError(
            f"data files of version {version} cannot be written; versions"
            f" {', '.join(map(str, _BUILDERS))} can"
        )
    return found


class _LeafOptions(NamedTuple):
    """The encoding options of a leaf, and the state kept between its pages."""

    options: FieldOptions
    coder: TextCoder


def _leaf_options(owners: tuple[Field, ...], top: Field) -> list[_LeafOptions]:
    return [_LeafOptions(options_of(owner, top), TextCoder()) for owner in owners]


def _stored(field: Field, array: pa.Array) -> pa.Array:
    """Return the values of a leaf as they are stored."""
    return text_as_json(array) if field.is_json else array


class _LeafPages:
    """Pages of the leaves of a column, for 2.1 and 2.2."""

    def __init__(self, field: Field, *, version: FileVersion) -> None:
        self._field = field
        self._leaves = _leaves(field, version)
        self._grammar = choose.V2_1 if version == V2_1 else choose.V2_2
        self.owners = self._leaves.owners

    @cached_property
    def _choices(self) -> list[choose.Choice]:
        """The choices of each leaf, with what its pages so far have taught."""
        return [
            choose.Choice(wanted, self._grammar, TextCoder()) for wanted in self._leaves.options
        ]

    def build(self, array: pa.Array) -> Iterable[tuple[int, PageDraft]]:
        """Return the pages of every leaf."""
        leaves = self._leaves
        if leaves.is_plain and len(array) <= MOST_VALUES and not pa.types.is_struct(array.type):
            is_new = self._grammar.has_constants
            draft = small_page(array, kind_of(array.type), leaves.options[0], is_new=is_new)
            if draft is not None:
                return [(0, draft)]
        return self._shredded(array)

    def _shredded(self, array: pa.Array) -> Iterator[tuple[int, PageDraft]]:
        for number, leaf in enumerate(shred(self._field, array)):
            _refuse_hollow(leaf)
            rows = len(array) * self._leaves.factors[number]
            for draft in self._pages(leaf, rows, self._choices[number]):
                yield number, draft

    def _pages(self, leaf: Shredded, rows: int, choice: choose.Choice) -> Iterator[PageDraft]:
        if leaf.field.is_blob and not leaf.field.is_blob_v2:
            yield build_blobs(leaf, rows)
            return
        if leaf.field.is_json:
            leaf = leaf._replace(values=_stored(leaf.field, leaf.values))
        yield from choose.build_pages(leaf, rows, choice)


def _refuse_hollow(leaf: Shredded) -> None:
    """Refuse what a struct without fields cannot tell: that it is null, or how many a list has."""
    if leaf.field.logical_type != "struct" or leaf.field.children or leaf.field.is_blob:
        return
    if leaf.rep is not None or (leaf.def_ is not None and leaf.def_.any()):
        raise InputError(
            f"struct column {leaf.field.name!r} has no fields, and is null or in a list, which the "
            "format cannot store; leave the column out or give it a field"
        )


class _Leaves(NamedTuple):
    """What is known about the leaves of a column before its first page."""

    owners: tuple[Field, ...]
    options: tuple[FieldOptions, ...]
    factors: tuple[int, ...]
    """How many values each has per row."""
    is_plain: bool
    """True for a single leaf of plain values."""


@lru_cache(maxsize=4096)
def _leaves(field: Field, version: FileVersion) -> _Leaves:
    _check_blobs(field, version)
    _check_fixed_sizes(field, version)
    owners = tuple(column_owners(field, version))
    options = tuple(options_of(owner, field) for owner in owners)
    factors = tuple(leaf.factor for leaf in leaves_of(field))
    is_plain = not (field.children or field.is_blob or field.is_json)
    return _Leaves(owners, options, factors, is_plain)


def _check_blobs(field: Field, version: FileVersion) -> None:
    """Refuse blobs of a generation that the version does not have."""
    for part in field.walk():
        if part.is_blob and part.is_blob_v2 != (version == V2_2):
            raise SchemaError(
                f"blob column {part.name!r} is of the {'second' if part.is_blob_v2 else 'first'}"
                f" generation, which files of version {version} do not hold"
            )


def _check_fixed_sizes(field: Field, version: FileVersion, *, is_in_list: bool = False) -> None:
    """Refuse lists of fixed size of structs, and values without bytes, where they have no place."""
    text = field.logical_type
    is_fixed = bool(field.children) and text.startswith("fixed_size_list:")
    if (is_fixed or text == "fixed_size_binary:0") and version != V2_2:
        raise SchemaError(
            f"column {field.name!r} has type {text}, which needs a table of file version 2.2; this"
            f" one has {version}"
        )
    if is_fixed:
        inside = [part for child in field.children for part in child.walk()]
        if is_in_list or text.endswith(":0") or any(_is_list(part) for part in inside):
            raise SchemaError(
                f"column {field.name!r} has type {text}: lists of fixed size of structs cannot be"
                " empty, nor inside lists or around lists or blobs; use a list of structs"
            )
    for child in field.children:
        _check_fixed_sizes(child, version, is_in_list=is_in_list or field.logical_type in LISTS)


def _is_list(field: Field) -> bool:
    return field.logical_type in LISTS or field.is_blob


class _NodePages:
    """Pages of all nodes of a column, for 2.0."""

    __slots__ = ("_field", "_options", "owners")

    def __init__(self, field: Field) -> None:
        build20.check_storable(field)
        self._field = field
        self.owners = tuple(column_owners(field, V2_0))
        options = _leaf_options(self.owners, field)
        self._options = {one.id: each for one, each in zip(self.owners, options, strict=True)}

    def build(self, array: pa.Array) -> Iterable[tuple[int, PageDraft]]:
        """Return one page per node."""
        return enumerate(build20.build_pages(self._field, array, _stored, self._options_of))

    def _options_of(self, field: Field) -> tuple[FieldOptions, TextCoder]:
        return self._options[field.id]


_BUILDERS: dict[FileVersion, Callable[[Field], PageBuilder]] = {
    V2_0: _NodePages,
    V2_1: partial(_LeafPages, version=V2_1),
    V2_2: partial(_LeafPages, version=V2_2),
}


def text_as_json(array: pa.Array) -> pa.Array:
    """Return JSON texts in their stored form.

    Raises:
        InputError: a text is no JSON document.
    """
    stored = [None if text is None else encode_jsonb(text) for text in array.to_pylist()]
    return pa.array(stored, pa.large_binary())
