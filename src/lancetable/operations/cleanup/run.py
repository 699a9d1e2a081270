"""Cleanup: remove old versions, and the files that no version needs.

1. Plan (:mod:`.plan`).
2. Wait a moment when versions that go were replaced just now. A commit under way may not know
   their followers yet; were their names free, it would take one of them for the next version.
3. Remove the manifests of versions that go, oldest first: from then on nobody finds them, and a
   version that can be listed can always be read, wherever a crash strikes.
4. Look at tags, branches and versions once more; what somebody came to need meanwhile stays.
5. Remove the other files. What a crash leaves of them is named by no version, and goes with a
   later cleanup by its age.
"""

import time
from collections.abc import Iterable, Iterator
from itertools import islice

from lancetable.commit.leases import active_leases
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import LanceTableError
from lancetable.operations.cleanup.options import Amount, CleanupOptions, CleanupResult
from lancetable.operations.cleanup.plan import CleanupPlan, Doomed, plan_cleanup
from lancetable.operations.cleanup.retention import (
    lines_of,
    manifests_of,
    named_versions,
    open_version,
)
from lancetable.operations.runner import Runner, Threads
from lancetable.store.links import real_root, remove_if_empty

SETTLE_SECONDS = 2.0
"""Longer than it takes from looking for newer versions to claiming the next one."""

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
    """Remove what a table does not need any more, or tell what that would be.

    Raises:
        CorruptError: a version cannot be read, so that nobody knows what it needs.
        InputError: versions are named that must stay, or a clone is not there.
    """
    plan = plan_cleanup(snapshot, options)
    if dry_run:
        return _result(plan, plan.doomed(), (), is_dry_run=True)
    total = len(plan.doomed())
    work = _Work(options, runner, total)
    if plan.manifests:
        time.sleep(max(min(plan.replaced_at + SETTLE_SECONDS - time.time(), SETTLE_SECONDS), 0.0))
    manifests = _still_unnamed(plan)
    work.remove(manifests)
    files = _still_unneeded(plan, manifests)
    work.remove(files)
    for line, folder in {(one.line, one.path.rpartition("/")[0]) for one in files}:
        if folder.count("/"):
            remove_if_empty(line.store, folder)
    return _result(plan, [*manifests, *files], tuple(work.failed), is_dry_run=False)


def _still_unnamed(plan: CleanupPlan) -> list[Doomed]:
    """Return the manifests to remove, without those that got a tag, branch or lease meanwhile."""
    location, now = plan.snapshot.location, time.time()
    lines = {one.line for one in plan.manifests}
    names = {line: named_versions(location, line.branch) for line in lines}
    leases = {line: active_leases(line.store, now) for line in lines}
    return [
        doomed
        for gone, doomed in zip(plan.removed, plan.manifests, strict=True)
        if gone.version not in names[doomed.line]
        and not any(lease.covers(gone.version) for lease in leases[doomed.line])
    ]


def _still_unneeded(plan: CleanupPlan, gone: list[Doomed]) -> list[Doomed]:
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

    def remove(self, doomed: Iterable[Doomed]) -> None:
        for failed in self.runner.map(remove_files, self._chunks(doomed)):
            self.failed.extend(failed)
            if self.options.progress is not None:
                self.options.progress(min(self.done, self.total), self.total)

    def _chunks(self, doomed: Iterable[Doomed]) -> Iterator[tuple[Doomed, ...]]:
        waiting = iter(doomed)
        pace = self.options.files_per_second
        size = CHUNK if pace is None else max(min(CHUNK, int(pace / 10)), 1)
        while chunk := tuple(islice(waiting, size)):
            if pace is not None:
                time.sleep(max(self.started + self.done / pace - time.monotonic(), 0.0))
            self.done += len(chunk)
            yield chunk


def remove_files(doomed: tuple[Doomed, ...]) -> list[str]:
    """Remove some files; return those that the store did not let go."""
    failed = []
    for line, path, _, _ in doomed:
        try:
            line.store.delete(path)
        except LanceTableError:
            failed.append(path)
    return failed


def _result(
    plan: CleanupPlan, doomed: Iterable[Doomed], failed: tuple[str, ...], *, is_dry_run: bool
) -> CleanupResult:
    sizes: dict[str, list[int]] = {}
    lost = set(failed)
    manifests = set()
    for line, path, kind, size in doomed:
        if path not in lost:
            sizes.setdefault(kind, []).append(size)
            if kind == "manifest":
                manifests.add((line.branch, path))
    removed = {kind: Amount(len(each), sum(each)) for kind, each in sizes.items()}
    versions = [
        gone
        for gone, manifest in zip(plan.removed, plan.manifests, strict=True)
        if (manifest.line.branch, manifest.path) in manifests
    ]
    return CleanupResult(
        is_dry_run,
        tuple(versions),
        tuple(plan.kept),
        dict(sorted(removed.items())),
        dict(sorted(plan.young.items())),
        failed,
    )
