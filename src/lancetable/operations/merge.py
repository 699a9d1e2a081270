"""Merge: change, delete and insert rows by comparing a source with the table on key columns.

1. Keep the rows of the source, in memory or on disk, and find the table's rows with their keys.
2. Decide which clause acts on which row; rows of the source that match nothing may be inserted.
3. Mark the rows that are changed or deleted, and write changed rows, then inserted ones.
4. Commit all of it as one Update that names the inserted keys, so that of two merges that insert
   one key only one lands; the other starts again and finds the key. New columns need a Merge of
   all fragments instead, which no other change of rows can pass either.
Without anything to do no version is made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.commit.committer import commit
from lancetable.commit.finish import next_fragment_id
from lancetable.commit.options import CommitResult
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import KeyFilter, Merge, Update
from lancetable.errors import ConflictError, InputError
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import resolve
from lancetable.fragment.writer import remove_fragments
from lancetable.operations.changes import ChangeOptions, Merged, MergeResult
from lancetable.operations.clauses import Act, BoundClause, Clause, When, bind_clauses
from lancetable.operations.decide import (
    Decided,
    DecideTask,
    decide_inserts,
    decide_part,
)
from lancetable.operations.delete import affected_rows
from lancetable.operations.fit import write_schema, write_type
from lancetable.operations.join import JoinTask, index_keys, join_part
from lancetable.operations.kept import Kept
from lancetable.operations.keys import codes_of, comparable, key_filter, key_hashes
from lancetable.operations.match import Marked, mark_deleted, plan_mark, undo_marks
from lancetable.operations.merge_source import (
    SourcePlan,
    check_keys,
    merged_schema,
    plan_source,
)
from lancetable.operations.merge_write import MergeTask, counts, plan_writes, write_merged
from lancetable.operations.moved import target_of
from lancetable.operations.parts import Offsets, parts
from lancetable.operations.retry import repeat
from lancetable.operations.sources import read_source
from lancetable.operations.steps import own_files, run_steps
from lancetable.operations.write import check_stored, keep_or_remove, table_options

GiB = 1024**3
_BYTES_PER_KEY = 64
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How a merge is made."""

    change: ChangeOptions = field(default_factory=ChangeOptions)
    memory_limit: int = GiB
    """About how many bytes of the source are in memory; more are kept on disk."""
    evolves_schema: bool = False
    """Add the columns of the source that the table lacks."""
    allows_duplicates: bool = False
    """Insert all rows of the source that share a key which the table does not have."""

    def __post_init__(self) -> None:
        if self.memory_limit < 1:
            raise InputError(f"memory_limit is {self.memory_limit}; give a number of bytes from 1")


class _Job(NamedTuple):
    on: tuple[str, ...]
    clauses: tuple[Clause, ...]
    options: MergeOptions
    source: pa.Schema
    plan: SourcePlan
    kept: Kept


def merge(
    snapshot: Snapshot,
    data: object,
    on: Sequence[str],
    clauses: Sequence[Clause],
    options: MergeOptions,
) -> Merged:
    """Merge rows into a table.

    Raises:
        SchemaError: the columns do not fit the table.
        ExpressionError: a condition or a value does not fit the columns.
        InputError: rows of the source share a key, or a value does not fit its column.
        CommitError: nothing was changed.
    """
    if not clauses:
        raise InputError("the merge has no clause; say what to do, e.g. when_matched_update_all()")
    check_keys(snapshot.manifest.schema, on)
    source = read_source(data, write_schema(snapshot.manifest.schema))
    schema = merged_schema(snapshot, source.schema, clauses, evolves=options.evolves_schema)
    planned = plan_source(source.schema, schema, on, clauses)
    bind_clauses(clauses, schema, planned.kept)
    with Kept(planned.kept, options.memory_limit) as kept:
        kept.fill(planned.batches(source))
        job = _Job(tuple(on), tuple(clauses), options, source.schema, planned, kept)
        return repeat(snapshot, lambda latest: _attempt(latest, job), options.change.commit)


class _Decisions(NamedTuple):
    schema: Schema
    clauses: tuple[BoundClause, ...]
    rows: list[Decided]
    inserted: Offsets
    inserted_by: "np.ndarray[tuple[int], np.dtype[np.int16]]"


def _attempt(snapshot: Snapshot, job: _Job) -> Merged:
    decisions = _decide(snapshot, job)
    old = snapshot.manifest.schema
    if not decisions.rows and not len(decisions.inserted) and decisions.schema is old:
        return Merged(snapshot, MergeResult(snapshot.version, casts=job.plan.fit.casts))
    keys = _inserted_keys(snapshot, job, decisions.inserted)
    fragments: list[Fragment] = []
    with own_files(snapshot.store) as files, keep_or_remove(fragments, target_of(snapshot)):
        marked = _mark(snapshot, decisions.rows, job.options.change)
        files.extend(one.path for one in marked if one.path is not None)
        fragments += _write(snapshot, job, decisions)
        if decisions.schema is old:
            made = _commit_update(snapshot, job, marked, fragments, keys)
        else:
            made = _commit_merge(snapshot, job, marked, fragments, decisions.schema)
    updated, deleted = counts(decisions.rows, decisions.clauses)
    return Merged(
        made.snapshot,
        MergeResult(
            made.snapshot.version,
            len(decisions.inserted),
            updated,
            deleted,
            made.attempts,
            job.plan.fit.casts,
        ),
    )


