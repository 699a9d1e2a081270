"""Rebase an operation on a version that another writer made meanwhile.

Rows that both writers deleted from one fragment are merged: the new deletion file holds the rows of
the current one and the rows of this operation. A row that both deleted cannot be merged, since one
of them may have moved it elsewhere.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from lancetable.commit.apply.derived_fields import (
    files_of,
    find_fragments,
    fragment_ids,
    shared_ids,
)
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Delete, Merge, Operation, Update
from lancetable.errors import ConflictError
from lancetable.format.manifest import DeletionKind, Fragment, Manifest
from lancetable.format.manifest.names import deletion_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt


class Rows(Protocol):
    """Rows of one fragment: an array, or a value that can be converted to one."""

    def __len__(self) -> int: ...

    def __array__(self) -> "npt.NDArray[np.generic]": ...


@dataclass(frozen=True, slots=True)
class Rebase:
    """An operation that fits the current version."""

    operation: Operation
    written: tuple[str, ...] = ()
    """Files that were written for it."""
    superseded: tuple[str, ...] = ()
    """Files of the original operation that are no longer needed."""


def merge_deletions(
    tip: Snapshot,
    operation: Operation,
    fragment_ids: frozenset[int],
    affected: "Mapping[int, Rows]",
) -> Rebase:
    """Return the operation with the deleted rows of some fragments merged with the current ones.

    Raises:
        ConflictError: a row was deleted by both sides.
        StoreError: the store failed; no file stays behind.
    """
    if not fragment_ids or not isinstance(operation, Delete | Update):
        return Rebase(operation)
    current = find_fragments(tip.manifest, fragment_ids)
    updated: list[Fragment] = []
    emptied: list[int] = []
    written: list[str] = []
    superseded: list[str] = []
    try:
        for fragment in operation.updated_fragments:
            if fragment.id not in fragment_ids:
                updated.append(fragment)
                continue
            now = current[fragment.id]
            own = fragment.deletion_file
            if own is not None and len(affected[fragment.id]) and own != now.deletion_file:
                superseded.append(deletion_path(fragment.id, own))
            merged = _merged(tip, now, affected[fragment.id], written)
            if merged is None:
                emptied.append(fragment.id)
            else:
                updated.append(merged)
    except BaseException:
        for path in written:
            tip.store.delete(path)
        raise
    made = _with(operation, tuple(updated), tuple(emptied))
    return Rebase(made, tuple(written), tuple(superseded))


def _with(
    operation: Delete | Update, updated: tuple[Fragment, ...], emptied: tuple[int, ...]
) -> Delete | Update:
    if isinstance(operation, Delete):
        return replace(
            operation,
            updated_fragments=updated,
            deleted_fragment_ids=(*operation.deleted_fragment_ids, *emptied),
        )
    return replace(
        operation,
        updated_fragments=updated,
        removed_fragment_ids=(*operation.removed_fragment_ids, *emptied),
    )


def _merged(
    tip: Snapshot, current: Fragment, affected: Rows, written: list[str]
) -> Fragment | None:
    """Return the current fragment without the affected rows, ``None`` when no row is left."""
    import numpy as np  # noqa: PLC0415 - most commits merge nothing

    from lancetable.fragment.deletions import load_deletions, write_deletions  # noqa: PLC0415

    rows = np.unique(np.asarray(affected, np.int64))
    if current.deletion_file is not None:
        gone = load_deletions(tip, current, current.deletion_file, current.physical_rows).offsets
        if np.intersect1d(gone, rows, assume_unique=True).size:
            raise ConflictError(
                f"another writer deleted or moved the same rows of fragment {current.id}; do the "
                "work again",
                retryable=True,
            )
        rows = np.union1d(gone, rows)
    if current.physical_rows and rows.size == current.physical_rows:
        return None
    made = write_deletions(
        tip.store, current, rows, read_version=tip.version, kind=DeletionKind.BITMAP
    )
    written.append(made.path)
    return current._replace(deletion_file=made.file)


def check_same_fragments(base: Manifest, tip: Manifest, operation: Operation) -> None:
    """Check that the ids in an operation name the same fragments in a later version.

    Raises:
        ConflictError: they may not, so the work has to be repeated on the later version.
    """
    if base.version == tip.version:
        return
    ids = fragment_ids(base) if isinstance(operation, Merge) else operation.touched.all
    if not ids or not (shared_ids(base) or shared_ids(tip)):
        return
    before = files_of(find_fragments(base, ids).values())
    after = files_of(find_fragments(tip, ids).values())
    found = next(
        (id_ for id_ in ids if not before.get(id_, frozenset()) & after.get(id_, frozenset())), None
    )
    if found is not None:
        raise ConflictError(
            f"fragment {found} of version {base.version} may be another one in version "
            f"{tip.version}, because fragments share ids there; do the work again, or let "
            "repair_table give each fragment its own id",
            retryable=True,
        )
