"""Check: examine a table at a chosen level, and report what is wrong.

1. The names: hint, tags, branches (:mod:`.names`).
2. Every version: its manifest, and what it names (:mod:`.version`); a file that many versions share
   is looked at once.
3. Of the latest version also what holds for all of its rows: each row id once, index coverage.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lancetable.commit.snapshot import Snapshot, shown
from lancetable.errors import CorruptError, LanceTableError, TableNotFoundError
from lancetable.fragment.write.progress import Progress, ProgressCallback
from lancetable.operations.check.journal import Journal, Memory
from lancetable.operations.check.model import (
    DAMAGE,
    CheckResult,
    Fault,
    Level,
    Problem,
)
from lancetable.operations.check.names import hint_problems, readable_lines, tag_problems
from lancetable.operations.check.rows import row_id_faults
from lancetable.operations.check.version import faults_of, look_ahead
from lancetable.operations.cleanup.retention import Line, Numbered, manifests_of, open_version
from lancetable.operations.index.describe import describe_indices
from lancetable.operations.run.runner import Runner
from lancetable.store import TableLocation

_FILES = ("data", "deletion", "index")


@dataclass(slots=True)
class _Found:
    """One fault, and everybody who meets it."""

    fault: Fault
    branch: str | None
    versions: list[int] = field(default_factory=list)
    fragments: set[int] = field(default_factory=set)


def check(  # noqa: PLR0913 - each has a default
    location: TableLocation,
    *,
    level: Level,
    branch: str | None = None,
    all_versions: bool = True,
    journal: str | None = None,
    progress: ProgressCallback | None = None,
    runner: Runner | None = None,
) -> CheckResult:
    """Look for damage; nothing is changed.

    A ``journal`` is a file in which a long check notes what it has looked at, to go on from there.
    With a ``runner`` its workers look at the data files.

    Raises:
        TableNotFoundError: there is no table.
    """
    lines, problems = readable_lines(location)
    problems.extend(tag_problems(location, lines))
    line = next((one for one in lines if one.branch == branch), None)
    if line is None:
        raise TableNotFoundError(f"{location.uri} has no branch {branch!r}")
    try:
        numbered = manifests_of(line.store)
    except CorruptError as error:
        path = shown(line.store, "_versions")
        consequence = "the table cannot be opened"
        problems.append(Problem("manifest", path, str(error), consequence, branch))
        return CheckResult(level, None, 0, 0, tuple(problems))
    if not numbered:
        raise TableNotFoundError(f"there is no table at {line.store.root}: it has no manifest")
    problems.extend(hint_problems(line, numbered))
    look = _Look(location, line, numbered, memory_of(level, journal))
    try:
        if runner is not None:
            look_ahead(look.readable(all_versions=all_versions), look.memory, runner)
        look.run(all_versions=all_versions, progress=progress)
    finally:
        if look.memory.journal is not None:
            look.memory.journal.save()
    problems.extend(look.problems())
    files = sum(key[0] in _FILES for key in look.memory.found)
    return CheckResult(
        level,
        None if look.latest is None else look.latest.version,
        look.count,
        files,
        tuple(sorted(problems, key=lambda one: (one.kind, one.path))),
        {} if look.latest is None else _coverage(look.latest),
    )


def memory_of(level: Level, journal: str | None) -> Memory:
    """Return what is known at the beginning of a check."""
    return Memory(level, journal=Journal.open(journal, int(level)) if journal else None)


@dataclass(slots=True)
class _Look:
    """A walk over the versions of a line, the newest first."""

    location: TableLocation
    line: Line
    numbered: Sequence[Numbered]
    memory: Memory
    latest: Snapshot | None = None
    count: int = 0
    found: dict[tuple[str, str, str], _Found] = field(default_factory=dict)

    def run(self, *, all_versions: bool, progress: ProgressCallback | None) -> None:
        chosen = self._chosen()
        for number, one in enumerate(chosen):
            snapshot = self._opened(one)
            if snapshot is not None:
                if self.latest is None and not one.is_detached:
                    self.latest = snapshot
                    self._note(one, row_id_faults(snapshot, self.memory.level))
                self._note(one, faults_of(snapshot, self.memory))
            self.count += 1
            if progress is not None:
                progress(Progress(number + 1, len(chosen), "versions"))
            if not all_versions and self.latest is not None:
                return

    def readable(self, *, all_versions: bool) -> Iterator[Snapshot]:
        """Yield the versions that can be opened; the walk itself reports the others."""
        for one in self._chosen():
            try:
                yield open_version(self.line, self.location, one.info)
            except LanceTableError:
                continue
            if not all_versions:
                return

    def _chosen(self) -> list[Numbered]:
        return sorted(self.numbered, key=lambda one: (one.is_detached, -one.info.version))

    def _opened(self, one: Numbered) -> Snapshot | None:
        try:
            snapshot = open_version(self.line, self.location, one.info)
        except LanceTableError as error:
            cause = error.__cause__ if isinstance(error.__cause__, LanceTableError) else error
            message = getattr(cause, "message", str(cause))
            fault = Fault("manifest", shown(self.line.store, one.info.path), message)
            self._note(one, [fault._replace(is_damage=isinstance(cause, DAMAGE))])
            return None
        if snapshot.version != one.info.version:
            message = (
                f"the name says version {one.info.version}, the content version {snapshot.version}"
            )
            self._note(one, [Fault("manifest", shown(self.line.store, one.info.path), message)])
            return None
        return snapshot

    def _note(self, one: Numbered, faults: Iterable[Fault]) -> None:
        for fault in faults:
            key = (fault.kind, fault.path, fault.message)
            noted = self.found.setdefault(key, _Found(fault, self.line.branch))
            if one.info.version not in noted.versions:
                noted.versions.append(one.info.version)
            if fault.fragment is not None:
                noted.fragments.add(fault.fragment)

    def problems(self) -> list[Problem]:
        """Return what was found, with what follows from it."""
        newest = max(one.info.version for one in self.numbered if not one.is_detached)
        return [self._problem(found, newest) for found in self.found.values()]

    def _problem(self, found: _Found, newest: int) -> Problem:
        fault = found.fault
        versions = tuple(sorted(found.versions))
        shown_versions = _ranges(versions)
        if newest in versions:
            shown_versions += ", the latest among them," if len(versions) > 1 else ", the latest,"
        fragments = ", ".join(map(str, sorted(found.fragments)))
        consequence = _CONSEQUENCES[fault.kind].format(
            versions=shown_versions, fragments=fragments or "all"
        )
        if fault.kind == "manifest" and newest in versions and self.latest is not None:
            consequence += f"; a repair goes back to version {self.latest.version}"
        if not fault.is_damage:
            consequence = f"it could not be checked: {consequence}"
        return Problem(
            fault.kind,
            fault.path,
            fault.message,
            consequence,
            found.branch,
            versions,
            tuple(sorted(found.fragments)),
            fault.is_damage,
        )


_CONSEQUENCES = {
    "manifest": "version {versions} cannot be opened",
    "transaction": "the changes of version {versions} are unknown; its rows are not affected",
    "fragment ids": (
        "other readers take rows of these fragments for each other in version {versions}; "
        "repair_table gives each fragment its own id"
    ),
    "data": "rows of fragment {fragments} cannot be read in version {versions}",
    "nulls": "reading these columns of fragment {fragments} is refused in version {versions}",
    "deletion": (
        "which rows of fragment {fragments} are deleted is not known, so that it cannot be read in "
        "version {versions}"
    ),
    "row ids": "rows of fragment {fragments} cannot be found by their ids in version {versions}",
    "blobs": "columns of the blob dataset cannot be read completely in version {versions}",
    "index rows": (
        "predicates on the column of the index give other rows in version {versions}; repair_table "
        "drops the segment"
    ),
    "index": "the index cannot be used in version {versions}; searches look at the rows instead",
}


def _ranges(versions: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for version in versions:
        if parts and version == parts[-1][1] + 1:
            parts[-1][1] = version
        else:
            parts.append([version, version])
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in parts)


def _coverage(snapshot: Snapshot) -> dict[str, float]:
    try:
        found = [one for one in describe_indices(snapshot).values() if not one.is_system]
    except LanceTableError:
        return {}
    shares = {}
    for one in found:
        rows = one.rows_covered + one.rows_uncovered
        shares[one.name] = one.rows_covered / rows if rows else 1.0
    return dict(sorted(shares.items()))
