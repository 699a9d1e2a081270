"""Repeat the work of a change on the latest version after a conflict.

The commit itself goes on top of compatible versions. After a conflict that is marked
as retryable the work is repeated until the time or the attempts of the options are used up. The
same holds for a change whose version was removed by a cleanup while it was read.
"""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from lancetable.commit.committer import commit
from lancetable.commit.leases import writing
from lancetable.commit.loop.newer_versions import check_follows
from lancetable.commit.loop.rounds import LOG
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Operation
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, FileNotFoundInStoreError
from lancetable.format.manifest.flags import check_writable
from lancetable.operations.cleanup.automatic import clean_if_due
from lancetable.operations.results import Done, WriteResult

R = TypeVar("R")
_LONGEST_PAUSE = 1.0


def repeat(snapshot: Snapshot, attempt: Callable[[Snapshot], R], options: CommitOptions) -> R:
    """Return what an attempt gives; on a conflict to repeat, try again on the latest version.

    A result with ``attempts`` counts failed attempts too. The new version is
    followed by a cleanup when the config of the table requests one.

    Raises:
        ConflictError: the conflict cannot be solved by doing the work again, or it never ended, or
            the table was removed and made again.
        UnsupportedError: the table needs something of its writers that is not known.
    """
    check_writable(snapshot.manifest.reader_flags, snapshot.manifest.writer_flags)
    with writing(snapshot.store, snapshot.version):
        done = _repeated(snapshot, attempt, options)
    made = getattr(done, "snapshot", done)
    if isinstance(made, Snapshot) and made.version != snapshot.version and not options.detached:
        clean_if_due(made)
    return done


def write_version(
    snapshot: Snapshot,
    describe: Callable[[Snapshot], Operation],
    options: CommitOptions,
    rows: Callable[[Snapshot, Snapshot], int] = lambda before, after: 0,
) -> Done[WriteResult]:
    """Commit an operation without new files.

    ``describe`` returns the operation for the version that it is applied to, ``rows`` the number of
    rows of the result, given the versions before and after it.

    Raises:
        CommitError: it did not become a version.
    """

    def attempt(latest: Snapshot) -> Done[WriteResult]:
        made = commit(latest, describe(latest), options)
        count = rows(latest, made.snapshot)
        return Done(made.snapshot, WriteResult(made.snapshot.version, count, made.attempts))

    return repeat(snapshot, attempt, options)


def _repeated(snapshot: Snapshot, attempt: Callable[[Snapshot], R], options: CommitOptions) -> R:
    started = time.monotonic()
    pause = 0.0
    for vain in count():
        try:
            return _counted(attempt(snapshot), vain)
        except (ConflictError, FileNotFoundInStoreError) as cause:
            used = time.monotonic() - started
            is_last = options.attempts is not None and vain + 1 >= options.attempts
            is_over = is_last or used > options.deadline_seconds
            if is_over or not _is_passing(cause, snapshot):
                raise
            LOG.info("%s: the work is done again: %s", snapshot.store.root, cause)
            pause = min(max(2 * pause, used / 2), _LONGEST_PAUSE)
        time.sleep(random.uniform(0.0, pause))  # noqa: S311 - no secret
        before, snapshot = snapshot, load(snapshot.location, branch=snapshot.branch)
        check_follows(snapshot, before)
    raise AssertionError("unreachable: an attempt returns or raises")


def _counted(done: R, vain: int) -> R:
    result: Any = getattr(done, "result", None)
    if not vain or not hasattr(result, "attempts"):
        return done
    outcome: Any = done
    counted: R = outcome._replace(result=replace(result, attempts=result.attempts + vain))
    return counted


def _is_passing(cause: ConflictError | FileNotFoundInStoreError, snapshot: Snapshot) -> bool:
    """Say whether the same work on the latest version makes sense."""
    if isinstance(cause, ConflictError):
        return cause.retryable
    # Files that are missing belonged to a version that was removed by a cleanup meanwhile, or to a
    # table that was removed.
    if not snapshot.store.exists(snapshot.manifest_path):
        return True
    check_follows(snapshot, snapshot)
    return False
