"""Map the wanted columns to the data files of a fragment.

A field belongs to a file when the file lists the ids of its leaves. Writers differ in whether they
list the parents too, so only these fields decide: fields without children, and structs stored in
a single column (packed structs, blobs of the second generation).

Thousands of fragments share a few shapes (lists of ids per file), so the answer is worked out
once per shape and kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from lancetable.format.encoding.compiled_range import Tests
from lancetable.format.manifest.model import DataFile
from lancetable.format.schema.model import Field

ROW_ADDRESS = "_rowaddr"
ROW_ID = "_rowid"
ROW_OFFSET = "_rowoffset"
CREATED_AT = "_row_created_at_version"
LAST_UPDATED_AT = "_row_last_updated_at_version"
SYSTEM_COLUMNS = (ROW_ID, ROW_ADDRESS, ROW_OFFSET, CREATED_AT, LAST_UPDATED_AT)

TOMBSTONE = -2
SPILLED_IDS: Mapping[str, int] = {ROW_ID: -3, CREATED_AT: -4, LAST_UPDATED_AT: -5}
"""Field ids under which a data file may hold a system column."""


class Part(NamedTuple):
    """The part of one field that one file holds."""

    file: int
    field: Field


class Mixed(NamedTuple):
    """A field that no single file holds completely; without parts it is null everywhere."""

    slot: int
    field: Field
    parts: tuple[Part, ...]


class FileFields(NamedTuple):
    """Complete fields to read from one file, and the slots of the projection they fill."""

    file: int
    fields: tuple[Field, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FragmentPlan:
    """The plan for filling the slots of a projection from the files of one shape of fragment."""

    reads: tuple[FileFields, ...]
    mixed: tuple[Mixed, ...]
    single_file: int | None
    """The only file needed, when it holds every field completely and in order."""


Shape: TypeAlias = tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...]


class Projection:
    """The columns to read of each fragment: fields of the schema, then system columns."""

    __slots__ = ("_plans", "fields", "system")

    def __init__(self, fields: Sequence[Field], system: Sequence[str] = ()) -> None:
        self.fields = tuple(fields)
        self.system = tuple(system)
        self._plans: dict[Shape, FragmentPlan] = {}

    def __len__(self) -> int:
        return len(self.fields) + len(self.system)

    def plan(self, files: Sequence[DataFile]) -> FragmentPlan:
        """Return the plan for a fragment with these files."""
        shape: Shape = tuple([(file.fields, file.column_indices, file.major) for file in files])
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plans[shape] = plan_fragment(
                self.fields, [live_ids(file) for file in files]
            )
        return plan


def live_ids(file: DataFile) -> frozenset[int]:
    """Return the ids a data file really holds; negative ones are no fields of the schema."""
    return frozenset([id_ for id_ in file.fields if id_ >= 0])


def plan_fragment(fields: Sequence[Field], files: Sequence[frozenset[int]]) -> FragmentPlan:
    """Decide for every field which file to read it from."""
    complete: dict[int, tuple[list[Field], list[int]]] = {}
    mixed: list[Mixed] = []
    for slot, field in enumerate(fields):
        parts = _parts(field, files)
        if len(parts) == 1 and parts[0].field is field:
            of_file, slots = complete.setdefault(parts[0].file, ([], []))
            of_file.append(field)
            slots.append(slot)
        else:
            mixed.append(Mixed(slot, field, parts))
    reads = tuple(
        [
            FileFields(file, tuple(of_file), tuple(slots))
            for file, (of_file, slots) in sorted(complete.items())
        ]
    )
    single = reads[0].file if len(reads) == 1 and not mixed else None
    return FragmentPlan(reads, tuple(mixed), single)


def _parts(field: Field, files: Sequence[frozenset[int]]) -> tuple[Part, ...]:
    # Old writers left an id in two files; like the reference reader we believe the first.
    for number, ids in enumerate(files):
        if prune(field, ids) is field:
            return (Part(number, field),)
    parts = []
    for number, ids in enumerate(files):
        pruned = prune(field, ids)
        if pruned is not None:
            parts.append(Part(number, pruned))
    return tuple(parts)


def prune(field: Field, ids: frozenset[int]) -> Field | None:
    """Return the part of a field whose leaves have these ids: itself when nothing is missing."""
    if not field.children:
        return field if field.id in ids else None
    if is_single_column(field):
        return field if any(part.id in ids for part in field.walk()) else None
    children = [(child, prune(child, ids)) for child in field.children]
    kept = tuple(pruned for _, pruned in children if pruned is not None)
    if not kept:
        # Files of 2.0 have lists of fixed size of structs in one column.
        is_whole = field.id in ids and field.logical_type.startswith("fixed_size_list:")
        return field if is_whole else None
    if all(pruned is child for child, pruned in children):
        return field
    return field._replace(children=kept)


def is_single_column(field: Field) -> bool:
    """Return whether the field's own id stands for all of its values."""
    return not field.children or field.is_packed or field.is_blob_v2


class ColumnTests(NamedTuple):
    """Comparisons of one column, which the projection names."""

    column: Projection
    tests: Tests
