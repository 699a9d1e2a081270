"""Find the columns of a version in older versions.

A feed shows all of its rows with the columns of its last version. From there the columns are
followed back, one version at a time: by field id, which stays when a column is renamed; by name
where the schema was replaced or the column was cast. A column that was not there yet is null;
one that was dropped and came back is another one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.projection import is_single_column, live_ids

_ABSENT = -1000
"""Ids from here downward are in no data file, so that their columns are read as nulls."""


class Link(NamedTuple):
    """A column of the feed, and what it was in one version: ``None`` when it was not there."""

    target: Field
    here: Field | None
    children: tuple["Link", ...] = ()


def links_of(schema: Schema) -> tuple[Link, ...]:
    """Return the columns of the version that they are named after; all may be null."""
    return tuple(_own(_loosened(field), field) for field in schema.fields)


def _own(target: Field, here: Field) -> Link:
    pairs = zip(target.children, here.children, strict=True)
    return Link(target, here, tuple(_own(one, other) for one, other in pairs))


def _loosened(field: Field) -> Field:
    """Return the field with nulls allowed wherever an older row may have none of its values."""
    if field.logical_type == "map":
        return field._replace(nullable=True)
    children = tuple(_loosened(child) for child in field.children)
    return field._replace(nullable=True, children=children)


def earlier(links: Sequence[Link], before: Schema, *, by_name: bool) -> tuple[Link, ...]:
    """Return where the columns were in the version before; ids say nothing with ``by_name``."""
    return tuple(_earlier(link, before.fields, by_name=by_name) for link in links)


def _earlier(link: Link, level: Sequence[Field], *, by_name: bool) -> Link:
    here = link.here
    found = None
    if here is not None:
        same_id = None if by_name else next((one for one in level if one.id == here.id), None)
        found = same_id or next((one for one in level if one.name == here.name), None)
    below = () if found is None else found.children
    children = tuple(_earlier(child, below, by_name=by_name) for child in link.children)
    return Link(link.target, found, children)


def readable(links: Sequence[Link], metadata: Schema) -> Schema:
    """Return the schema under which the rows of that version are read."""
    return Schema(tuple(_readable(link) for link in links), metadata.metadata)


def _readable(link: Link) -> Field:
    target, here = link.target, link.here
    if here is None:
        return _absent(target)
    is_alike = here.logical_type == target.logical_type
    if is_alike and link.children and not is_single_column(here):
        return target._replace(id=here.id, children=tuple(map(_readable, link.children)))
    if is_alike and not here.children:
        return target._replace(id=here.id, dictionary=here.dictionary)
    return here._replace(name=target.name, nullable=True)


def _absent(field: Field) -> Field:
    return field._replace(id=_ABSENT - field.id, children=tuple(map(_absent, field.children)))


def has_other_values(
    before: tuple[Fragment, Sequence[Link]], after: tuple[Fragment, Sequence[Link]]
) -> bool:
    """Say whether columns of the feed have other files in a fragment than they had before."""
    pairs = zip(before[1], after[1], strict=True)
    return any(_is_replaced(before[0], one, after[0], other) for one, other in pairs)


def _is_replaced(before: Fragment, one: Link, after: Fragment, other: Link) -> bool:
    old, new = one.here, other.here
    if old is not None and new is not None:
        if old.id != new.id:
            # A column that was cast holds the same values under another id.
            return False
        if new.children and not is_single_column(new):
            pairs = zip(one.children, other.children, strict=True)
            return any(_is_replaced(before, left, after, right) for left, right in pairs)
    return _holders(before, old) != _holders(after, new)


def have_same_columns(before: Sequence[Link], after: Sequence[Link]) -> bool:
    """Say whether each column of the feed is in both versions or in none of them."""
    return all(
        (one.here is None) == (other.here is None)
        and have_same_columns(one.children, other.children)
        for one, other in zip(before, after, strict=True)
    )


def _holders(fragment: Fragment, field: Field | None) -> list[tuple[str, int]]:
    ids = set() if field is None else {part.id for part in field.walk()}
    return sorted(
        (file.path, -1 if file.base_id is None else file.base_id)
        for file in fragment.files
        if not ids.isdisjoint(live_ids(file))
    )
