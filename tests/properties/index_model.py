"""Random tables with indices, and predicates that Python evaluates as well.

A predicate is SQL and a function of a row that returns True, False or None for unknown.
"""

import math
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import lancetable as lt

Row = dict[str, Any]
Truth = bool | None
NAN = float("nan")
FLOATS = [0.0, -0.0, NAN, float("inf"), float("-inf"), 1.5, -2.5, 3.0]
WORDS = ["", "a", "abc", "abcd", "ab", "xyz", "Äpfel", "street", "tree", "stre"]
LABELS = ["a", "b", "c", None]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("l", pa.list_(pa.string())),
        ("at", pa.struct([("k", pa.int64())])),
    ]
)
KINDS: dict[str, list[Any]] = {
    "id": ["btree", "zonemap", "bloomfilter"],
    "n": ["btree", "bitmap", lt.ZoneMap(rows_per_zone=7), lt.BloomFilter(items=9)],
    "f": ["btree", "bitmap", lt.ZoneMap(rows_per_zone=5), lt.BloomFilter(items=9)],
    "s": ["btree", "bitmap", "ngram", "zonemap", "bloomfilter"],
    "d": ["btree", "bitmap", lt.ZoneMap(rows_per_zone=7), "bloomfilter"],
    "l": ["label_list"],
    "at.k": ["btree", "bitmap"],
}


class Predicate(NamedTuple):
    """SQL, and what it says about a row."""

    sql: str
    holds: Callable[[Row], Truth]


