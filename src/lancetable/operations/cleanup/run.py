"""Cleanup: remove old versions, and the files that no version needs.

1. Plan (:mod:`.plan`).
2. Wait a moment when versions that go were replaced just now. A commit under way may not know
   their followers yet; were their names free, it would take one of them for the next version.
3. Remove the manifests of versions that go, oldest first: from then on no reader finds them, and a
   version that can be listed can always be read, wherever a crash strikes.
4. Look at tags, branches and leases once more. A writer names a version first and
   then looks for the manifest, so that one of the two notices the other: a version that was named
   while its manifest went gets its manifest back.
5. Look at versions once more; the files of those that came, or whose manifests the store did not
   let go, stay.
6. Remove the other files. What a crash leaves of them is named by no version, and goes with a
   later cleanup by its age.

Ages and leases are judged by the clock of the store, not by that of this machine.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from lancetable.commit.leases import active_leases, store_time
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import ExistsError, FileNotFoundInStoreError, LanceTableError
from lancetable.fragment.write.progress import Progress
from lancetable.operations.cleanup.options import (
    Amount,
    CleanupOptions,
    CleanupResult,
    RemovedVersion,
)
from lancetable.operations.cleanup.plan import CleanupPlan, Doomed, plan_cleanup
from lancetable.operations.cleanup.retention import (
    lines_of,
    manifests_of,
    named_versions,
    open_version,
)
from lancetable.operations.run.runner import Runner, Threads
from lancetable.store import spread
from lancetable.store.copy import real_root, remove_if_empty

SETTLE_SECONDS = 2.0
"""Longer than it takes from looking for newer versions to claiming the next one."""

HELD_BYTES = 64 * 1024 * 1024
"""How many bytes of manifests are held while they are removed."""

CHUNK = 64
MANY = Threads(16)
"""A removal is all waiting: for the journal of a disk, or for the answer of a server."""


def cleanup(
    snapshot: Snapshot,
    options: CleanupOptions,
    *,
    dry_run: bool = False,
    runner: Runner = MANY,
) -> CleanupResult:
    """Remove what a table does not need any more, or report what would be removed.

    Raises:
        CorruptError: a version cannot be read, so the files it needs are unknown.
        InputError: versions are named that must stay, or a clone is not there.
    """
    if dry_run:
        plan = plan_cleanup(snapshot, options, time.time())
        return _result(plan, plan.doomed(), (), is_dry_run=True)
    started, now = time.monotonic(), store_time(snapshot.location.open())
    plan = plan_cleanup(snapshot, options, now)
    work = _Work(options, runner, len(plan.doomed()))
    if plan.manifests:
        waited = now + time.monotonic() - started - plan.replaced_at
        time.sleep(min(max(SETTLE_SECONDS - waited, 0.0), SETTLE_SECONDS))
    manifests = _without_manifests(plan, work, now)
    files = _still_unneeded(plan, manifests)
    gone = work.remove(files)
    for line, folder in {(one.line, one.path.rpartition("/")[0]) for one in files}:
        if folder.count("/"):
            remove_if_empty(line.store, folder)
    return _result(plan, [*manifests, *gone], tuple(work.failed), is_dry_run=False)


def _without_manifests(plan: CleanupPlan, work: "_Work", now: float) -> list[Doomed]:
    """Remove the manifests of versions that go, and return those that are gone."""
    removed: list[Doomed] = []
    unnamed = _unnamed(plan, plan.manifests, now)
    while unnamed:
        group, unnamed = _group(unnamed), unnamed[len(_group(unnamed)) :]
        contents = dict(zip(group, _contents(group), strict=True))
        gone = work.remove(group)
        still = set(_unnamed(plan, gone, now))
        for one in gone:
            if one not in still and (content := contents[one]) is not None:
                with contextlib.suppress(ExistsError):
                    one.line.store.put_if_absent(one.path, content)
        removed += [one for one in gone if one in still]
    return removed


def _group(manifests: Sequence[Doomed]) -> Sequence[Doomed]:
    """Return the first manifests, as many as may be held in memory at once."""
    total = 0
    for number, one in enumerate(manifests):
        total += one.size
        if number and total > HELD_BYTES:
            return manifests[:number]
    return manifests


def _contents(manifests: Sequence[Doomed]) -> list[bytes | None]:
    """Return the bytes of manifests, so that they can be put back."""

    def content(one: Doomed) -> bytes | None:
        try:
            return one.line.store.read(one.path)
        except FileNotFoundInStoreError:
            return None

    return spread(content, manifests, manifests[0].line.store.width)


def _unnamed(plan: CleanupPlan, manifests: Sequence[Doomed], now: float) -> list[Doomed]:
    """Return the manifests of versions without a tag, a branch or a lease."""
    location = plan.snapshot.location
    lines = {one.line for one in manifests}
    names = {line: named_versions(location, line.branch) for line in lines}
    leases = {line: active_leases(line.store, now) for line in lines}
    return [
        one
        for one in manifests
        if one.version is not None
        and one.version not in names[one.line]
        and not any(lease.covers(one.version) for lease in leases[one.line])
    ]


def _still_unneeded(plan: CleanupPlan, gone: Sequence[Doomed]) -> list[Doomed]:
    """Return the files to remove, without those of versions that stayed or came meanwhile."""
    location = plan.snapshot.location
    roots = {line: real_root(line.store) for line in {one.line for one in plan.doomed()}}
    removed = {f"{roots[one.line]}/{one.path}" for one in gone}
    for line in lines_of(location):
        root = real_root(line.store)
        for one in manifests_of(line.store):
            place = f"{root}/{one.info.path}"
            if place not in removed and place not in plan.needed.files:
                plan.needed.add_version(open_version(line, location, one.info))
    return [one for one in plan.files if not plan.needed.holds(roots[one.line], one.path)]


class _Work:
    """Files being removed, at a pace."""

    def __init__(self, options: CleanupOptions, runner: Runner, total: int) -> None:
        self.options, self.runner, self.total = options, runner, total
        self.done = 0
        self.failed: list[str] = []
        self.started = time.monotonic()

    def remove(self, doomed: Sequence[Doomed]) -> list[Doomed]:
        """Remove files, and return those that are gone."""
        kept: set[Doomed] = set()
        for failed in self.runner.map(remove_files, self._chunks(doomed)):
            kept.update(failed)
            self.failed.extend(one.path for one in failed)
            if self.options.progress is not None:
                self.options.progress(Progress(min(self.done, self.total), self.total, "files"))
        return [one for one in doomed if one not in kept]

    def _chunks(self, doomed: Iterable[Doomed]) -> Iterator[tuple[Doomed, ...]]:
        waiting = iter(doomed)
        pace = self.options.files_per_second
        size = CHUNK if pace is None else max(min(CHUNK, int(pace / 10)), 1)
        while chunk := tuple(islice(waiting, size)):
            if pace is not None:
                time.sleep(max(self.started + self.done / pace - time.monotonic(), 0.0))
            self.done += len(chunk)
            yield chunk


def remove_files(doomed: tuple[Doomed, ...]) -> list[Doomed]:
    """Remove some files; return those that the store did not let go."""
    failed = []
    for one in doomed:
        try:
            one.line.store.delete(one.path)
        except LanceTableError:
            failed.append(one)
    return failed


def _result(
    plan: CleanupPlan, gone: Iterable[Doomed], failed: tuple[str, ...], *, is_dry_run: bool
) -> CleanupResult:
    sizes: dict[str, list[int]] = {}
    versions = []
    for one in gone:
        sizes.setdefault(one.kind, []).append(one.size)
        if one.version is not None:
            versions.append(RemovedVersion(one.line.branch, one.version))
    removed = {kind: Amount(len(each), sum(each)) for kind, each in sizes.items()}
    return CleanupResult(
        is_dry_run,
        tuple(versions),
        tuple(plan.kept),
        dict(sorted(removed.items())),
        dict(sorted(plan.young.items())),
        failed,
    )
