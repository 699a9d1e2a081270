"""A table as a plain list of rows: what every operation on a table has to be equal to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Values = dict[str, Any]
Truth = bool | None
INTEGERS = (pa.int32(), pa.int64())
TEXTS = (pa.string(), pa.large_string())
FLOATS = (pa.float32(), pa.float64())
STRUCT = pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.string())])
LIST = pa.list_(pa.int32())
VECTOR = pa.list_(pa.float32(), 2)


@dataclass(frozen=True)
class Row:
    """One row; the id and the versions are known only in tables that keep them."""

    values: Values
    id: int | None = None
    created: int | None = None
    updated: int | None = None


@dataclass(frozen=True)
class State:
    """Everything that a version of a table holds."""

    columns: Mapping[str, pa.DataType]
    rows: Sequence[Row] = ()
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow knows them."""
        return pa.schema(list(self.columns.items()))

    def table(self, rows: Sequence[Values]) -> pa.Table:
        """Return rows as an Arrow table of these columns."""
        return pa.Table.from_pylist(list(rows), schema=self.schema)

    def of_type(self, types: Sequence[pa.DataType]) -> list[str]:
        """Return the columns of some types."""
        return [name for name, type_ in self.columns.items() if type_ in types]


@dataclass(frozen=True)
class Term:
    """SQL text, and the same over the two rows that a merge compares; elsewhere over one."""

    sql: str
    value: Callable[[Values], Any]


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    """Draw values of a type, null among them."""
    if type_ in INTEGERS:
        return st.none() | st.integers(0, 25)
    if type_ in TEXTS:
        return st.sampled_from([None, "", "a", "b", "ключ", "x" * 50])
    if type_ in FLOATS:
        return st.sampled_from([None, 0.0, 0.5, -1.5, 8.25])
    if type_ == STRUCT:
        return st.none() | st.fixed_dictionaries(
            {"a": st.none() | st.integers(0, 9), "b": st.sampled_from([None, "p", "q"])}
        )
    if type_ == pa.bool_():
        return st.none() | st.booleans()
    if type_ == VECTOR:
        return st.none() | st.just([0.5, 1.5]) | st.just([2.0, -4.0])
    return st.none() | st.lists(st.none() | st.integers(0, 5), max_size=3)


def rows_of(columns: Mapping[str, pa.DataType], most: int = 14) -> st.SearchStrategy[list[Values]]:
    """Draw rows of some columns."""
    one = st.fixed_dictionaries({name: values_of(type_) for name, type_ in columns.items()})
    return st.lists(one, min_size=0, max_size=most)