def key(value: Any) -> Any:
    """Return a value that compares as the format orders it: NaN is equal to itself, and largest."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case float():
            return f"cast('{value}' as double)" if not math.isfinite(value) else repr(value)
        case date():
            return f"date '{value}'"
        case str():
            return f"'{value}'"
        case _:
            return str(value)


class Model:
    """A table, and its rows as a plain list."""

    def __init__(self, path: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.next_id = 0
        rows = self.new_rows(self.draw.randint(1, 120))
        self.rows = {row["id"]: row for row in rows}
        self.is_stable = self.draw.random() < 0.4
        self.table = lt.create_table(
            str(path),
            pa.Table.from_pylist(rows, SCHEMA),
            max_rows_per_file=self.draw.choice([7, 30, 1000]),
            stable_row_ids=self.is_stable,
        )

    def value(self, column: str) -> Any:
        draw = self.draw
        if draw.random() < 0.12:
            return None
        match column:
            case "n":
                return draw.randint(-8, 8)
            case "f":
                return draw.choice(FLOATS)
            case "s":
                return draw.choice(WORDS)
            case "d":
                return date(2024, 2, 25) + timedelta(draw.randint(0, 9))
            case "l":
                return [draw.choice(LABELS) for _ in range(draw.randint(0, 3))]
            case "at":
                return {"k": self.value("n")}
            case _:
                return draw.randint(0, max(self.next_id, 1))

    def new_rows(self, count: int) -> list[Row]:
        made = []
        for _ in range(count):
            made.append({name: self.value(name) for name in SCHEMA.names} | {"id": self.next_id})
            self.next_id += 1
        return made

    def step(self) -> str:
        """Change the table, or its indices, or only where its rows are."""
        acts = {
            self.append: 4,
            self.delete: 3,
            self.update: 3,
            self.merge: 2,
            self.compact: 3,
            self.create: 5,
            self.optimize: 3,
            self.drop: 1,
        }
        act = self.draw.choices(list(acts), list(acts.values()))[0]
        act()
        return act.__name__

    def append(self) -> None:
        rows = self.new_rows(self.draw.randint(1, 40))
        self.table.append(pa.Table.from_pylist(rows, SCHEMA))
        self.rows |= {row["id"]: row for row in rows}

    def delete(self) -> None:
        predicate = self.predicate()
        gone = self.matching(predicate)
        assert self.table.delete(predicate.sql).rows == len(gone), predicate.sql
        for id_ in gone:
            del self.rows[id_]

    def update(self) -> None:
        predicate = self.predicate()
        column = self.draw.choice(["n", "s", "f"])
        value = self.value(column)
        found = self.matching(predicate)
        mode = self.draw.choice(["rows", "columns"])
        done = self.table.update({column: shown(value)}, predicate.sql, mode=mode)
        assert done.rows == len(found), predicate.sql
        for id_ in found:
            self.rows[id_] = self.rows[id_] | {column: value}

    def merge(self) -> None:
        known = self.draw.sample(sorted(self.rows), min(len(self.rows), 3))
        rows = self.new_rows(2) + [
            {name: self.value(name) for name in SCHEMA.names} | {"id": id_} for id_ in known
        ]
        done = (
            self.table.merge(pa.Table.from_pylist(rows, SCHEMA), on="id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
        assert (done.updated, done.inserted) == (len(known), 2)
        self.rows |= {row["id"]: row for row in rows}

    def compact(self) -> None:
        policies: list[Any] = (
            ["remap", "uncover", None] if self.is_stable else ["reuse", "remap", "uncover"]
        )
        policy = self.draw.choice(policies)
        order = self.draw.choice([(), ("n",)]) if policy == "remap" else ()
        self.table.compact(indices=policy, sort_by=order, deleted_share=0.0)

    def create(self) -> None:
        column = self.draw.choice(list(KINDS))
        kind = self.draw.choice(KINDS[column])
        name = f"{column}_{kind if isinstance(kind, str) else kind.kind}"
        ids = [one.id for one in self.table.fragments]
        some = self.draw.sample(ids, self.draw.randint(0, len(ids)))
        self.table.indices.create(
            column,
            kind,
            name=name.replace(".", "_"),
            replace=True,
            fragments=some if self.draw.random() < 0.3 else None,
            segments=self.draw.randint(1, 3),
        )

    def optimize(self) -> None:
        self.table.indices.optimize(mode=self.draw.choice(["auto", "append", "merge", "rebuild"]))

    def drop(self) -> None:
        names = [one.name for one in self.table.indices.list() if not one.name.startswith("__")]
        if names:
            self.table.indices.drop(self.draw.choice(names))

    def matching(self, predicate: Predicate) -> list[int]:
        """Return the ids of the rows for which a predicate is true."""
        return sorted(id_ for id_, row in self.rows.items() if predicate.holds(row) is True)

    def predicate(self, depth: int = 0) -> Predicate:
        """Return a random predicate."""
        roll = self.draw.random()
        if depth < 3 and roll < 0.4:
            parts = [self.predicate(depth + 1) for _ in range(self.draw.randint(2, 3))]
            is_and = roll < 0.2
            word = " and " if is_and else " or "
            return Predicate(
                "(" + word.join(one.sql for one in parts) + ")",
                lambda row: joined([one.holds(row) for one in parts], decisive=not is_and),
            )
        if depth < 3 and roll < 0.5:
            inner = self.predicate(depth + 1)
            return Predicate(f"not {inner.sql}", lambda row: negated(inner.holds(row)))
        return self.leaf()

    def leaf(self) -> Predicate:
        draw = self.draw
        column = draw.choice(["id", "n", "n", "f", "f", "s", "s", "d", "l", "at.k"])
        if column == "l":
            return self.labels()
        path = column.split(".")

        def of(row: Row) -> Any:
            value = row[path[0]]
            return value if len(path) == 1 or value is None else value[path[1]]

        kind = "n" if column == "at.k" else column
        shape = draw.choice(["compare", "compare", "in", "null", "between", "text"])
        if shape == "text" and column == "s":
            return self.text()
        if shape == "null":
            negative = draw.random() < 0.5
            sql = f"{column} is {'not ' if negative else ''}null"
            return Predicate(sql, lambda row: (of(row) is not None) == negative)
        if shape == "in":
            values = [self.value(kind) for _ in range(draw.randint(1, 4))]
            sql = f"{column} in ({', '.join(map(shown, values))})"
            return Predicate(
                sql,
                lambda row: joined([compared("=", of(row), one) for one in values], decisive=True),
            )
        if shape == "between":
            low, high = self.value(kind), self.value(kind)
            sql = f"{column} between {shown(low)} and {shown(high)}"
            return Predicate(
                sql,
                lambda row: joined(
                    [compared(">=", of(row), low), compared("<=", of(row), high)], decisive=False
                ),
            )
        op, value = draw.choice(["=", "!=", "<", "<=", ">", ">="]), self.value(kind)
        return Predicate(f"{column} {op} {shown(value)}", lambda row: compared(op, of(row), value))

    def text(self) -> Predicate:
        word = self.draw.choice([one for one in WORDS if one])
        tests: dict[str, Callable[[str], bool]] = {
            f"contains(s, '{word}')": lambda text: word in text,
            f"starts_with(s, '{word}')": lambda text: text.startswith(word),
            f"s like '%{word}'": lambda text: text.endswith(word),
            f"s like '{word}%'": lambda text: text.startswith(word),
        }
        sql = self.draw.choice(list(tests))
        test = tests[sql]
        return Predicate(sql, lambda row: None if row["s"] is None else test(row["s"]))

    def labels(self) -> Predicate:
        wanted = [self.draw.choice("abc") for _ in range(self.draw.randint(1, 2))]
        items = ", ".join(map(shown, wanted))
        tests: dict[str, Callable[[list[str]], bool]] = {
            f"array_has(l, {shown(wanted[0])})": lambda have: wanted[0] in have,
            f"array_has_any(l, [{items}])": lambda have: any(one in have for one in wanted),
            f"array_has_all(l, [{items}])": lambda have: all(one in have for one in wanted),
        }
        sql = self.draw.choice(list(tests))
        test = tests[sql]
        return Predicate(sql, lambda row: None if row["l"] is None else test(row["l"]))


def compared(op: str, left: Any, right: Any) -> Truth:
    if left is None or right is None:
        return None
    one, other = key(left), key(right)
    answers: dict[str, bool] = {
        "=": one == other,
        "!=": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }
    return answers[op]


def joined(truths: list[Truth], *, decisive: bool) -> Truth:
    """Return AND when False decides, OR when True does."""
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth
