"""Merge builder: collect clauses, and run them with ``execute``.

Each call returns a new description; nothing happens to the table before ``execute``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lancetable.commit.snapshot import Snapshot
from lancetable.expression import Expression
from lancetable.operations.input.assign import parse_assignments
from lancetable.operations.merge.clauses import Act, Clause, When
from lancetable.operations.merge.run import MergeOptions
from lancetable.operations.prepared_transaction import PreparedTransaction, prepare_transaction
from lancetable.operations.results import ChangeOptions, Done, MergeResult
from lancetable.options import byte_size
from lancetable.scan.request import Where, parse_where

Values = Mapping[str, str | Expression]


@dataclass(frozen=True, slots=True)
class MergeBuilder:
    """A merge in the making.

    Clauses are tried in the order they were added; for each row the first of its kind whose
    condition holds acts, and a row for which none does stays as it is. Conditions and values are
    SQL in which ``source.x`` and ``target.x`` name the columns of the two sides.
    """

    run: Callable[[tuple[Clause, ...], MergeOptions], Done[MergeResult]]
    options: MergeOptions
    clauses: tuple[Clause, ...] = ()
    moved: Callable[[Snapshot], None] | None = None
    """Called with the new version."""

    def _add(self, when: When, act: Act, values: Values | None, condition: Where) -> "MergeBuilder":
        parsed = None if values is None else parse_assignments(values)
        clause = Clause(when, act, parsed, parse_where(condition))
        return replace(self, clauses=(*self.clauses, clause))

    def when_matched_update_all(self, condition: Where = None) -> "MergeBuilder":
        """Set all columns that the source has."""
        return self._add(When.MATCHED, Act.UPDATE, None, condition)

    def when_matched_update(self, set: Values, condition: Where = None) -> "MergeBuilder":  # noqa: A002
        """Set some columns, or parts of structs by their paths, to SQL expressions."""
        return self._add(When.MATCHED, Act.UPDATE, set, condition)

    def when_matched_delete(self, condition: Where = None) -> "MergeBuilder":
        """Delete the row of the table."""
        return self._add(When.MATCHED, Act.DELETE, None, condition)

    def when_matched_fail(self, condition: Where = None) -> "MergeBuilder":
        """Refuse the whole merge when a row of the source matches one of the table.

        With ``when_not_matched_insert_all`` that is an insert which never repeats a key.
        """
        return self._add(When.MATCHED, Act.FAIL, None, condition)

    def when_not_matched_insert_all(self, condition: Where = None) -> "MergeBuilder":
        """Insert rows of the source that match no row of the table."""
        return self._add(When.NOT_MATCHED, Act.INSERT, None, condition)

    def when_not_matched_insert(self, values: Values, condition: Where = None) -> "MergeBuilder":
        """Insert a row made of SQL expressions; columns that are not named are null."""
        return self._add(When.NOT_MATCHED, Act.INSERT, values, condition)

    def when_not_matched_by_source_delete(self, condition: Where = None) -> "MergeBuilder":
        """Delete rows of the table that no row of the source matches."""
        return self._add(When.NOT_MATCHED_BY_SOURCE, Act.DELETE, None, condition)

    def when_not_matched_by_source_update(
        self,
        set: Values,  # noqa: A002 - the word of SQL
        condition: Where = None,
    ) -> "MergeBuilder":
        """Set columns of rows of the table that no row of the source matches."""
        return self._add(When.NOT_MATCHED_BY_SOURCE, Act.UPDATE, set, condition)

    def with_schema_evolution(self) -> "MergeBuilder":
        """Add the columns of the source that the table lacks."""
        return replace(self, options=replace(self.options, evolves_schema=True))

    def with_duplicates(self) -> "MergeBuilder":
        """Let several rows of the source be inserted with one key."""
        return replace(self, options=replace(self.options, allows_duplicates=True))

    def with_memory(
        self, memory_bytes: int | str, *, spill_folder: str | None = None
    ) -> "MergeBuilder":
        """Use about this much memory for the source; the default is 512 MiB.

        ``memory_bytes`` is a number or text such as ``256MB``. A larger source goes through
        unnamed files in ``spill_folder``, by default the folder for temporary files. The result is
        the same; each part of the source that fits into memory reads the keys of the table once.
        """
        size = byte_size(memory_bytes)
        changed = replace(self.options, memory_bytes=size, spill_folder=spill_folder)
        return replace(self, options=changed)

    def execute(self) -> MergeResult:
        """Carry the merge out."""
        done = self.run(self.clauses, self.options)
        if self.moved is not None:
            self.moved(done.snapshot)
        return done.result

    def execute_uncommitted(self) -> PreparedTransaction[MergeResult]:
        """Carry the merge out without making a version; ``Table.commit_prepared`` makes it one.

        The result can be pickled and committed by another process. Its files are written; if it is
        never committed, a cleanup removes them when they are old enough.
        """

        def change(options: ChangeOptions) -> Done[MergeResult]:
            return self.run(self.clauses, replace(self.options, change=options))

        return prepare_transaction(self.options.change, change)
