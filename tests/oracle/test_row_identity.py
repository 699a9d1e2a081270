"""Who a row is and what became of it, through random histories that two libraries write in turns.

A plain model predicts the row id of each row, the version that created it and the one that changed
it last. Both libraries have to say the same after every step.
"""

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable as lt

lance = pytest.importorskip("lance")
pytestmark = pytest.mark.oracle

COLUMNS = ["id", "x", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@dataclass(frozen=True)
class Row:
    """What is known about a row; ``x`` is its value."""

    x: int
    row_id: int
    created: int
    updated: int


@dataclass
class Model:
    """The rows by their key, and the next row id."""

    rows: dict[int, Row] = field(default_factory=dict)
    next_id: int = 0
    next_key: int = 0

    def insert(self, count: int, version: int) -> list[int]:
        keys = list(range(self.next_key, self.next_key + count))
        for key in keys:
            self.rows[key] = Row(0, self.next_id, version, version)
            self.next_id += 1
        self.next_key += count
        return keys

    def change(self, keys: list[int], version: int, x: int | None = None) -> None:
        for key in keys:
            row = self.rows[key]
            self.rows[key] = replace(row, x=row.x if x is None else x, updated=version)

    def told(self) -> dict[int, tuple[int, int, int, int]]:
        return {key: (r.x, r.row_id, r.created, r.updated) for key, r in self.rows.items()}


def some_rows(keys: list[int], x: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int64()), "x": pa.array([x] * len(keys), pa.int64())})


def listed(keys: list[int]) -> str:
    return f"id in ({', '.join(map(str, keys))})"


class Ours:
    """The steps, done by this library."""

    def __init__(self, path: Path) -> None:
        self.table = lt.open_table(path)

    def append(self, rows: pa.Table, width: int) -> None:
        self.table.append(rows, max_rows_per_file=width)

    def delete(self, where: str) -> None:
        self.table.delete(where)

    def update(self, x: int, where: str) -> None:
        self.table.update({"x": str(x)}, where=where)

    def upsert(self, rows: pa.Table) -> None:
        merge = self.table.merge(rows, on="id").when_matched_update_all()
        merge.when_not_matched_insert_all().execute()

    def add_column(self, name: str) -> None:
        self.table.columns.add({name: "id"})

    def drop_column(self, name: str) -> None:
        self.table.columns.drop([name])

    def compact(self) -> None:
        self.table.compact()

    def restore(self, version: int) -> None:
        self.table.restore(version)

    def overwrite(self, rows: pa.Table) -> None:
        self.table.overwrite(rows)


class Theirs:
    """The same steps, done by the other one."""

    def __init__(self, path: Path) -> None:
        self.dataset = lance.dataset(path)

    def append(self, rows: pa.Table, width: int) -> None:
        lance.write_dataset(rows, self.dataset, mode="append", max_rows_per_file=width)

    def delete(self, where: str) -> None:
        self.dataset.delete(where)

    def update(self, x: int, where: str) -> None:
        self.dataset.update({"x": str(x)}, where=where)

    def upsert(self, rows: pa.Table) -> None:
        merge = self.dataset.merge_insert("id").when_matched_update_all()
        merge.when_not_matched_insert_all().execute(rows)

    def add_column(self, name: str) -> None:
        self.dataset.add_columns({name: "id"})

    def drop_column(self, name: str) -> None:
        self.dataset.drop_columns([name])

    def compact(self) -> None:
        self.dataset.optimize.compact_files()

    def restore(self, version: int) -> None:
        lance.dataset(self.dataset.uri, version=version).restore()

    def overwrite(self, rows: pa.Table) -> None:
        lance.write_dataset(rows, self.dataset, mode="overwrite")


