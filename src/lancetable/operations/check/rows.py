"""Check the rows of a version: nulls where none are allowed, and ids that two of them share.

Whether a null counts depends on the schema and on the deleted rows of a version, so the rows of a
fragment are read again unless its data files are known to have no such null at all.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.commit.apply.derived_fields import shared_ids
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.errors import CorruptError, LanceTableError
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.manifest.flags import Feature
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_field
from lancetable.fragment.deletions import load_deletions, write_deletions
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import ROW_ID, Projection, live_ids
from lancetable.fragment.reader import FragmentReader
from lancetable.fragment.readers import Readers
from lancetable.operations.check.files import WINDOW_BYTES
from lancetable.operations.check.journal import Memory
from lancetable.operations.check.model import Fault, Level
from lancetable.scan.nulls import forbidden_nulls, has_required
from lancetable.scan.plan import windows
from lancetable.scan.row_size import guess

NULLS = "nulls"
NO_NULLS = "no nulls"


def data_key(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> tuple[object, ...]:
    """Return what identifies the content of a data file.

    Raises:
        LanceTableError: its place is not known, or not allowed.
    """
    store, path = snapshot.data_file_place(file)
    return ("data", store.root, path, file._replace(base_id=None), fragment.physical_rows)


def note_no_nulls(snapshot: Snapshot, fragment: Fragment, file: DataFile, memory: Memory) -> None:
    """Remember that a data file has no null where the schema allows none."""
    key = _no_nulls_key(snapshot, fragment, file)
    if key is not None:
        memory.learn(key, None)


def _no_nulls_key(
    snapshot: Snapshot, fragment: Fragment, file: DataFile
) -> tuple[object, ...] | None:
    """Return what identifies a file and its columns without nulls; ``None`` if it has none."""
    required = {part.id for part in snapshot.manifest.schema.walk() if not part.nullable}
    held = sorted(required & live_ids(file))
    return (NO_NULLS, *data_key(snapshot, fragment, file), *held) if held else None


def null_faults(
    snapshot: Snapshot, fragment: Fragment, files: DataFiles, memory: Memory
) -> Iterator[Fault]:
    """Yield a fault for each column with nulls of a fragment whose files can be read."""
    opened = OpenFragment(fragment, files)
    for field in snapshot.manifest.schema.fields:
        if field.is_in_blob_dataset or not has_required(arrow_field(field)):
            continue
        ids = {part.id for part in field.walk()}
        holders = [file for file in fragment.files if ids & live_ids(file)]
        if _are_known(snapshot, fragment, field, holders, memory):
            continue
        key = (
            *(NULLS, field.id, tuple(part.id for part in field.walk() if not part.nullable)),
            *(data_key(snapshot, fragment, file) for file in holders),
            *(fragment.id, fragment.deletion_file, fragment.physical_rows),
        )
        found = memory.look(key, lambda field=field: _look(opened, field))  # type: ignore[misc]
        if found is not None:
            store, path = snapshot.store, snapshot.manifest_path
            if holders:
                store, path = snapshot.data_file_place(holders[0])
            yield Fault(NULLS, shown(store, path), found[0], fragment.id, None, found[1])


def _are_known(
    snapshot: Snapshot,
    fragment: Fragment,
    field: Field,
    holders: Sequence[DataFile],
    memory: Memory,
) -> bool:
    """Say whether the files of a column hold all of it and are known to have no nulls."""
    required = {part.id for part in field.walk() if not part.nullable}
    keys = [_no_nulls_key(snapshot, fragment, file) for file in holders]
    is_complete = required <= frozenset().union(*map(live_ids, holders))
    return is_complete and all(key is None or memory.knows(key) for key in keys)


def _look(opened: OpenFragment, field: Field) -> None:
    """Read the live rows of a column.

    Raises:
        CorruptError: some are null where the schema allows none.
    """
    counts: dict[str, int] = {}
    first: dict[str, int] = {}
    reader = FragmentReader(opened, lambda: 0)
    projection, declared = Projection([field]), arrow_field(field)
    step = guess((projection,), [opened.fragment]).rows(WINDOW_BYTES)
    for window in windows(0, 0, opened.rows, step):
        offsets = reader.live_offsets(window.start, window.stop)
        (chunks,) = reader.read_live(projection, window.start, window.stop)
        position = 0
        for chunk in chunks:
            for path, values in forbidden_nulls(declared, chunk, field.name):
                place = pc.index(values.is_null(), pa.scalar(value=True)).as_py()
                first.setdefault(path, int(offsets[position + place]))
                counts[path] = counts.get(path, 0) + values.null_count
            position += len(chunk)
    if counts:
        raise CorruptError(
            "; ".join(_said(path, counts[path], first[path], opened) for path in counts)
        )


def _said(path: str, count: int, first: int, opened: OpenFragment) -> str:
    return (
        f"column {path!r} holds {count} {'null' if count == 1 else 'nulls'}, the first in row "
        f"{first} of fragment {opened.fragment.id}, but the schema declares it not nullable; "
        f"set_nullable({path!r}, nullable=True) corrects the schema"
    )


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
