"""Repair: make a version without what is broken, from the newest one that can be opened.

1. Go back to the newest version whose manifest can be read. What later ones changed is lost.
2. Look at what it names. A fragment with a broken data file goes, with its rows; so does one whose
   deletion file is broken, unless deleted rows may come back. Rows whose ids are broken get new
   ones. Broken index segments go; searches look at the rows instead.
3. The plan lists all of that before anything is changed.
4. Commit it as a restored version, under a number that no version had. Only new files are written.

A repair that was stopped has changed nothing, or is done; it can be planned again at any time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from lancetable.commit.apply import coverage, lineage
from lancetable.commit.apply.derived_fields import Stamp, finished
from lancetable.commit.publish import publish, this_writer
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.commit.transaction import COMMIT_MESSAGE, Restore, Transaction
from lancetable.commit.versions import read_hint
from lancetable.errors import (
    ConflictError,
    CorruptError,
    TableNotFoundError,
    UnsupportedError,
)
from lancetable.format.manifest import Fragment, IndexSegment, Manifest
from lancetable.format.manifest.flags import Feature, check_writable
from lancetable.format.manifest.names import transaction_name
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import ROW_ID
from lancetable.operations.check.model import Fault, Level
from lancetable.operations.check.names import readable_lines
from lancetable.operations.check.rows import (
    FRAGMENT_IDS,
    NOT_GIVEN_OUT,
    NULLS,
    row_id_faults,
    with_own_deletions,
)
from lancetable.operations.check.run import memory_of
from lancetable.operations.check.version import faults_of, look_ahead
from lancetable.operations.cleanup.retention import Line, Numbered, manifests_of, open_version
from lancetable.operations.run.runner import Runner, own_files
from lancetable.store import TableLocation

_FARTHEST_HINT = 1000
_STABLE = int(Feature.STABLE_ROW_IDS)


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the repaired version will not have, and because of which file."""

    kind: str
    """One of version, rows, deletions, row ids, fragment ids, index."""
    path: str
    what: str
    fragment: int | None = None
    rows: int | None = None
    """Number of rows that go, come back or change their ids; ``None`` when unknown."""


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The version that a repair made, and what it does not have."""

    version: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Planned repair; :meth:`execute` carries it out."""

    base: Snapshot
    """The newest version that can be opened."""
    version: int
    """The number of the version to make."""
    losses: tuple[Loss, ...]
    fragments: tuple[Fragment, ...]
    segments: tuple[IndexSegment, ...]
    seen: frozenset[str]
    """The manifests that there were."""
    unchecked: tuple[Fault, ...] = ()
    """What could not be looked at, such as a file that the store failed to give; it is kept."""
    kept: tuple[Fault, ...] = ()
    """Nulls where the schema allows none: a change of the schema makes them readable."""

    @property
    def is_needed(self) -> bool:
        """False when nothing is broken."""
        return bool(self.losses)

    @property
    def lost_rows(self) -> int:
        """Number of rows of the base that are lost."""
        return sum(one.rows or 0 for one in self.losses if one.kind == "rows")

    def explain(self) -> str:
        """Return the plan in words."""
        lines = [f"version {self.base.version} is sound as far as it was looked at"]
        if self.is_needed:
            lines = [f"version {self.version}, made of version {self.base.version} without:"]
            lines += [f"  {one.kind}: {one.what} ({one.path})" for one in self.losses]
        for title, faults in (
            ("not checked, and therefore kept:", self.unchecked),
            ("not repaired, as no row is lost by it:", self.kept),
        ):
            if faults:
                lines.append(title)
                lines += [f"  {one.kind}: {one.message} ({one.path})" for one in faults]
        return "\n".join(lines)

    def execute(self, *, message: str | None = None) -> RepairResult:
        """Commit the version; without anything broken there is none.

        Raises:
            ConflictError: the table has other versions than when the repair was planned.
            UnknownOutcomeError: the store failed, and the version may or may not be there.
        """
        if not self.is_needed:
            return RepairResult(self.base.version, ())
        store = self.base.store
        if _places(manifests_of(store)) != self.seen:
            raise _changed(self.base)
        text = message or f"repair of version {self.base.version}, {self.lost_rows} rows lost"
        restored = Restore(self.base.version)
        transaction = Transaction(self.version - 1, str(uuid4()), restored, {COMMIT_MESSAGE: text})
        name = transaction_name(transaction.read_version, transaction.uuid)
        with own_files(store) as written:
            manifest = self._manifest(name, written)
            made = publish(store, manifest, self.segments, transaction, self.base.scheme)
            if made is None:
                raise _changed(self.base)
        return RepairResult(self.version, self.losses)

    def _manifest(self, transaction_file: str, written: list[str]) -> Manifest:
        base = self.base.manifest
        fragments = with_own_deletions(self.base, self.fragments, written)
        fragments.sort(key=lambda one: one.id)
        next_row_id = base.next_row_id
        if any(_is_unnumbered(one, base) for one in fragments):
            next_row_id = max(next_row_id, _largest_id(self.base, fragments) + 1)
            fresh = [one for one in fragments if _is_unnumbered(one, base)]
            numbered, next_row_id = lineage.number_new(fresh, next_row_id, self.version)
            known = {one.id: one for one in numbered}
            fragments = [known.get(one.id, one) for one in fragments]
        elif any(one.kind == "row ids" for one in self.losses):
            next_row_id = max(next_row_id, _largest_id(self.base, fragments) + 1)
        made = base._replace(fragments=tuple(fragments), next_row_id=next_row_id)
        now = datetime.now(UTC)
        stamp = Stamp(self.version, now, this_writer(), transaction_file, base.branch)
        return finished(base, made, self.segments, stamp)


def plan_repair(
    location: TableLocation,
    *,
    level: Level,
    branch: str | None = None,
    revive: bool = False,
    journal: str | None = None,
    runner: Runner | None = None,
) -> RepairPlan:
    """Find out what is broken, and what a version without it would lose; nothing is changed.

    With ``revive`` rows come back whose deletion file is broken; otherwise their fragments go.
    With a ``runner`` its workers look at the data files.

    Raises:
        CorruptError: no version can be opened at all.
        TableNotFoundError: there is no table.
        UnsupportedError: the table needs something of its writers that is not known.
    """
    lines, _ = readable_lines(location)
    line = next((one for one in lines if one.branch == branch), None)
    numbered = [] if line is None else manifests_of(line.store)
    if line is None or not numbered:
        raise TableNotFoundError(f"there is no table at {location.uri} to be repaired")
    base, losses = _newest(location, line, numbered)
    check_writable(base.manifest.reader_flags, base.manifest.writer_flags)
    if any(one.dictionary is not None for one in base.manifest.schema.walk()):
        raise UnsupportedError(
            f"{line.store.root}: tables of version 0.1 are read-only; copy what can be read"
        )
    memory = memory_of(level, journal)
    if runner is not None:
        look_ahead([base], memory, runner)
    faults = [*faults_of(base, memory), *row_id_faults(base, level)]
    if memory.journal is not None:
        memory.journal.save()
    damage = [fault for fault in faults if fault.is_damage]
    losses.extend(
        Loss(FRAGMENT_IDS, fault.path, f"{fault.message}; the others get new ids", rows=0)
        for fault in damage
        if fault.kind == FRAGMENT_IDS
    )
    fragments = _mended(base, damage, losses, revive=revive)
    _check_blobs_found(base, fragments)
    segments = _kept_segments(base, damage, losses, fragments)
    history = [one.info.version for one in numbered if not one.is_detached]
    return RepairPlan(
        base,
        _next_version(line, max(history)),
        tuple(losses),
        tuple(fragments),
        segments,
        _places(numbered),
        tuple(fault for fault in faults if not fault.is_damage),
        tuple(fault for fault in damage if fault.kind == NULLS),
    )


def _newest(
    location: TableLocation, line: Line, numbered: Sequence[Numbered]
) -> tuple[Snapshot, list[Loss]]:
    """Return the newest version that can be opened, and those after it, which are lost."""
    losses = []
    history = sorted((one for one in numbered if not one.is_detached), reverse=True)
    newest, hinted = history[0].info.version if history else 0, read_hint(line.store) or 0
    if newest < hinted <= newest + _FARTHEST_HINT:
        span = str(hinted) if hinted == newest + 1 else f"{newest + 1} to {hinted}"
        what = f"what version {span} changed: no manifest is there"
        losses.append(Loss("version", shown(line.store, "_versions"), what))
    for one in history:
        try:
            snapshot = open_version(line, location, one.info)
            if snapshot.version != one.info.version:
                raise CorruptError(f"the content is version {snapshot.version}")  # noqa: TRY301
            list(snapshot.manifest.fragments)
        except CorruptError:
            # A store that fails, or a later release's format, proves nothing: such errors pass.
            path = shown(line.store, one.info.path)
            losses.append(Loss("version", path, f"what version {one.info.version} changed"))
            continue
        return snapshot, losses
    raise CorruptError(
        "no version of the table can be opened, so there is nothing to build on",
        path=shown(line.store, "_versions"),
    )


def _mended(
    base: Snapshot, damage: Sequence[Fault], losses: list[Loss], *, revive: bool
) -> list[Fragment]:
    """Return the fragments without what is broken, noting what is lost."""
    by_fragment: dict[int, list[Fault]] = {}
    for fault in damage:
        if fault.fragment is not None:
            by_fragment.setdefault(fault.fragment, []).append(fault)
    mended = []
    for fragment in base.manifest.fragments:
        faults = by_fragment.get(fragment.id, [])
        kept = _without(fragment, faults, losses, revive=revive) if faults else fragment
        if kept is not None:
            mended.append(kept)
    return mended


