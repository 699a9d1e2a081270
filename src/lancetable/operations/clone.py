"""Clone: a new table that begins with a version of another.

1. A deep clone copies every file of the version. A shallow one copies none and refers to the
   files of its source, so it lives only as long as they do.
2. The first manifest is made, with the number of the version it was made of.
"""

from dataclasses import dataclass

from lancetable.commit.branch.branching import begin, clone_of
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import listed
from lancetable.errors import ExistsError
from lancetable.format.manifest.codec import live_rows
from lancetable.operations.branch.copy_files import all_journeys, bring
from lancetable.operations.results import Done, VersionResult
from lancetable.operations.run.runner import THREADS, Runner, own_files
from lancetable.store import TableLocation
from lancetable.store.copy import copy_object


@dataclass(frozen=True, slots=True)
class CloneResult(VersionResult):
    """Result of a clone."""

    rows: int | None
    files: int = 0
    """How many files were copied; none for a shallow clone."""


def reaching(location: TableLocation, source: Snapshot) -> TableLocation:
    """Return the location of a shallow clone, allowed to lead to the files of its source.

    Opening the clone later requires allowing them by name, unless they are in the same store.
    """
    return location.allowing(source.store.root, *(base.path for base in source.manifest.base_paths))


def clone(
    source: Snapshot, location: TableLocation, *, deep: bool = False, runner: Runner = THREADS
) -> Done[CloneResult]:
    """Make a table elsewhere out of a version.

    Raises:
        ExistsError: there is a table.
        InputError: the version cannot be cloned.
        FileNotFoundInStoreError: a file of the version is missing.
    """
    target = location.open()
    if listed(target):
        raise ExistsError(f"{target.root}: there is a table already; choose an empty place")
    operation = clone_of(source, is_shallow=not deep)
    with own_files(target) as files:
        if deep:
            files.extend(bring(all_journeys(source), target, copy_object, runner))
        try:
            made = begin(source, target, operation, location)
        except ExistsError:
            # Another may have cloned the same version, and needs files of the same names.
            files.clear()
            raise
    return Done(made, CloneResult(made.version, live_rows(made.manifest), len(files)))