class History:
    """One table, its model, and the models of its versions."""

    def __init__(self, path: Path, draw: Any) -> None:
        self.path = path
        self.draw = draw
        self.model = Model()
        self.past: dict[int, Model] = {}
        self.extra = 0
        keys = self.model.insert(draw(st.integers(1, 6)), 1)
        if draw(st.booleans()):
            lt.create_table(path, some_rows(keys), stable_row_ids=True)
        else:
            lance.write_dataset(some_rows(keys), path, enable_stable_row_ids=True)
        self.check()

    def step(self) -> None:
        """Do one thing and see that everybody agrees about the outcome."""
        writer = self.draw(st.sampled_from([Ours, Theirs]))(self.path)
        names = ["append", "delete", "update", "upsert", "compact", "restore", "overwrite"]
        names += ["append", "update", "delete", "upsert"]
        names += ["drop_column"] if self.extra else ["add_column"]
        getattr(self, self.draw(st.sampled_from(names)))(writer)
        self.check()

    def some_keys(self) -> list[int]:
        keys = sorted(self.model.rows)
        return sorted(self.draw(st.sets(st.sampled_from(keys), min_size=1))) if keys else []

    def append(self, writer: Any) -> None:
        version = lt.open_table(self.path).version + 1
        keys = self.model.insert(self.draw(st.integers(1, 5)), version)
        writer.append(some_rows(keys), self.draw(st.integers(1, 4)))

    def delete(self, writer: Any) -> None:
        if keys := self.some_keys():
            writer.delete(listed(keys))
            for key in keys:
                del self.model.rows[key]

    def update(self, writer: Any) -> None:
        if keys := self.some_keys():
            x = self.draw(st.integers(1, 99))
            writer.update(x, listed(keys))
            self.model.change(keys, lt.open_table(self.path).version, x)

    def upsert(self, writer: Any) -> None:
        # One new key: in which order several are inserted is up to the writer.
        if self.extra or not (keys := self.some_keys()):
            return
        x = self.draw(st.integers(1, 99))
        writer.upsert(some_rows([*keys, self.model.next_key], x))
        version = lt.open_table(self.path).version
        self.model.change(keys, version, x)
        (new,) = self.model.insert(1, version)
        self.model.rows[new] = replace(self.model.rows[new], x=x)

    def add_column(self, writer: Any) -> None:
        self.extra = 1
        writer.add_column("extra")
        self.model.change(list(self.model.rows), lt.open_table(self.path).version)

    def drop_column(self, writer: Any) -> None:
        self.extra = 0
        writer.drop_column("extra")

    def compact(self, writer: Any) -> None:
        writer.compact()

    def restore(self, writer: Any) -> None:
        version = self.draw(st.sampled_from(sorted(self.past)))
        writer.restore(version)
        old = self.past[version]
        self.model.rows = dict(old.rows)
        self.extra = len(lt.open_table(self.path).schema) - 2

    def overwrite(self, writer: Any) -> None:
        self.extra = 0
        self.model.rows = {}
        version = lt.open_table(self.path).version + 1
        writer.overwrite(some_rows(self.model.insert(3, version)))

    def check(self) -> None:
        table, dataset = lt.open_table(self.path), lance.dataset(self.path)
        expected = self.model.told()
        for found in (table.scan(COLUMNS).to_arrow(), dataset.to_table(columns=COLUMNS)):
            columns = [found[name].to_pylist() for name in COLUMNS]
            told = {key: tuple(rest) for key, *rest in zip(*columns, strict=True)}
            assert told == expected
            assert found.num_rows == len(expected)
        if expected:
            ids = [row[1] for row in expected.values()]
            taken = table.take(row_ids=ids, columns=["id"])["id"].to_pylist()
            assert taken == list(expected)
        self.past[table.version] = Model(dict(self.model.rows))


def run_history(data: Any, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder) / "t", data.draw)
        for _ in range(data.draw(st.integers(1, steps))):
            history.step()


@pytest.mark.slow
@given(st.data())
@settings(max_examples=8, deadline=None)
def test_rows_keep_who_they_are(data: Any) -> None:
    run_history(data, 8)


@pytest.mark.soak
@given(st.data())
@settings(max_examples=400, deadline=None)
def test_rows_keep_who_they_are_for_long(data: Any) -> None:
    run_history(data, 20)
