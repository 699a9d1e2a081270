"""What does an operation touch: fragments, fields, index names."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from lancetable.commit.transaction import (
    CreateIndex,
    DataReplacement,
    Delete,
    Operation,
    Rewrite,
    Update,
    UpdateConfig,
)
from lancetable.format.manifest import Fragment


@dataclass(frozen=True, slots=True)
class Touched:
    """Which fragments an operation changed in place, and which it removed."""

    updated: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()
    files: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The data files of updated fragments afterwards."""

    @property
    def all(self) -> frozenset[int]:
        """Both kinds."""
        return self.updated | self.removed


def touched(operation: Operation) -> Touched:
    """Return the fragments of the version it read that an operation changed or removed."""
    match operation:
        case Delete(updated, removed, _):
            return _rows(tuple(updated), removed)
        case Update():
            return _rows(tuple(operation.updated_fragments), operation.removed_fragment_ids)
        case Rewrite(groups):
            return Touched(removed=frozenset(one.id for group in groups for one in group[0]))
        case DataReplacement(replacements):
            return Touched(updated=frozenset(one.fragment_id for one in replacements))
        case _:
            return Touched()


def _rows(updated: tuple[Fragment, ...], removed: tuple[int, ...]) -> Touched:
    return Touched(
        frozenset(fragment.id for fragment in updated),
        frozenset(removed),
        {fragment.id: data_files(fragment) for fragment in updated},
    )


def data_files(fragment: Fragment) -> tuple[str, ...]:
    """Return what names the values of a fragment: each file with the columns it still holds."""
    return tuple(sorted(f"{file.path} {file.fields}" for file in fragment.files))


def replaced_fields(operation: DataReplacement) -> frozenset[int]:
    """Return the fields whose values a data replacement replaces."""
    return frozenset(id_ for one in operation.replacements for id_ in one.new_file.fields)


def meets(covered: frozenset[int] | None, ids: Set[int]) -> bool:
    """Say whether an index segment describes any of the fragments; one that does not say may."""
    return bool(ids) if covered is None else not covered.isdisjoint(ids)


def index_names(operation: CreateIndex) -> frozenset[str]:
    """Return the names of all indices that an operation adds to or removes from."""
    segments = (*operation.new_indices, *operation.removed_indices)
    return frozenset(segment.name for segment in segments)


def is_descriptive(operation: UpdateConfig) -> bool:
    """Say whether an update changes the metadata of the schema or of fields."""
    return operation.schema_metadata is not None or bool(operation.field_metadata)