def conjunction(left: Truth, right: Truth) -> Truth:
    """Return ``left and right`` as SQL has it."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _leaf(data: st.DataObject, state: State) -> Term:
    name = data.draw(st.sampled_from(state.of_type([*INTEGERS, *TEXTS])))
    if state.columns[name] in TEXTS:
        if data.draw(st.booleans()):
            return Term(f"{name} is null", lambda row: row[name] is None)
        return Term(f"{name} = 'a'", lambda row: None if row[name] is None else row[name] == "a")
    low, other = data.draw(st.integers(0, 25)), data.draw(st.integers(2, 4))
    kind = data.draw(st.sampled_from(["below", "modulo", "among", "null"]))
    if kind == "below":
        return Term(f"{name} < {low}", lambda row: None if row[name] is None else row[name] < low)
    if kind == "modulo":
        return Term(
            f"{name} % {other} = 1",
            lambda row: None if row[name] is None else row[name] % other == 1,
        )
    if kind == "among":
        chosen = (low, low + other, low // 2)
        return Term(
            f"{name} in {chosen}", lambda row: None if row[name] is None else row[name] in chosen
        )
    return Term(f"{name} is not null", lambda row: row[name] is not None)


def predicate(data: st.DataObject, state: State) -> Term:
    """Draw a predicate over the rows of a state."""
    first = _leaf(data, state)
    kind = data.draw(st.sampled_from(["one", "one", "not", "and", "or"]))
    if kind == "one":
        return first
    if kind == "not":
        return Term(f"not ({first.sql})", lambda row: _negated(first.value(row)))
    second = _leaf(data, state)
    if kind == "and":
        return Term(
            f"({first.sql}) and ({second.sql})",
            lambda row: conjunction(first.value(row), second.value(row)),
        )
    return Term(
        f"({first.sql}) or ({second.sql})",
        lambda row: _negated(conjunction(_negated(first.value(row)), _negated(second.value(row)))),
    )


def _negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def expression(data: st.DataObject, state: State, type_: pa.DataType) -> Term:
    """Draw an expression of a type, over the rows of a state."""
    if type_ in TEXTS:
        name = data.draw(st.sampled_from(state.of_type(TEXTS)))
        return data.draw(
            st.sampled_from(
                [
                    Term("'new'", lambda _: "new"),
                    Term(f"{name} || '!'", lambda row: _over(row[name], lambda text: text + "!")),
                ]
            )
        )
    name = data.draw(st.sampled_from(state.of_type(INTEGERS)))
    step = data.draw(st.integers(0, 3))
    return data.draw(
        st.sampled_from(
            [
                Term(f"{step}", lambda _: step),
                Term(f"{name} + {step}", lambda row: _over(row[name], lambda old: old + step)),
                Term(f"{name} * 2", lambda row: _over(row[name], lambda old: old * 2)),
            ]
        )
    )


def _over(value: Any, function: Callable[[Any], Any]) -> Any:
    return None if value is None else function(value)


@dataclass(frozen=True)
class Clause:
    """One clause of a merge; ``values`` of None take all columns of the source."""

    when: str
    act: str
    values: Mapping[str, Term] | None = None
    condition: Term | None = None


@dataclass(frozen=True)
class Merge:
    """A merge, in words and clauses."""

    clauses: Sequence[Clause]
    source: Sequence[Values]
    columns: Mapping[str, pa.DataType]
    key: str
    shape: str
    evolves: bool = False


def sided(row: Values | None, source: Values | None) -> Values:
    """Return what the terms of a merge read."""
    return {"target": row or {}, "source": source or {}}


def merged(state: State, merge: Merge, version: int) -> tuple[list[Row], dict[str, int]]:
    """Return the rows after a merge, and how many were changed in which way."""
    keyed = {row[merge.key]: row for row in merge.source if row[merge.key] is not None}
    seen: set[Any] = set()
    rows: list[Row] = []
    counts = {"inserted": 0, "updated": 0, "deleted": 0}
    for row in state.rows:
        found = keyed.get(row.values.get(merge.key))
        when = "by source" if found is None else "matched"
        if found is not None:
            seen.add(found[merge.key])
        clause = _first(merge.clauses, when, row.values, found)
        if clause is None:
            rows.append(row)
        elif clause.act == "delete":
            counts["deleted"] += 1
        else:
            counts["updated"] += 1
            values = {**row.values, **_values(clause, row.values, found)}
            rows.append(replace(row, values=values, updated=version))
    for source in merge.source:
        if source[merge.key] in seen:
            continue
        clause = _first(merge.clauses, "not matched", None, source)
        if clause is not None:
            counts["inserted"] += 1
            rows.append(Row({**dict.fromkeys(state.columns), **_values(clause, None, source)}))
    return rows, counts


def _first(
    clauses: Sequence[Clause], when: str, row: Values | None, source: Values | None
) -> Clause | None:
    both = sided(row, source)
    for clause in clauses:
        if clause.when == when and (clause.condition is None or clause.condition.value(both)):
            return clause
    return None


def _values(clause: Clause, row: Values | None, source: Values | None) -> Values:
    if clause.values is None:
        return dict(source or {})
    return {name: term.value(sided(row, source)) for name, term in clause.values.items()}