def _decide(snapshot: Snapshot, job: _Job) -> _Decisions:
    options = job.options
    schema = merged_schema(snapshot, job.source, job.clauses, evolves=options.evolves_schema)
    _refuse_retyped(schema, job)
    check_stored(schema, table_options(snapshot.manifest, options.change.write))
    clauses = bind_clauses(job.clauses, schema, job.kept.schema)
    matches = _match(snapshot, job)
    is_matched = np.zeros(job.kept.rows, np.bool_)
    for _, rows in matches.values():
        is_matched[rows] = True
    if any(clause.when is When.MATCHED for clause in clauses):
        _refuse_ambiguous(matches, job)
    decided = _decide_rows(snapshot, matches, clauses, job)
    inserted, by = decide_inserts(clauses, job.kept, np.flatnonzero(~is_matched))
    return _Decisions(schema, clauses, decided, inserted, by)


def _refuse_retyped(schema: Schema, job: _Job) -> None:
    """Check that the kept rows still have the types of the table."""
    known = {one.name: one for one in schema.fields}
    for one in job.plan.fit.schema.fields:
        if one.name not in known or write_type(known[one.name]) != write_type(one):
            raise ConflictError(
                f"another writer retyped or dropped column {one.name!r}; merge again"
            )


def _match(snapshot: Snapshot, job: _Job) -> dict[int, tuple[Offsets, Offsets]]:
    """Return by fragment which rows match which rows of the source."""
    found: dict[int, list[tuple[Offsets, Offsets]]] = {}
    each = max(job.options.memory_limit // _BYTES_PER_KEY, 1)
    for start in range(0, job.kept.rows, each):
        stop = min(start + each, job.kept.rows)
        index = index_keys(_keys(job, start, stop), start)
        tasks = (JoinTask(part, job.on, index) for part in parts(snapshot))
        for pairs in run_steps(job.options.change.runner, join_part, tasks):
            for one in pairs:
                found.setdefault(one.fragment.id, []).append((one.offsets, one.rows))
    matches = {}
    for id_, pieces in found.items():
        offsets = np.concatenate([piece[0] for piece in pieces])
        rows = np.concatenate([piece[1] for piece in pieces])
        if len(pieces) > 1:
            order = np.argsort(offsets, kind="stable")
            offsets, rows = offsets[order], rows[order]
        matches[id_] = (offsets, rows)
    return matches


def _keys(job: _Job, start: int, stop: int) -> list[pa.Array]:
    """Return the keys of a range of the source in comparable form."""
    steps = [_steps(job, name) for name in job.on]
    tops = list(dict.fromkeys(path[0] for path in steps))
    batches = job.kept.range(start, stop, tops)
    return [
        pa.concat_arrays([comparable(_below(batch, path), ".".join(path)) for batch in batches])
        for path in steps
    ]


def _steps(job: _Job, name: str) -> tuple[str, ...]:
    return tuple(one.name for one in resolve(job.plan.fit.schema, name))


def _below(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    array = batch.column(path[0])
    for name in path[1:]:
        array = pc.struct_field(array, [name])
    return array


def _refuse_ambiguous(matches: dict[int, tuple[Offsets, Offsets]], job: _Job) -> None:
    for offsets, rows in matches.values():
        again = np.flatnonzero(offsets[1:] == offsets[:-1])
        if len(again):
            shown = _shown_keys(job, rows[again])
            raise InputError(
                f"several rows of the source match one row of the table, with the keys {shown}; "
                "keep one row for each key"
            )


def _shown_keys(job: _Job, rows: Offsets) -> str:
    keys = [_steps(job, name) for name in job.on]
    batch = job.kept.take(rows[: 4 * _SHOWN], list(dict.fromkeys(path[0] for path in keys)))
    values = zip(*(_below(batch, path).to_pylist() for path in keys), strict=True)
    distinct = list(dict.fromkeys(value[0] if len(keys) == 1 else value for value in values))
    return ", ".join(repr(value) for value in distinct[:_SHOWN])


def _decide_rows(
    snapshot: Snapshot,
    matches: dict[int, tuple[Offsets, Offsets]],
    clauses: tuple[BoundClause, ...],
    job: _Job,
) -> list[Decided]:
    whens = {clause.when for clause in clauses}
    if whens == {When.NOT_MATCHED}:
        return []
    everything = When.NOT_MATCHED_BY_SOURCE in whens

    def tasks() -> Iterator[DecideTask]:
        for part in parts(snapshot):
            ids = [one.id for one in part.manifest.fragments]
            of_part = {id_: matches[id_] for id_ in ids if id_ in matches}
            if of_part or everything:
                yield DecideTask(part, of_part, clauses, job.kept)

    results = run_steps(job.options.change.runner, decide_part, tasks())
    return [one for each in results for one in each]


def _inserted_keys(snapshot: Snapshot, job: _Job, rows: Offsets) -> KeyFilter:
    """Return which keys are inserted.

    Raises:
        InputError: a key is inserted twice.
    """
    ids = check_keys(snapshot.manifest.schema, job.on)
    if not len(rows):
        return key_filter(ids, np.empty(0, np.uint64))
    paths = [_steps(job, name) for name in job.on]
    batch = job.kept.take(rows, list(dict.fromkeys(path[0] for path in paths)))
    columns = [comparable(_below(batch, path), ".".join(path)) for path in paths]
    codes = codes_of(columns)
    valid = np.flatnonzero(codes.is_valid) if codes.is_valid is not None else None
    if valid is not None:
        columns = [column.take(pa.array(valid)) for column in columns]
        rows = rows[valid]
    values = codes.values if valid is None else codes.values[valid]
    if not job.options.allows_duplicates:
        _refuse_duplicates(job, rows, values, columns)
    return key_filter(ids, key_hashes(columns))


def _refuse_duplicates(
    job: _Job,
    rows: Offsets,
    codes: "np.ndarray[tuple[int], np.dtype[np.uint64]]",
    columns: list[pa.Array],
) -> None:
    order = np.argsort(codes, kind="stable")
    same = codes[order][1:] == codes[order][:-1]
    if not same.any():
        return
    suspects = np.unique(np.concatenate([order[:-1][same], order[1:][same]]))
    seen: set[tuple[object, ...]] = set()
    again = []
    parts_ = [column.take(pa.array(suspects)).to_pylist() for column in columns]
    for place, key in zip(suspects.tolist(), zip(*parts_, strict=True), strict=True):
        if key in seen:
            again.append(place)
        seen.add(key)
    if again:
        shown = _shown_keys(job, rows[np.array(again)])
        raise InputError(
            f"several rows of the source would be inserted with one key: {shown}; keep one row "
            "for each key, or allow duplicates"
        )


def _mark(snapshot: Snapshot, decided: list[Decided], options: ChangeOptions) -> list[Marked]:
    rows: dict[int, Offsets] = {}
    for one in decided:
        known = rows.get(one.fragment.id)
        rows[one.fragment.id] = one.offsets if known is None else np.union1d(known, one.offsets)
    results = run_steps(
        options.runner,
        mark_deleted,
        plan_mark(snapshot, rows),
        lambda marked: undo_marks(snapshot, marked),
    )
    return [one for each in results for one in each]


def _write(snapshot: Snapshot, job: _Job, decisions: _Decisions) -> list[Fragment]:
    is_kept = np.array([clause.act is Act.UPDATE for clause in decisions.clauses])
    moved = []
    for one in decisions.rows:
        chosen = is_kept[one.actions]
        if chosen.any():
            moved.append(
                Decided(one.fragment, one.offsets[chosen], one.rows[chosen], one.actions[chosen])
            )
    base = MergeTask(
        snapshot,
        decisions.schema,
        tuple(moved),
        decisions.inserted,
        decisions.inserted_by,
        decisions.clauses,
        job.kept,
        job.options.change.write,
    )
    apart = decisions.schema is not snapshot.manifest.schema
    target = target_of(snapshot)
    written = run_steps(
        job.options.change.runner,
        write_merged,
        plan_writes(base, snapshot, apart=apart),
        lambda fragments: remove_fragments(fragments, target),
    )
    return [fragment for each in written for fragment in each]


def _commit_update(
    snapshot: Snapshot,
    job: _Job,
    marked: list[Marked],
    fragments: list[Fragment],
    keys: KeyFilter,
) -> CommitResult:
    operation = Update(
        removed_fragment_ids=tuple(one.id for one in marked if one.fragment is None),
        updated_fragments=tuple(one.fragment for one in marked if one.fragment is not None),
        new_fragments=tuple(fragments),
        fields_for_preserving_frag_bitmap=tuple(one.id for one in snapshot.manifest.schema.walk()),
        inserted_rows=keys,
    )
    return commit(snapshot, operation, job.options.change.commit, affected=affected_rows(marked))


def _commit_merge(
    snapshot: Snapshot,
    job: _Job,
    marked: list[Marked],
    fragments: list[Fragment],
    schema: Schema,
) -> CommitResult:
    changed = {one.id: one.fragment for one in marked}
    first = next_fragment_id(snapshot.manifest)
    new = [one._replace(id=first + place) for place, one in enumerate(fragments)]
    kept = [changed.get(one.id, one) for one in snapshot.manifest.fragments]
    left = [one for one in kept if one is not None]
    operation = Merge((*left, *new), schema, preserves_nullability=True)
    return commit(snapshot, operation, job.options.change.commit)
