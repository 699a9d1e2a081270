"""Delete: mark the rows for which a predicate holds as deleted.

1. Plan one task for each part of the table that may hold a match.
2. Find the matching rows of each part; every row, when the predicate is simply true.
3. Write a larger deletion file for each fragment that loses rows; fragments without rows go.
4. Commit, naming the rows, so that other rows deleted by others meanwhile stay deleted too.
When nothing matches no version is made: there is nothing that it could tell.
"""

from collections.abc import Mapping

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Delete
from lancetable.expression import Expression, literal, to_sql
from lancetable.fragment.readers import Readers
from lancetable.operations.changes import DEFAULTS, ChangeOptions, Deleted, DeleteResult
from lancetable.operations.match import (
    Found,
    Marked,
    find_all,
    mark_deleted,
    plan_find,
    plan_mark,
    undo_marks,
)
from lancetable.operations.retry import repeat
from lancetable.operations.rowset import RowSet
from lancetable.operations.steps import own_files, run_steps
from lancetable.scan.request import Where, parse_where


def delete(snapshot: Snapshot, where: Where, options: ChangeOptions = DEFAULTS) -> Deleted:
    """Delete the rows for which a predicate holds; ``None`` and ``true`` delete all.

    Raises:
        ExpressionError: the predicate cannot be understood or does not fit the columns.
        CommitError: the rows were not deleted.
    """
    wanted = parse_where(where)
    text = where if isinstance(where, str) else to_sql(_or_true(wanted))
    return repeat(snapshot, lambda latest: _attempt(latest, wanted, text, options), options.commit)


def _or_true(where: Expression | None) -> Expression:
    return literal(value=True) if where is None else where


def _attempt(
    snapshot: Snapshot, where: Expression | None, text: str, options: ChangeOptions
) -> Deleted:
    tasks = plan_find(snapshot, where)
    if tasks and tasks[0].where is None:
        return _delete_all(snapshot, text, options)
    found = find_all(options.runner, tasks)
    if not found:
        return Deleted(snapshot, DeleteResult(snapshot.version, is_new_version=False))
    with own_files(snapshot.store) as files:
        marked = mark_all(snapshot, found, options)
        files.extend(one.path for one in marked if one.path is not None)
        operation = Delete(
            tuple(one.fragment for one in marked if one.fragment is not None),
            tuple(one.id for one in marked if one.fragment is None),
            text,
        )
        affected = affected_rows(marked)
        made = options.make_version(snapshot, operation, options.commit, affected=affected)
    rows = sum(len(one.rows) for one in found)
    return Deleted(made.snapshot, DeleteResult(made.snapshot.version, rows, made.attempts))


def _delete_all(snapshot: Snapshot, text: str, options: ChangeOptions) -> Deleted:
    """Remove every fragment, reading none."""
    rows = Readers(snapshot).starts[-1]
    ids = tuple(fragment.id for fragment in snapshot.manifest.fragments)
    operation = Delete((), ids, text)
    made = options.make_version(snapshot, operation, options.commit, affected={})
    return Deleted(made.snapshot, DeleteResult(made.snapshot.version, rows, made.attempts))


def mark_all(snapshot: Snapshot, found: list[Found], options: ChangeOptions) -> list[Marked]:
    """Write the deletion files of all fragments that lose the rows that were found."""
    return mark_rows(snapshot, {one.fragment.id: one.rows for one in found}, options)


def mark_rows(
    snapshot: Snapshot, rows: Mapping[int, RowSet], options: ChangeOptions
) -> list[Marked]:
    """Write the deletion files of all fragments that lose some live rows."""
    tasks = plan_mark(snapshot, rows)
    results = run_steps(
        options.runner, mark_deleted, tasks, lambda marked: undo_marks(snapshot, marked)
    )
    return [one for each in results for one in each]


def affected_rows(marked: list[Marked]) -> dict[int, RowSet]:
    """Return which rows of which fragments a change takes away."""
    return {one.id: one.rows for one in marked if one.fragment is not None}
