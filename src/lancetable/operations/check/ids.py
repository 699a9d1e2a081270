"""Check that fragments, and live rows with stable ids, do not share an id."""

from collections.abc import Iterator, Sequence

import numpy as np

from lancetable.commit.apply.fragment_ids import shared_ids
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.errors import LanceTableError
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.flags import Feature
from lancetable.fragment.deletions import load_deletions, write_deletions
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import ROW_ID
from lancetable.fragment.readers import Readers
from lancetable.operations.check.model import Fault, Level

SHARED = "rows share their ids with other live rows"
NOT_GIVEN_OUT = "ids are in use that would be given out next"
_STABLE = int(Feature.STABLE_ROW_IDS)


def row_id_faults(snapshot: Snapshot, level: Level) -> list[Fault]:
    """Look for row ids that two live rows share, or that are not given out yet."""
    if not snapshot.manifest.reader_flags & _STABLE or level < Level.FILES:
        return []
    path = shown(snapshot.store, snapshot.manifest_path)
    readers = Readers(snapshot)
    seen, owners = [], []
    for position in range(len(readers)):
        try:
            opened = readers[position].opened
            ids = opened.sequence(ROW_ID)
            gone = opened.deletions
        except LanceTableError:
            continue  # reported with the fragment
        if ids is None:
            continue
        live = ids if gone is None else np.delete(ids, gone.offsets)
        seen.append(live)
        owners.append(np.full(len(live), opened.fragment.id, np.int64))
    if not seen:
        return []
    ids, fragments = np.concatenate(seen), np.concatenate(owners)
    order = np.argsort(ids, kind="stable")
    is_double = np.zeros(len(ids), np.bool_)
    is_double[order[1:]] = ids[order[1:]] == ids[order[:-1]]
    beyond = ids >= snapshot.manifest.next_row_id
    return [
        Fault("row ids", path, message, id_)
        for message, chosen in ((SHARED, is_double), (NOT_GIVEN_OUT, beyond))
        for id_ in np.unique(fragments[chosen]).tolist()
    ]


FRAGMENT_IDS = "fragment ids"


def id_faults(snapshot: Snapshot) -> Iterator[Fault]:
    """Yield a fault for each id that fragments of a version share."""
    path = shown(snapshot.store, snapshot.manifest_path)
    for id_ in sorted(shared_ids(snapshot.manifest)):
        yield Fault(FRAGMENT_IDS, path, f"more than one fragment has the id {id_}")


def with_own_deletions(
    snapshot: Snapshot, fragments: Sequence[Fragment], written: list[str]
) -> list[Fragment]:
    """Return fragments whose deletion files are named by their ids, copied where they were not.

    The paths of new files are added to ``written``.

    Raises:
        CorruptError: a deletion file is damaged.
        StoreError: the store failed.
    """
    files = DataFiles(snapshot)
    found = []
    for fragment in fragments:
        deletion = fragment.deletion_file
        if deletion is None or deletion.fragment_id is None:
            found.append(fragment)
            continue
        rows = OpenFragment(fragment, files).rows
        gone = load_deletions(snapshot, fragment, deletion, rows).offsets
        made = write_deletions(snapshot.store, fragment, gone, read_version=snapshot.version)
        written.append(made.path)
        found.append(fragment._replace(deletion_file=made.file))
    return found
