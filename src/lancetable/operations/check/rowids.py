"""Check that every live row of a version has a row id of its own."""

import numpy as np

from lancetable.commit.snapshot import Snapshot, shown
from lancetable.errors import LanceTableError
from lancetable.format.manifest.flags import Feature
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
