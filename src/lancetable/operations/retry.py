"""When another writer came first: do the work again on what there is now.

The commit itself goes on top of compatible versions. A conflict that is marked as one to repeat
needs the recipe's work anew; that is tried until the time of the options is used up, or their
attempts are. The same goes for a change whose version was cleaned away while it was read.
"""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from lancetable.commit.catchup import check_follows
from lancetable.commit.leases import writing
from lancetable.commit.options import CommitOptions
from lancetable.commit.rounds import LOG
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, FileNotFoundInStoreError
from lancetable.operations.cleanup.automatic import clean_if_due

Done = TypeVar("Done")
_LONGEST_PAUSE = 1.0


def repeat(snapshot: Snapshot, attempt: Callable[[Snapshot], Done], options: CommitOptions) -> Done:
    """Return what an attempt gives; on a conflict to repeat, try again on the latest version.

    A result that tells of attempts counts those that came to nothing too. The new version is
    followed by a cleanup when the config of the table asks for one.

    Raises:
        ConflictError: the conflict cannot be solved by doing the work again, or it never ended, or
            the table was removed and made again.
    """
    with writing(snapshot.store, snapshot.version):
        done = _repeated(snapshot, attempt, options)
    made = getattr(done, "snapshot", done)
    if isinstance(made, Snapshot) and made.version != snapshot.version and not options.detached:
        clean_if_due(made)
    return done


def _repeated(
    snapshot: Snapshot, attempt: Callable[[Snapshot], Done], options: CommitOptions
) -> Done:
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


def _counted(done: Done, vain: int) -> Done:
    result: Any = getattr(done, "result", None)
    if not vain or not hasattr(result, "attempts"):
        return done
    told: Any = done
    counted: Done = told._replace(result=replace(result, attempts=result.attempts + vain))
    return counted


def _is_passing(cause: ConflictError | FileNotFoundInStoreError, snapshot: Snapshot) -> bool:
    """Say whether the same work on the latest version makes sense."""
    if isinstance(cause, ConflictError):
        return cause.retryable
    # Files that are missing belonged to a version that was cleaned away under our hands, or to a
    # table that was removed.
    if not snapshot.store.exists(snapshot.manifest_path):
        return True
    check_follows(snapshot, snapshot)
    return False
