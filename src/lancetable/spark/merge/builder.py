"""Build a merge as Spark users know it: a condition with aliases, clauses, and a table of counts.

The work is that of the core's merge; where rows meet is decided in ``merge_frame``.
"""

# ruff: noqa: N802 - the names are those PySpark users know

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from lancetable.errors import InputError
from lancetable.expression import (
    Column,
    Compare,
    Comparison,
    Expression,
    conjuncts,
    parse,
)
from lancetable.expression.tree import rebuild
from lancetable.format.schema.project import quote
from lancetable.operations.merge.clauses import SOURCE, TARGET
from lancetable.operations.merge.run import MergeBuilder
from lancetable.spark.errors import all_coded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lancetable.operations.results import MergeResult

Values: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Aliases:
    """The names of the two sides in the texts of a merge."""

    target: str
    source: str

    def read(self, text: str) -> Expression:
        """Return an expression in which the sides have the names that the core uses."""
        return self._renamed(parse(text))

    def _renamed(self, expression: Expression) -> Expression:
        if isinstance(expression, Column) and len(expression.path) > 1:
            side = self._side(expression.path[0])
            return replace(expression, path=(side, *expression.path[1:]))
        return rebuild(expression, self._renamed)

    def _side(self, name: str) -> str:
        return {self.target: TARGET, self.source: SOURCE}.get(name, name)


def keys_of(condition: str, target: str) -> tuple[tuple[str, ...], Aliases]:
    """Return the key columns that a condition compares, and what it calls the two sides.

    Raises:
        InputError: the condition is anything but equalities of columns of the same name.
    """
    keys: list[str] = []
    sides: set[str] = set()
    for part in conjuncts(parse(condition)):
        pair = _compared(part)
        if pair is None:
            raise InputError(
                f"the merge condition {condition!r} must compare columns of the same name, such "
                f"as '{target}.id = source.id', joined by AND; put other conditions "
                "into the clauses"
            )
        one, other = pair
        if target not in {one.path[0], other.path[0]}:
            raise InputError(
                f"the merge condition {condition!r} does not name the table, which is called "
                f"{target!r}; use alias() to give it another name"
            )
        keys.append(".".join(quote(step) for step in one.path[1:]))
        sides |= {one.path[0], other.path[0]}
    others = sides - {target}
    if len(others) != 1:
        raise InputError(f"the merge condition {condition!r} must name one source")
    return tuple(keys), Aliases(target, others.pop())


def _compared(part: Expression) -> tuple[Column, Column] | None:
    if not isinstance(part, Compare) or part.op is not Comparison.EQ:
        return None
    one, other = part.left, part.right
    if not isinstance(one, Column) or not isinstance(other, Column):
        return None
    if len(one.path) < 2 or one.path[1:] != other.path[1:] or one.path[0] == other.path[0]:
        return None
    return one, other


@all_coded
@dataclass(frozen=True, slots=True)
class LanceMergeBuilder:
    """A merge in the making; nothing happens before ``execute``."""

    inner: MergeBuilder
    aliases: Aliases
    show: "Callable[[MergeResult], DataFrame]"

    def _read(self, text: str | None) -> Expression | None:
        return None if text is None else self.aliases.read(text)

    def _values(self, values: Values) -> dict[str, Expression]:
        return {self._column(name): self.aliases.read(text) for name, text in values.items()}

    def _column(self, name: str) -> str:
        """Return the column that is set, which may be named with the alias of the table."""
        return name.removeprefix(f"{self.aliases.target}.")

    def _with(self, inner: MergeBuilder) -> "LanceMergeBuilder":
        return replace(self, inner=inner)

    def whenMatchedUpdate(
        self,
        condition: str | None = None,
        set: Values | None = None,  # noqa: A002 - the word of SQL
    ) -> "LanceMergeBuilder":
        """Set some columns of matched rows to SQL expressions."""
        values = self._values(set or {})
        return self._with(self.inner.when_matched_update(values, self._read(condition)))

    def whenMatchedUpdateAll(self, condition: str | None = None) -> "LanceMergeBuilder":
        """Set all columns of matched rows that the source has."""
        return self._with(self.inner.when_matched_update_all(self._read(condition)))

    def whenMatchedDelete(self, condition: str | None = None) -> "LanceMergeBuilder":
        """Delete matched rows."""
        return self._with(self.inner.when_matched_delete(self._read(condition)))

    def whenNotMatchedInsert(
        self, condition: str | None = None, values: Values | None = None
    ) -> "LanceMergeBuilder":
        """Insert rows made of SQL expressions for rows of the source that match none."""
        made = self._values(values or {})
        return self._with(self.inner.when_not_matched_insert(made, self._read(condition)))

    def whenNotMatchedInsertAll(self, condition: str | None = None) -> "LanceMergeBuilder":
        """Insert rows of the source that match none."""
        return self._with(self.inner.when_not_matched_insert_all(self._read(condition)))

    def whenNotMatchedBySourceUpdate(
        self,
        condition: str | None = None,
        set: Values | None = None,  # noqa: A002 - the word of SQL
    ) -> "LanceMergeBuilder":
        """Set columns of rows of the table that no row of the source matches."""
        values = self._values(set or {})
        made = self.inner.when_not_matched_by_source_update(values, self._read(condition))
        return self._with(made)

    def whenNotMatchedBySourceDelete(self, condition: str | None = None) -> "LanceMergeBuilder":
        """Delete rows of the table that no row of the source matches."""
        return self._with(self.inner.when_not_matched_by_source_delete(self._read(condition)))

    def withSchemaEvolution(self) -> "LanceMergeBuilder":
        """Add the columns of the source that the table lacks."""
        return self._with(self.inner.with_schema_evolution())

    def execute(self) -> "DataFrame":
        """Carry the merge out, and return how many rows it changed."""
        return self.show(self.inner.execute())


def as_keys(on: str | Sequence[str], target: str) -> tuple[tuple[str, ...], Aliases]:
    """Return the keys of a condition, or of a list of columns.

    Raises:
        InputError: the condition cannot be used.
    """
    if isinstance(on, str):
        return keys_of(on, target)
    return tuple(on), Aliases(target, SOURCE)
