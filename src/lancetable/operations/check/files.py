"""Check one file: its presence, size, footer, row count and pages."""

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import CorruptError, InputError
from lancetable.file.read.reader import FileReader
from lancetable.format.manifest import DataFile, DeletionKind, Fragment
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_field
from lancetable.fragment.blobs import read_payloads
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import Projection, live_ids, prune
from lancetable.fragment.reader import FragmentReader
from lancetable.scan.nulls import forbidden_nulls
from lancetable.scan.plan import windows
from lancetable.scan.request import MiB
from lancetable.scan.row_size import guess
from lancetable.store import ByteRange, Store

MAGIC = b"LANC"
ARROW_MAGIC = b"ARROW1"
LANCE_ENDINGS = (".lance", ".idx")
WINDOW_BYTES = 16 * MiB


def check_data_file(
    snapshot: Snapshot, fragment: Fragment, file: DataFile, *, is_thorough: bool
) -> bool:
    """Look at one data file of a fragment, with ``is_thorough`` at all of its pages.

    Return whether all pages were read and have no null where the schema allows none.

    Raises:
        FileNotFoundInStoreError: it is not there.
        CorruptError: it is damaged, or does not match the manifest.
        UnsupportedError: it cannot be read by this release.
    """
    store, path = snapshot.data_file_place(file)
    size = store.open(path, size=file.size).size
    if file.size is not None and size != file.size:
        raise CorruptError(f"the file has {size} bytes, the manifest says {file.size}")
    alone = fragment._replace(files=(file,), deletion_file=None)
    opened = OpenFragment(alone, DataFiles(snapshot))
    rows = opened.file(0).rows
    if fragment.physical_rows and rows != fragment.physical_rows:
        raise CorruptError(f"the file has {rows} rows, the manifest says {fragment.physical_rows}")
    return is_thorough and _read_all(snapshot, opened, file)


def _read_all(snapshot: Snapshot, opened: OpenFragment, file: DataFile) -> bool:
    ids = live_ids(file)
    parts = (prune(field, ids) for field in snapshot.manifest.schema.fields)
    fields = [part for part in parts if part is not None]
    reader = FragmentReader(opened, lambda: 0)
    is_free_of_nulls = True
    for field in fields:
        projection = Projection([field])
        shown = arrow_field(field)
        # The recorded size was compared with the file.
        step = guess((projection,), [opened.fragment]).rows(WINDOW_BYTES)
        for window in windows(0, 0, opened.rows, step):
            columns = reader.read(projection, range(window.start, window.stop))
            if sum(len(chunk) for chunk in columns[0]) != window.stop - window.start:
                raise CorruptError(f"column {field.name!r} has another number of rows")
            for chunk in columns[0]:
                chunk.validate()
                is_free_of_nulls &= not any(forbidden_nulls(shown, chunk, field.name))
            _read_blobs(opened, field, columns[0])
    return is_free_of_nulls


def _read_blobs(opened: OpenFragment, field: Field, chunks: list[object]) -> None:
    if not any(part.is_blob for part in field.walk()):
        return
    try:
        read_payloads(opened, field, chunks)
    except InputError:
        return  # a payload outside the table, which is not ours to look at


def check_deletion_file(opened: OpenFragment, store: Store, path: str) -> None:
    """Look at the deletion file of a fragment.

    The offsets precede the footer of an Arrow file, where other readers begin.

    Raises:
        FileNotFoundInStoreError: it is not there.
        CorruptError: it is damaged, or does not fit the fragment.
    """
    content = store.read(path)
    if path.endswith(DeletionKind.ARROW.value) and not content.endswith(ARROW_MAGIC):
        raise CorruptError(f"the file does not end with {ARROW_MAGIC!r}")
    if opened.deletions is None:
        raise AssertionError("the fragment has a deletion file")


def check_index_file(store: Store, path: str, size: int, *, is_thorough: bool) -> None:
    """Look at one file of an index segment.

    Raises:
        FileNotFoundInStoreError: it is not there.
        CorruptError: it is damaged, or its size differs from that in the manifest.
    """
    file = store.open(path)
    if size and file.size != size:
        raise CorruptError(f"the file has {file.size} bytes, the manifest says {size}")
    if not path.endswith(LANCE_ENDINGS):
        return
    if file.size < len(MAGIC):
        raise CorruptError(f"the file has only {file.size} bytes")
    (tail,) = file.read_ranges([ByteRange(file.size - len(MAGIC), file.size)])
    if bytes(tail) != MAGIC:
        raise CorruptError(f"the file does not end with {MAGIC!r}")
    if is_thorough:
        reader = FileReader.open(file, path)
        reader.read(reader.schema.fields, range(reader.rows))
