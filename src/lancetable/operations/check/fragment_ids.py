"""Find fragments of a version that share an id, and copy their deletion files to new names."""

from collections.abc import Iterator, Sequence

from lancetable.commit.apply.fragment_ids import shared_ids
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.format.manifest import Fragment
from lancetable.fragment.deletions import load_deletions, write_deletions
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.operations.check.model import Fault

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
