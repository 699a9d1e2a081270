"""Random queries on shared data frames, evaluated by Spark and by plain Python.

A query is a list of steps. Each step makes one more frame from earlier ones, which stay in use, so
that several queries and several parts of one query share a frame, a view and its source. All frames
have the same columns: a bigint that is never null, an int, a string and a double.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

COLUMNS = ("id", "k", "s", "x")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("k", pa.int32()),
        ("s", pa.string()),
        ("x", pa.float64()),
    ]
)
Row = tuple[Any, ...]


class Predicate(NamedTuple):
    """A predicate in SQL and in Python; both are false where it is unknown."""

    sql: str
    holds: Callable[[Row], bool]


PREDICATES = [
    Predicate("id < 5", lambda row: row[0] < 5),
    Predicate("id >= 7 and k is not null", lambda row: row[0] >= 7 and row[1] is not None),
    Predicate("k = 1", lambda row: row[1] == 1),
    Predicate("k <> 1", lambda row: row[1] not in {None, 1}),
    Predicate("k is null", lambda row: row[1] is None),
    Predicate("not k > 1", lambda row: row[1] is not None and row[1] <= 1),
    Predicate("k in (0, 2)", lambda row: row[1] in {0, 2}),
    Predicate("k <=> 2", lambda row: row[1] == 2),
    Predicate("s = 'b'", lambda row: row[2] == "b"),
    Predicate("s like 'b%'", lambda row: (row[2] or "").startswith("b")),
    Predicate("s is not null and x > 1.5", lambda row: None not in row[2:] and row[3] > 1.5),
    Predicate("id % 3 = 0", lambda row: row[0] % 3 == 0),
    Predicate("k = 1 or s = 'a'", lambda row: row[1] == 1 or row[2] == "a"),
    Predicate("x < 1", lambda row: row[3] is not None and row[3] < 1),
]
LANCE_PREDICATES = [one for one in PREDICATES if "<=>" not in one.sql]
"""Those that the option ``where`` takes, too."""


class Step(NamedTuple):
    """What is done with which frames; frames are numbered modulo how many there are."""

    kind: str
    first: int
    second: int
    number: int


KINDS = (
    *["where"] * 6,
    "union",
    "inner",
    "semi",
    "anti",
    "subquery",
    "view",
    "limit",
    "distinct",
    "cache",
    "option",
    "collect",
    "count",
    "group",
)
_numbers = st.integers(0, 20)
_frames = st.integers(0, 3)
rows = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.none() | st.integers(0, 3),
        st.none() | st.sampled_from(["a", "b", "bb", ""]),
        st.none() | st.sampled_from([0.0, 0.5, 1.5, 2.0]),
    ),
    min_size=1,
    max_size=8,
)
tables = st.lists(rows, min_size=1, max_size=3)
"""The rows of each fragment."""
steps = st.lists(
    st.builds(Step, st.sampled_from(KINDS), _frames, _frames, _numbers), min_size=4, max_size=9
)


def as_arrow(found: list[Row]) -> pa.Table:
    columns = [
        pa.array(values, one.type) for values, one in zip(_columns(found), SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _columns(found: list[Row]) -> list[list[Any]]:
    return [[row[place] for row in found] for place in range(len(COLUMNS))]


def _place(row: Row) -> list[tuple[bool, Any]]:
    """Return the place of a row in Spark's order, which has nulls first."""
    return [(value is not None, value) for value in row]


class Held(NamedTuple):
    """A frame, and the rows that it must have."""

    frame: Any
    rows: list[Row]


