"""Repeat the work of a change on the latest version after a conflict, and clean up after a commit.

The commit itself goes on top of compatible versions. After a conflict that is marked
as retryable the work is repeated until the time or the attempts of the options are used up. The
same holds for a change whose version was removed by a cleanup while it was read.

A cleanup follows a commit when the config of the table requests one:

===================================  ===========================================================
key of the config                    meaning
===================================  ===========================================================
``lance.auto_cleanup.interval``      clean up after every version whose number it divides
``lance.auto_cleanup.older_than``    versions of this age go, such as ``14days`` or ``1h 30m``
``lance.auto_cleanup.retain_versions``  at least this many of the newest versions stay
===================================  ===========================================================

Without ``older_than`` versions of 14 days go, unless ``retain_versions`` is given, which then
decides alone. Tags, branches, leases and the latest version are respected as by every cleanup. The
commit is done already, so a cleanup that fails is logged and raises nothing.
"""

import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, TypeVar

from lancetable.commit.committer import commit
from lancetable.commit.leases import writing
from lancetable.commit.loop.newer_versions import check_follows
from lancetable.commit.options import LOG, CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Operation
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, FileNotFoundInStoreError, InputError
from lancetable.format.manifest.flags import check_writable
from lancetable.operations.cleanup.options import CleanupOptions
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
            done = attempt(snapshot)
            return _counted(done, vain) if vain else done
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
    if not hasattr(result, "attempts"):
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


INTERVAL = "lance.auto_cleanup.interval"
OLDER_THAN = "lance.auto_cleanup.older_than"
RETAIN_VERSIONS = "lance.auto_cleanup.retain_versions"

_LOG = logging.getLogger(__name__)
_PART = re.compile(r"\s*([0-9]+)\s*([A-Za-zµ]+)")
_SECONDS = {
    "ns nsec": 1e-9,
    "us µs usec": 1e-6,
    "ms msec": 1e-3,
    "s sec secs second seconds": 1.0,
    "m min mins minute minutes": 60.0,
    "h hr hrs hour hours": 3600.0,
    "d day days": 86_400.0,
    "w week weeks": 7 * 86_400.0,
    "M month months": 30.44 * 86_400.0,
    "y year years": 365.25 * 86_400.0,
}
_UNITS = {name: seconds for names, seconds in _SECONDS.items() for name in names.split()}


def clean_if_due(snapshot: Snapshot) -> None:
    """Clean up after a version was made, if its config and its number say so."""
    config = snapshot.manifest.config
    if not config or INTERVAL not in config:
        return
    from lancetable.operations.cleanup.run import cleanup  # noqa: PLC0415 - seldom needed

    try:
        if snapshot.version % _count(config, INTERVAL):
            return
        cleanup(snapshot, automatic_options(config))
    except Exception as cause:
        # The version is there, so that no error may pass for a failure of the change.
        _LOG.warning(
            "%s: the automatic cleanup after version %d failed: %s",
            snapshot.store.root,
            snapshot.version,
            cause,
        )


def automatic_options(config: Mapping[str, str]) -> CleanupOptions:
    """Return the cleanup that a config requests.

    Raises:
        InputError: a value is not understood.
    """
    retained = _count(config, RETAIN_VERSIONS) if RETAIN_VERSIONS in config else 1
    if OLDER_THAN in config:
        return CleanupOptions(older_than=duration(config[OLDER_THAN]), keep_last=retained)
    if RETAIN_VERSIONS in config:
        return CleanupOptions(older_than=timedelta(0), keep_last=retained)
    return CleanupOptions()


def duration(text: str) -> timedelta:
    """Return a duration written as numbers with units, such as ``2days`` or ``1h 30m``.

    Raises:
        InputError: the text is not a duration.
    """
    seconds, end = 0.0, 0
    while match := _PART.match(text, end):
        count, unit = match.groups()
        if unit not in _UNITS:
            break
        seconds, end = seconds + int(count) * _UNITS[unit], match.end()
    if not end or text[end:].strip():
        raise InputError(f"{text!r} is not a duration; write it like '14days' or '1h 30m'")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max


def _count(config: Mapping[str, str], key: str) -> int:
    text = config[key].strip()
    if not (text.isascii() and text.isdigit()) or not int(text[:18]):
        raise InputError(f"{key} is {text[:40]!r}; expected a whole number from 1")
    return int(text[:18])
