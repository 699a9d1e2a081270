"""Delete: mark the rows for which a predicate holds as deleted.

1. Plan one task for each part of the table that may hold a match.
2. Find the matching rows of each part; every row, when the predicate is simply true.
3. Write a larger deletion file for each fragment that loses rows; fragments without rows go.
4. Commit, naming the rows, so that other rows deleted by others meanwhile stay deleted too.
When nothing matches no version is made.
"""

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Delete
from lancetable.expression import Expression, literal, to_sql
from lancetable.fragment.readers import Readers
from lancetable.operations.results import DEFAULTS, ChangeOptions, DeleteResult, Done
from lancetable.operations.retry import repeat
from lancetable.operations.rows.find_rows import find_all, plan_find, scanned_fragments
from lancetable.operations.rows.mark_deleted import marked_rows, rows_by_fragment
from lancetable.scan.request import Where, parse_where


def delete(
    snapshot: Snapshot, where: Where, options: ChangeOptions = DEFAULTS
) -> Done[DeleteResult]:
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
) -> Done[DeleteResult]:
    tasks = plan_find(snapshot, where)
    if tasks and tasks[0].where is None:
        return _delete_all(snapshot, text, options)
    found = find_all(options.runner, tasks)
    scanned = scanned_fragments(tasks)
    if not found:
        nothing = DeleteResult(snapshot.version, fragments_scanned=scanned, is_new_version=False)
        return Done(snapshot, nothing)
    with marked_rows(snapshot, rows_by_fragment(found), options.runner) as marks:
        operation, affected = marks.delete(text), marks.affected
        made = options.make_version(snapshot, operation, options.commit, affected=affected)
    rows = sum([len(one.rows) for one in found])
    return Done(made.snapshot, DeleteResult(made.snapshot.version, rows, made.attempts, scanned))


def _delete_all(snapshot: Snapshot, text: str, options: ChangeOptions) -> Done[DeleteResult]:
    """Remove every fragment, reading none."""
    rows = Readers(snapshot).starts[-1]
    ids = tuple(fragment.id for fragment in snapshot.manifest.fragments)
    operation = Delete((), ids, text)
    made = options.make_version(snapshot, operation, options.commit, affected={})
    return Done(made.snapshot, DeleteResult(made.snapshot.version, rows, made.attempts))