@dataclass
class Queries:
    """Runs steps on both sides, and compares what Spark gives whenever it gives something."""

    spark: Any
    uri: str
    rows: list[Row]
    held: list[Held] = field(default_factory=list)
    cached: list[Any] = field(default_factory=list)
    views: list[str] = field(default_factory=list)

    def run(self, steps: list[Step]) -> None:
        self.held.append(Held(self.spark.read.format("lance").load(self.uri), self.rows))
        try:
            for step in steps:
                self._take(step)
            self._check_all()
            self.check(self.held[0])
        finally:
            for frame in self.cached:
                frame.unpersist()
            for view in self.views:
                self.spark.catalog.dropTempView(view)

    def _take(self, step: Step) -> None:
        one, other = (self.held[n % len(self.held)] for n in (step.first, step.second))
        made = getattr(self, f"_{step.kind}")(one, other, step.number)
        # A chain of joins of duplicates grows beyond what is worth comparing.
        if made is not None and len(made.rows) <= 200:
            self.held.append(made)

    def check(self, held: Held) -> None:
        assert Counter(map(tuple, held.frame.collect())) == Counter(held.rows)

    def _check_all(self) -> None:
        """Compare all frames within one query."""
        tagged = [
            held.frame.selectExpr(f"{place} as place", "*") for place, held in enumerate(self.held)
        ]
        found = Counter(
            map(tuple, reduce(lambda one, other: one.unionAll(other), tagged).collect())
        )
        assert found == Counter(
            (place, *row) for place, held in enumerate(self.held) for row in held.rows
        )

    def _view_of(self, held: Held) -> str:
        name = f"held_{len(self.views)}"
        held.frame.createOrReplaceTempView(name)
        self.views.append(name)
        return name

    def _where(self, one: Held, _: Held, number: int) -> Held:
        predicate = PREDICATES[number % len(PREDICATES)]
        return Held(one.frame.where(predicate.sql), list(filter(predicate.holds, one.rows)))

    def _union(self, one: Held, other: Held, _: int) -> Held:
        return Held(one.frame.unionAll(other.frame), one.rows + other.rows)

    def _inner(self, one: Held, other: Held, _: int) -> Held:
        left, right = self._view_of(one), self._view_of(other)
        frame = self.spark.sql(f"select l.* from {left} l join {right} r on l.id = r.id")
        counts = Counter(row[0] for row in other.rows)
        return Held(frame, [row for row in one.rows for _ in range(counts[row[0]])])

    def _semi(self, one: Held, other: Held, _: int) -> Held:
        ids = {row[0] for row in other.rows}
        frame = one.frame.join(other.frame.select("id"), "id", "left_semi")
        return Held(frame, [row for row in one.rows if row[0] in ids])

    def _anti(self, one: Held, other: Held, _: int) -> Held:
        ids = {row[0] for row in other.rows}
        frame = one.frame.join(other.frame.select("id"), "id", "left_anti")
        return Held(frame, [row for row in one.rows if row[0] not in ids])

    def _subquery(self, one: Held, other: Held, number: int) -> Held:
        outer, inner = self._view_of(one), self._view_of(other)
        predicate = PREDICATES[number % len(PREDICATES)]
        frame = self.spark.sql(
            f"select * from {outer} where id <= (select max(id) from {inner} where {predicate.sql})"
        )
        most = max((row[0] for row in other.rows if predicate.holds(row)), default=-1)
        return Held(frame, [row for row in one.rows if row[0] <= most])

    def _view(self, one: Held, _: Held, __: int) -> Held:
        return Held(self.spark.table(self._view_of(one)), one.rows)

    def _limit(self, one: Held, _: Held, number: int) -> Held:
        frame = one.frame.orderBy(*COLUMNS).limit(number % 7)
        return Held(frame, sorted(one.rows, key=_place)[: number % 7])

    def _distinct(self, one: Held, _: Held, __: int) -> Held:
        return Held(one.frame.distinct(), list(set(one.rows)))

    def _cache(self, one: Held, _: Held, __: int) -> None:
        self.cached.append(one.frame.cache())

    def _option(self, _: Held, __: Held, number: int) -> Held:
        predicate = LANCE_PREDICATES[number % len(LANCE_PREDICATES)]
        frame = self.spark.read.format("lance").option("where", predicate.sql).load(self.uri)
        return Held(frame, list(filter(predicate.holds, self.rows)))

    def _collect(self, one: Held, _: Held, __: int) -> None:
        self.check(one)

    def _count(self, one: Held, _: Held, __: int) -> None:
        assert one.frame.count() == len(one.rows)

    def _group(self, one: Held, _: Held, __: int) -> None:
        found = one.frame.groupBy("k").count().collect()
        assert dict(map(tuple, found)) == Counter(row[1] for row in one.rows)
