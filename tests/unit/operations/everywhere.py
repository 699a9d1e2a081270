"""Lets a change fail at each of its store calls in turn, and looks at what it leaves behind."""

import lancetable
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import StoreError, UnknownOutcomeError
from tests.unit.operations.faults import FaultyStore


def fail_everywhere(table, change):
    """Run a change until it succeeds, one store call further each time; return the failures.

    A failure that is proven leaves the files as they were. After an unknown outcome every file is
    still there, since a version may name it.
    """
    snapshot = table._snapshot
    failures: list[Exception] = []
    for fail_at in range(1, 500):
        before = _files(snapshot)
        store = FaultyStore(snapshot.store, fail_at)
        faulty = Snapshot(snapshot.location, store, snapshot.manifest, snapshot.manifest_path)
        try:
            change(faulty)
        except UnknownOutcomeError as error:
            failures.append(error)
            assert before < _files(snapshot)
        except StoreError as error:
            failures.append(error)
            assert _files(snapshot) == before
        else:
            return failures
        assert lancetable.open_table(table.uri).version == snapshot.version
    raise AssertionError("the change never succeeded")


def _files(snapshot):
    return {entry.path for entry in snapshot.store.list("")}
