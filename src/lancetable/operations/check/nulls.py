"""Find nulls in columns that must have none.

Whether a null counts depends on the schema and on the deleted rows of a version, so the rows of a
fragment are looked at again unless its data files are known to have no such null at all.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lancetable.commit.snapshot import Snapshot, shown
from lancetable.errors import CorruptError
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_field
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import Projection, live_ids
from lancetable.fragment.reader import FragmentReader
from lancetable.operations.check.files import WINDOW_BYTES
from lancetable.operations.check.journal import Memory
from lancetable.operations.check.model import Fault
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