def _without(
    fragment: Fragment, faults: Sequence[Fault], losses: list[Loss], *, revive: bool
) -> Fragment | None:
    rows = fragment.live_rows
    fatal = [one for one in faults if one.kind == "data"]
    fatal += [one for one in faults if one.kind == "deletion" and not revive]
    if fatal:
        what = f"all {'' if rows is None else f'{rows} '}rows of fragment {fragment.id}"
        reasons = "; ".join(dict.fromkeys(one.message for one in fatal))
        losses.append(Loss("rows", fatal[0].path, f"{what}: {reasons}", fragment.id, rows))
        return None
    for fault in faults:
        if fault.kind == "deletion" and fragment.deletion_file is not None:
            gone = fragment.deletion_file.deleted_rows or None
            what = f"{gone or 'the'} deleted rows of fragment {fragment.id} come back"
            losses.append(Loss("deletions", fault.path, what, fragment.id, gone))
            fragment = fragment._replace(deletion_file=None)
    return _renumbered(fragment, [one for one in faults if one.kind == "row ids"], losses)


def _renumbered(fragment: Fragment, faults: Sequence[Fault], losses: list[Loss]) -> Fragment:
    """Return a fragment without the sequences that are broken."""
    for fault in faults:
        rows = fragment.physical_rows or None
        if fault.message == NOT_GIVEN_OUT:
            what = f"rows of fragment {fragment.id} keep their ids; new rows get larger ones"
            losses.append(Loss("row ids", fault.path, what, fragment.id, 0))
        elif fault.message.startswith("_row_"):
            what = f"when rows of fragment {fragment.id} came or changed: {fault.message}"
            losses.append(Loss("row ids", fault.path, what, fragment.id, rows))
            fragment = fragment._replace(created_at=None, last_updated_at=None)
        elif fragment.row_ids is not None:
            what = f"the ids of {rows or 'all'} rows of fragment {fragment.id}: {fault.message}"
            losses.append(Loss("row ids", fault.path, what, fragment.id, rows))
            fragment = fragment._replace(row_ids=None)
    return fragment


def _check_blobs_found(base: Snapshot, fragments: Sequence[Fragment]) -> None:
    """Refuse to give rows new ids when their blobs are found by the old ones."""
    if base.manifest.blob_dataset_version is not None and any(
        _is_unnumbered(fragment, base.manifest) for fragment in fragments
    ):
        raise UnsupportedError(
            f"{base.store.root}: the row ids of some fragments are damaged, and the blobs of the"
            " table are found by them; read the other columns into a new table"
        )


def _is_unnumbered(fragment: Fragment, manifest: Manifest) -> bool:
    return bool(manifest.reader_flags & _STABLE) and fragment.row_ids is None


def _kept_segments(
    base: Snapshot, damage: Sequence[Fault], losses: list[Loss], fragments: Sequence[Fragment]
) -> tuple[IndexSegment, ...]:
    try:
        segments = base.indices()
    except CorruptError as error:
        path = shown(base.store, base.manifest_path)
        losses.append(Loss("index", path, f"all indices: {error}"))
        return ()
    broken: dict[str, Fault] = {}
    for fault in damage:
        if fault.kind in {"index", "index rows"} and fault.segment is not None:
            broken.setdefault(fault.segment, fault)
    kept = []
    for segment in segments:
        found = broken.get(segment.uuid)
        if found is None:
            kept.append(segment)
        else:
            what = f"a segment of index {segment.name!r}: {found.message}"
            losses.append(Loss("index", found.path, what))
    ids = frozenset(one.id for one in fragments)
    return coverage.retained(kept, base.manifest.schema, lambda: ids)


def _next_version(line: Line, newest: int) -> int:
    """Return a number that no version had, as far as the hint remembers."""
    hinted = read_hint(line.store) or 0
    return (hinted if newest < hinted <= newest + _FARTHEST_HINT else newest) + 1


def _largest_id(snapshot: Snapshot, fragments: Sequence[Fragment]) -> int:
    files, largest = DataFiles(snapshot), -1
    for fragment in fragments:
        ids = OpenFragment(fragment, files).sequence(ROW_ID) if fragment.row_ids else None
        if ids is not None and len(ids):
            largest = max(largest, int(ids.max()))
    return largest


def _places(numbered: Sequence[Numbered]) -> frozenset[str]:
    return frozenset(one.info.path for one in numbered)


def _changed(base: Snapshot) -> ConflictError:
    return ConflictError(
        f"{base.store.root}: the table has other versions than when the repair was planned; plan "
        "it again",
        retryable=True,
    )
