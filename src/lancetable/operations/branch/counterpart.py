"""Match the fragments of two histories by the data files they share.

Names of data files are random, so two fragments with the same file hold the same rows at the same
offsets. A change of a branch can be made on its parent only where the parent still has the rows as
the branch knew them.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import ConflictError, UnsupportedError
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import Fragment, InlineSequence
from lancetable.format.manifest.rowids import decode_row_ids, encode_row_ids
from lancetable.fragment.deletions import load_deletions
from lancetable.operations.branch.copy_files import origin_name

Ids = npt.NDArray[np.uint64]


class Counterparts:
    """The fragments of a target, found by those of a source."""

    def __init__(self, source: Snapshot, target: Snapshot) -> None:
        self.source = source
        self.target = target
        self._source = {one.id: one for one in source.manifest.fragments}
        self._target = {
            origin_name(file.path): fragment
            for fragment in target.manifest.fragments
            for file in fragment.files
        }

    def of(self, id_: int) -> Fragment:
        """Return the target's fragment for one of the source, with the same values.

        Raises:
            ConflictError: the target has no such fragment, or other values in it.
        """
        mine = self._source[id_]
        names = (origin_name(file.path) for file in mine.files)
        found = {one.id: one for name in names if (one := self._target.get(name)) is not None}
        if len(found) != 1:
            raise ConflictError(
                f"fragment {id_} of the branch is not there any more: its rows were moved or "
                "removed after the branch began"
            )
        (theirs,) = found.values()
        if _values(mine) != _values(theirs):
            raise ConflictError(
                f"values of fragment {id_} were changed after the branch began, which the branch "
                "did not know of"
            )
        return theirs

    def check_complete(self) -> None:
        """Return quietly when both sides have the same fragments.

        Raises:
            ConflictError: the target has rows that the source knows nothing of, or lacks some.
        """
        known = {self.of(id_).id for id_ in self._source}
        others = [one.id for one in self.target.manifest.fragments if one.id not in known]
        if others:
            raise ConflictError(
                f"rows were added after the branch began, in fragment {others[0]}, for which the "
                "branch has no values"
            )

    def taken(self, after: Mapping[int, Fragment | None]) -> dict[int, Offsets]:
        """Return the rows that fragments of the source lost, by the target's fragments.

        ``after`` holds the fragments as they became, ``None`` when nothing was left.

        Raises:
            ConflictError: a row is gone in the target already.
        """
        found = {}
        for id_, fragment in after.items():
            before = self._source[id_]
            gone = _deleted(self.source, before)
            rows = np.arange(before.physical_rows)
            if fragment is not None:
                rows = _deleted(self.source, fragment)
            lost = np.setdiff1d(rows, gone)
            theirs = self.of(id_)
            if np.intersect1d(_deleted(self.target, theirs), lost).size:
                raise ConflictError(
                    f"a row of fragment {id_} was deleted or changed after the branch began, and "
                    "on the branch as well"
                )
            found[theirs.id] = lost
        return found

    def renamed_ids(self, sequence: InlineSequence, origins: list[int]) -> InlineSequence:
        """Return row ids of rows moved from some fragments as the target numbers them."""
        moved = decode_row_ids(sequence.data)
        mine = np.concatenate([_ids(self._source[id_]) for id_ in origins])
        theirs = np.concatenate([_ids(self.of(id_)) for id_ in origins])
        order = np.argsort(mine, kind="stable")
        place = order[np.minimum(np.searchsorted(mine[order], moved), len(mine) - 1)]
        if not np.array_equal(mine[place], moved):
            raise ConflictError("the origin of moved rows on the branch is unknown")
        return InlineSequence(encode_row_ids(theirs[place]))


def _values(fragment: Fragment) -> set[tuple[str, tuple[int, ...]]]:
    """Return what names the values of a fragment, wherever its files are."""
    return {(origin_name(file.path), file.fields) for file in fragment.files}


def _deleted(snapshot: Snapshot, fragment: Fragment) -> Offsets:
    file = fragment.deletion_file
    if file is None:
        return np.empty(0, np.int64)
    return load_deletions(snapshot, fragment, file, fragment.physical_rows).offsets


def _ids(fragment: Fragment) -> Ids:
    if not isinstance(fragment.row_ids, InlineSequence):
        raise UnsupportedError(
            f"the row ids of fragment {fragment.id} are kept outside the manifest, where this "
            "release does not look for them"
        )
    return decode_row_ids(fragment.row_ids.data, fragment.physical_rows)
