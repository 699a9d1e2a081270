"""A machine that changes a table at random and keeps the same rows in a plain list.

Who carries a change out is an actor, so that the same machine can let two libraries change one
table in turn.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import lancetable as lt
from lancetable.errors import InputError
from tests.properties.rows_model import (
    FLOATS,
    INTEGERS,
    LIST,
    STRUCT,
    TEXTS,
    VECTOR,
    Clause,
    Merge,
    Row,
    State,
    Term,
    Values,
    expression,
    merged,
    predicate,
    rows_of,
)

MOST_ROWS = 120
ID_COLUMNS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
FIRST = {"id": pa.int64(), "x": pa.int32(), "s": pa.string(), "f": pa.float32(), "l": LIST}
NEW_TYPES = [pa.int64(), pa.int32(), pa.string(), pa.float64(), LIST, VECTOR]
CASTS = {
    pa.int32(): pa.int64(),
    pa.int64(): pa.int32(),
    pa.string(): pa.large_string(),
    pa.large_string(): pa.string(),
    pa.float32(): pa.float64(),
    pa.float64(): pa.float32(),
}
SHAPES = [
    *("upsert", "insert", "update some", "delete", "mirror", "update others", "delete or update"),
    *("insert values", "evolve"),
]


class Actor(Protocol):
    """Someone who can change the table at an address."""

    def can(self, step: str) -> bool:
        """Say whether a change is possible."""
        ...

    def append(self, uri: str, rows: pa.Table, form: str) -> None: ...
    def overwrite(self, uri: str, rows: pa.Table) -> None: ...
    def delete(self, uri: str, where: str) -> int: ...
    def update(self, uri: str, values: Mapping[str, str], where: str | None, mode: str) -> int: ...
    def merge(self, uri: str, merge: Merge) -> dict[str, int]: ...
    def add_computed(self, uri: str, columns: Mapping[str, str]) -> None: ...
    def add_nulls(self, uri: str, field: pa.Field) -> None: ...
    def drop(self, uri: str, name: str) -> None: ...
    def rename(self, uri: str, old: str, new: str) -> None: ...
    def cast(self, uri: str, name: str, type_: pa.DataType) -> None: ...
    def restore(self, uri: str, version: int) -> None: ...
    def configure(self, uri: str, entries: Mapping[str, str | None]) -> None: ...
    def compact(self, uri: str, target_rows: int, deleted_share: float) -> None: ...


class Ours:
    """This library; every change says the version that it made, and the handle is at it."""

    def can(self, step: str) -> bool:
        return True

    def _open(self, uri: str) -> lt.Table:
        return lt.open_table(uri)

    def _made(self, table: lt.Table, result: Any, before: int) -> None:
        assert result.version == table.version
        assert result.version == before + 1, f"version {result.version} after {before}"
        assert result.attempts == 1

    def append(self, uri: str, rows: pa.Table, form: str) -> None:
        table = self._open(uri)
        before = table.version
        data: Any = rows
        if form == "batches":
            data = iter(rows.to_batches(max_chunksize=3) or rows.schema.empty_table().to_batches())
        elif form == "reader":
            data = rows.to_reader(max_chunksize=2)
        elif form == "dicts" and rows.num_rows:
            data = rows.to_pylist()
        if form == "batches" and not rows.num_rows:
            data = rows
        result = table.append(data, merge_schema=form == "merge")
        assert result.rows == rows.num_rows
        self._made(table, result, before)

    def overwrite(self, uri: str, rows: pa.Table) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.overwrite(rows), before)

    def overwrite_where(self, uri: str, rows: pa.Table, where: str, *, fits: bool) -> None:
        table = self._open(uri)
        before = table.version
        if not fits:
            with pytest.raises(InputError, match="not match the predicate"):
                table.overwrite(rows, where=where)
            assert table.refresh().version == before
        self._made(table, table.overwrite(rows, where=where, check=fits), before)

    def truncate(self, uri: str) -> int:
        table = self._open(uri)
        before = table.version
        result = table.truncate()
        self._made(table, result, before)
        return result.rows

    def delete(self, uri: str, where: str) -> int:
        table = self._open(uri)
        before = table.version
        result = table.delete(where)
        if result.rows:
            self._made(table, result, before)
        return result.rows

    def update(self, uri: str, values: Mapping[str, str], where: str | None, mode: str) -> int:
        table = self._open(uri)
        before = table.version
        result = table.update(values, where, mode=mode)
        if result.rows:
            self._made(table, result, before)
        return result.rows

    def merge(self, uri: str, merge: Merge) -> dict[str, int]:
        table = self._open(uri)
        before = table.version
        schema = pa.schema(list(merge.columns.items()))
        builder = table.merge(pa.Table.from_pylist(list(merge.source), schema), on=[merge.key])
        for clause in merge.clauses:
            builder = _described(builder, clause)
        if merge.evolves:
            builder = builder.with_schema_evolution()
        result = builder.with_duplicates().execute()
        counts = {name: getattr(result, name) for name in ("inserted", "updated", "deleted")}
        if any(counts.values()):
            self._made(table, result, before)
        return counts

    def add_computed(self, uri: str, columns: Mapping[str, str]) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.columns.add(columns), before)

    def add_nulls(self, uri: str, field: pa.Field) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.columns.add(field), before)

    def add_by_function(self, uri: str, name: str, source: str) -> None:
        table = self._open(uri)
        before = table.version
        options = lt.FunctionOptions(
            inputs=(source,), schema=pa.schema([(name, pa.bool_())]), batch_rows=5
        )

        def is_missing(batch: pa.RecordBatch) -> dict[str, pa.Array]:
            return {name: batch.column(0).is_null()}

        self._made(table, table.columns.add(is_missing, function=options), before)

    def add_joined(self, uri: str, rows: pa.Table, key: str) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.columns.add(rows, on=[key]), before)

    def drop(self, uri: str, name: str) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.columns.drop([name]), before)

    def rename(self, uri: str, old: str, new: str) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.columns.rename(old, new), before)

    def reorder(self, uri: str, names: Sequence[str]) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.columns.reorder(names), before)

    def cast(self, uri: str, name: str, type_: pa.DataType) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.columns.cast(name, type_), before)

    def replace(self, uri: str, name: str, sql: str) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.columns.replace({name: sql}), before)

    def restore(self, uri: str, version: int) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.restore(version), before)

    def configure(self, uri: str, entries: Mapping[str, str | None]) -> None:
        table = self._open(uri)
        before = table.version
        self._made(table, table.config.update(entries), before)

    def compact(self, uri: str, target_rows: int, deleted_share: float, **more: Any) -> None:
        table = self._open(uri)
        before = table.version
        settings = {"target_rows": target_rows, "deleted_share": deleted_share, **more}
        told = table.compact(dry_run=True, **settings)
        result = table.compact(**settings)
        assert (told.fragments_removed, told.rows) == (result.fragments_removed, result.rows)
        if result.fragments_removed:
            assert result.fragments_added == told.fragments_added
            self._made(table, result, before)


def _described(builder: Any, clause: Clause) -> Any:
    condition = None if clause.condition is None else clause.condition.sql
    values = None
    if clause.values is not None:
        values = {name: term.sql for name, term in clause.values.items()}
    name = {"matched": "matched", "not matched": "not_matched"}.get(
        clause.when, "not_matched_by_source"
    )
    if clause.act == "delete":
        return getattr(builder, f"when_{name}_delete")(condition)
    if values is None:
        return getattr(builder, f"when_{name}_{clause.act}_all")(condition)
    return getattr(builder, f"when_{name}_{clause.act}")(values, condition)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((key, repr(_frozen(inner))) for key, inner in value.items()))
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return value


def _ordered(rows: Sequence[Values]) -> list[str]:
    return sorted(repr(_frozen(row)) for row in rows)


def _difference(found: Sequence[Values], expected: Sequence[Values]) -> str:
    left, right = _ordered(found), _ordered(expected)
    extra = [row for row in left if row not in right]
    missing = [row for row in right if row not in left]
    return f"the table has {extra}, the model {missing}"


class TableMachine(RuleBasedStateMachine):
    """Random changes; after each one the table is its model."""

    actors: ClassVar[tuple[Actor, ...]] = (Ours(),)

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.uri = f"{self.folder}/t"
        self.state = State({})
        self.history: dict[int, State] = {}
        self.version = 0
        self.highest = -1
        self.storage = "2.1"
        self.stable = False
        self.counter = 0
        self.is_settled = False

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @initialize(
        data=st.data(),
        storage=st.sampled_from(["2.0", "2.1", "2.2"]),
        stable=st.booleans(),
        each=st.sampled_from([4, 1000]),
    )
    def create(self, data: st.DataObject, storage: str, stable: bool, each: int) -> None:
        """Create a table; 2.0 cannot hold nulls of structs, so it gets none."""
        self.storage, self.stable = storage, stable
        columns = dict(FIRST) if storage == "2.0" else {**FIRST, "n": STRUCT}
        self.state = State(columns)
        rows = data.draw(rows_of(columns))
        lt.create_table(
            self.uri,
            self.state.table(rows),
            storage_version=storage,
            stable_row_ids=stable,
            max_rows_per_file=each,
        )
        self.settle([Row(row) for row in rows], ordered=True)

    def actor(self, data: st.DataObject, step: str) -> Actor:
        """Return who does the next step."""
        able = [number for number, one in enumerate(self.actors) if one.can(step)]
        return self.actors[data.draw(st.sampled_from(able), label="actor")]

    def fresh(self) -> str:
        """Return a name for a column that was never used."""
        self.counter += 1
        return f"c{self.counter}"

    def settle(
        self,
        rows: Sequence[Row],
        *,
        columns: Mapping[str, pa.DataType] | None = None,
        config: Mapping[str, str] | None = None,
        ordered: bool = False,
        has_version: bool = True,
        relabels: bool = False,
    ) -> None:
        """Compare the table with what it should be, and take over what only it can know."""
        self.is_settled = False
        state = replace(self.state, rows=rows)
        if columns is not None:
            state = replace(state, columns=columns)
        if config is not None:
            state = replace(state, config=config)
        table = lt.open_table(self.uri)
        if has_version:
            assert table.version > self.version
        else:
            assert table.version == self.version
        self.version = table.version
        self.check_schema(table, state)
        assert table.count() == len(rows)
        assert dict(table.config) == dict(state.config)
        names = list(state.columns)
        columns_read = [*names, *ID_COLUMNS] if self.stable else names
        found = table.scan(columns_read).to_arrow().to_pylist()
        plain = [{name: row[name] for name in names} for row in found]
        wanted = [row.values for row in rows]
        expected = [{name: row[name] for name in names} for row in wanted]
        assert _ordered(plain) == _ordered(expected), _difference(plain, expected)
        if ordered:
            assert list(map(_frozen, plain)) == list(map(_frozen, expected)), "another order"
        self.state = replace(
            state,
            rows=self.identified(found, plain, rows, relabels=relabels)
            if self.stable
            else [Row(row) for row in plain],
        )
        self.history[self.version] = self.state
        self.check_reads(table)
        self.check_others()
        self.is_settled = True

    def identified(
        self, found: list[Values], plain: list[Values], rows: Sequence[Row], *, relabels: bool
    ) -> list[Row]:
        """Check that rows kept their ids and versions; return them with those of new rows."""
        known = {row.id: row for row in rows if row.id is not None}
        ids = [row["_rowid"] for row in found]
        assert len(set(ids)) == len(ids), "a row id is used twice"
        made = []
        for row, values in zip(found, plain, strict=True):
            old = known.pop(row["_rowid"], None)
            created, updated = row[ID_COLUMNS[1]], row[ID_COLUMNS[2]]
            if old is None:
                assert row["_rowid"] > self.highest, "a new row has an old id"
                assert created == self.version
                assert updated == self.version
            else:
                assert _frozen(values) == _frozen({name: old.values[name] for name in values})
                assert created == old.created
                if relabels:
                    assert updated in {old.updated, self.version}
                else:
                    assert updated == old.updated
            made.append(Row(values, row["_rowid"], created, updated))
        assert not known, "rows lost their ids"
        self.highest = max([self.highest, *ids])
        return made

    def check_schema(self, table: lt.Table, state: State) -> None:
        """Compare names, order and types."""
        assert table.schema.names == list(state.columns)
        for name, type_ in state.columns.items():
            assert table.schema.field(name).type == type_, name

    def check_reads(self, table: lt.Table) -> None:
        """Compare single rows and a filter with the whole."""
        rows = self.state.rows
        if not rows:
            return
        places = [len(rows) - 1, 0, len(rows) // 2]
        names = list(self.state.columns)
        taken = table.take(places, columns=names).to_pylist()
        assert taken == [rows[place].values for place in places]
        if self.stable:
            by_id = table.take(row_ids=[rows[place].id for place in places], columns=names)
            assert by_id.to_pylist() == taken
        if "id" in self.state.columns:
            expected = sum(1 for row in rows if (row.values["id"] or 0) > 10)
            assert table.count("id > 10") == expected

    def check_others(self) -> None:
        """Ask other readers; there are none here."""

    def is_small(self) -> bool:
        """Say whether the table may grow."""
        return len(self.state.rows) < MOST_ROWS

    @precondition(lambda self: self.is_small())
    @rule(data=st.data(), form=st.sampled_from(["table", "batches", "reader", "dicts", "part"]))
    def append(self, data: st.DataObject, form: str) -> None:
        """Add rows, of all or of some columns."""
        actor = self.actor(data, f"append {form}")
        columns = dict(self.state.columns)
        if form == "part":
            kept = data.draw(st.sets(st.sampled_from(sorted(columns)), min_size=1))
            columns = {name: columns[name] for name in columns if name in kept}
        rows = data.draw(rows_of(columns))
        if form == "dicts" and not rows:
            form = "table"
        given = pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items())))
        actor.append(self.uri, given, form)
        whole = [{**dict.fromkeys(self.state.columns), **row} for row in rows]
        self.settle([*self.state.rows, *map(Row, whole)], ordered=True)

    @precondition(lambda self: self.is_small())
    @rule(data=st.data(), type_=st.sampled_from(NEW_TYPES))
    def append_new_column(self, data: st.DataObject, type_: pa.DataType) -> None:
        """Add rows with a column that the table lacks."""
        columns = {**self.state.columns, self.fresh(): type_}
        rows = data.draw(rows_of(columns, 5))
        given = pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items())))
        Ours().append(self.uri, given, "merge")
        old = [replace(row, values={**dict.fromkeys(columns), **row.values})
               for row in self.state.rows]  # fmt: skip
        self.settle([*old, *map(Row, rows)], columns=columns, ordered=True, relabels=True)

    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        """Replace everything, with other columns perhaps."""
        columns = dict(FIRST)
        if data.draw(st.booleans()):
            columns["y"] = data.draw(st.sampled_from(NEW_TYPES))
        rows = data.draw(rows_of(columns))
        self.actor(data, "overwrite").overwrite(self.uri, State(columns).table(rows))
        self.settle([Row(row) for row in rows], columns=columns, ordered=True)

    @rule(data=st.data())
    def overwrite_where(self, data: st.DataObject) -> None:
        """Replace the rows for which a predicate holds."""
        where = predicate(data, self.state)
        rows = data.draw(rows_of(self.state.columns, 6))
        fits = all(where.value(row) is True for row in rows)
        Ours().overwrite_where(self.uri, self.state.table(rows), where.sql, fits=fits)
        kept = [row for row in self.state.rows if where.value(row.values) is not True]
        self.settle([*kept, *map(Row, rows)], ordered=True)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Delete the rows for which a predicate holds."""
        where = predicate(data, self.state)
        gone = self.actor(data, "delete").delete(self.uri, where.sql)
        kept = [row for row in self.state.rows if where.value(row.values) is not True]
        assert gone == len(self.state.rows) - len(kept)
        version = lt.open_table(self.uri).version
        self.settle(kept, ordered=True, has_version=bool(gone) or version > self.version)

    @rule(data=st.data(), mode=st.sampled_from(["rows", "columns"]), everywhere=st.booleans())
    def update(self, data: st.DataObject, mode: str, everywhere: bool) -> None:
        """Set columns of the rows for which a predicate holds."""
        where = None if everywhere else predicate(data, self.state)
        actor = self.actor(data, f"update {mode}")
        able = st.sampled_from(self.state.of_type([*INTEGERS, *TEXTS]))
        # In pylance one new value may see another one, depending on chance.
        names = data.draw(st.sets(able, min_size=1, max_size=2 if isinstance(actor, Ours) else 1))
        values = {
            name: expression(data, self.state, self.state.columns[name]) for name in sorted(names)
        }
        changed = actor.update(
            self.uri,
            {name: term.sql for name, term in values.items()},
            None if where is None else where.sql,
            mode,
        )
        rows = []
        matches = 0
        for row in self.state.rows:
            if where is not None and where.value(row.values) is not True:
                rows.append(row)
                continue
            matches += 1
            new = {name: term.value(row.values) for name, term in values.items()}
            rows.append(replace(row, values={**row.values, **new}, updated=self.version + 1))
        assert changed == matches
        version = lt.open_table(self.uri).version
        self.settle(
            rows,
            ordered=mode == "columns" and isinstance(actor, Ours),
            has_version=bool(matches) or version > self.version,
        )

    @precondition(lambda self: self.is_small() and "id" in self.state.columns)
    @rule(data=st.data(), shape=st.sampled_from(SHAPES))
    def merge(self, data: st.DataObject, shape: str) -> None:
        """Merge rows, by the id or another number."""
        actor = self.actor(data, f"merge {shape}")
        wanted = self.drawn_merge(data, shape, is_full=not isinstance(actor, Ours))
        counts = actor.merge(self.uri, wanted)
        state = self.state
        if wanted.evolves:
            state = replace(state, columns=wanted.columns)
            old = [replace(row, values={**dict.fromkeys(state.columns), **row.values})
                   for row in state.rows]  # fmt: skip
            state = replace(state, rows=old)
        rows, expected = merged(state, wanted, self.version + 1)
        assert counts == expected
        grew = state.columns != self.state.columns
        version = lt.open_table(self.uri).version
        self.settle(
            rows,
            columns=state.columns,
            has_version=grew or any(expected.values()) or version > self.version,
            relabels=grew,
        )

    def drawn_merge(self, data: st.DataObject, shape: str, *, is_full: bool) -> Merge:
        """Draw the rows of a merge; their keys are different, or null."""
        columns = dict(self.state.columns)
        if shape == "evolve":
            columns[self.fresh()] = data.draw(st.sampled_from(NEW_TYPES))
        elif not is_full and data.draw(st.booleans()):
            kept = {*data.draw(st.sets(st.sampled_from(sorted(columns)))), "id", "x"}
            columns = {name: type_ for name, type_ in columns.items() if name in kept}
        rows = data.draw(rows_of(columns, 10))
        once = {row["id"]: row for row in rows if row["id"] is not None}
        without = [] if is_full else [row for row in rows if row["id"] is None]
        return Merge(
            clauses_of(shape, columns),
            [*once.values(), *without],
            columns,
            "id",
            shape,
            evolves=shape == "evolve",
        )

    @precondition(lambda self: bool(self.state.of_type(TEXTS)))
    @rule(data=st.data())
    def add_computed(self, data: st.DataObject) -> None:
        """Add a column made of others."""
        name, actor = self.fresh(), self.actor(data, "add")
        term = expression(data, self.state, pa.string())
        if not isinstance(actor, Ours) and term.sql == "'new'":
            # What cannot be null becomes a column that must not be null.
            return
        actor.add_computed(self.uri, {name: term.sql})
        self._added(name, None, term.value)

    @rule(data=st.data(), type_=st.sampled_from(NEW_TYPES))
    def add_nulls(self, data: st.DataObject, type_: pa.DataType) -> None:
        """Add a column without values."""
        name = self.fresh()
        self.actor(data, "add").add_nulls(self.uri, pa.field(name, type_))
        self._added(name, type_, lambda _: None)

    @rule(data=st.data())
    def add_by_function(self, data: st.DataObject) -> None:
        """Add a column that a function gives."""
        name = self.fresh()
        source = data.draw(st.sampled_from(sorted(self.state.columns)))
        Ours().add_by_function(self.uri, name, source)
        self._added(name, pa.bool_(), lambda row: row[source] is None)

    @precondition(lambda self: "id" in self.state.columns)
    @rule(data=st.data())
    def add_joined(self, data: st.DataObject) -> None:
        """Add a column of other rows with the same id."""
        name = self.fresh()
        pairs = data.draw(st.dictionaries(st.integers(0, 25), st.integers(0, 9), max_size=8))
        given = pa.table(
            {
                "id": pa.array(list(pairs), self.state.columns["id"]),
                name: pa.array(list(pairs.values()), pa.int64()),
            }
        )
        Ours().add_joined(self.uri, given, "id")
        self._added(name, pa.int64(), lambda row: pairs.get(row["id"]))

    def _added(self, name: str, type_: pa.DataType | None, value: Any) -> None:
        if type_ is None:
            type_ = lt.open_table(self.uri).schema.field(name).type
            assert type_ in TEXTS
        rows = [replace(row, values={**row.values, name: value(row.values)})
                for row in self.state.rows]  # fmt: skip
        columns = {**self.state.columns, name: type_}
        self.settle(rows, columns=columns, ordered=True, relabels=True)

    @precondition(lambda self: len(self.state.columns) > 4)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        """Drop a column; those that predicates need stay."""
        able = [name for name in self.state.columns if name not in {"id", "x", "s"}]
        name = data.draw(st.sampled_from(able))
        self.actor(data, "drop").drop(self.uri, name)
        columns = {one: type_ for one, type_ in self.state.columns.items() if one != name}
        rows = [replace(row, values={one: row.values[one] for one in columns})
                for row in self.state.rows]  # fmt: skip
        self.settle(rows, columns=columns, ordered=True)

    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        """Give a column another name."""
        able = [name for name in self.state.columns if name not in {"id", "x"}]
        old, new = data.draw(st.sampled_from(able)), self.fresh()
        self.actor(data, "rename").rename(self.uri, old, new)
        self._renamed({old: new})

    def _renamed(self, names: Mapping[str, str]) -> None:
        columns = {names.get(one, one): type_ for one, type_ in self.state.columns.items()}
        rows = [
            replace(
                row, values={names.get(one, one): row.values[one] for one in self.state.columns}
            )
            for row in self.state.rows
        ]
        self.settle(rows, columns=columns, ordered=True)

    @rule(data=st.data())
    def reorder(self, data: st.DataObject) -> None:
        """Put the columns in another order."""
        names = data.draw(st.permutations(list(self.state.columns)))
        Ours().reorder(self.uri, names)
        columns = {name: self.state.columns[name] for name in names}
        rows = [replace(row, values={one: row.values[one] for one in columns})
                for row in self.state.rows]  # fmt: skip
        self.settle(rows, columns=columns, ordered=True)

    @rule(data=st.data())
    def cast(self, data: st.DataObject) -> None:
        """Give a column another type that holds its values."""
        name = data.draw(st.sampled_from(self.state.of_type([*INTEGERS, *TEXTS, *FLOATS])))
        type_ = CASTS[self.state.columns[name]]
        self.actor(data, "cast").cast(self.uri, name, type_)
        columns = {**self.state.columns, name: type_}
        self.settle(self.state.rows, columns=columns, ordered=True, relabels=True)

    @precondition(lambda self: bool(self.state.rows))
    @rule(data=st.data())
    def replace_column(self, data: st.DataObject) -> None:
        """Replace all values of a column."""
        name = data.draw(st.sampled_from(self.state.of_type([*INTEGERS, *TEXTS])))
        term = expression(data, self.state, self.state.columns[name])
        Ours().replace(self.uri, name, term.sql)
        rows = [replace(row, values={**row.values, name: term.value(row.values)})
                for row in self.state.rows]  # fmt: skip
        self.settle(rows, ordered=True, relabels=True)

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """Go back to an older version."""
        version = data.draw(st.sampled_from(sorted(self.history)))
        self.actor(data, "restore").restore(self.uri, version)
        old = self.history[version]
        self.settle(old.rows, columns=old.columns, config=old.config, ordered=True)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Remove all rows."""
        assert Ours().truncate(self.uri) == len(self.state.rows)
        self.settle([])

    @rule(data=st.data(), key=st.sampled_from(["k", "other key"]), value=st.sampled_from("vw"))
    def configure(self, data: st.DataObject, key: str, value: str) -> None:
        """Set or remove a setting."""
        removes = data.draw(st.booleans())
        entries = {key: None if removes else value}
        self.actor(data, "configure").configure(self.uri, entries)
        config = {one: text for one, text in self.state.config.items() if one != key}
        if not removes:
            config[key] = value
        self.settle(self.state.rows, config=config, ordered=True)

    @rule(
        data=st.data(),
        target_rows=st.sampled_from([3, 10, 1000]),
        deleted_share=st.sampled_from([0.0, 0.3, 1.0]),
    )
    def compact(self, data: st.DataObject, target_rows: int, deleted_share: float) -> None:
        """Join fragments; the rows stay, and so do their ids and versions."""
        actor = self.actor(data, "compact")
        more: dict[str, Any] = {}
        if isinstance(actor, Ours):
            names = self.state.of_type([*INTEGERS, *TEXTS])
            more = data.draw(
                st.sampled_from(
                    [{}, {}, {"copy_pages": False}, {"sort_by": names}, {"z_order_by": names[:2]}]
                )
            )
        actor.compact(self.uri, target_rows, deleted_share, **more)
        version = lt.open_table(self.uri).version
        self.settle(self.state.rows, has_version=version > self.version)

    @rule(data=st.data(), target_rows=st.sampled_from([3, 10, 1000]), is_sorted=st.booleans())
    def compact_meanwhile(self, data: st.DataObject, target_rows: int, is_sorted: bool) -> None:
        """Join fragments as they were before some rows were deleted and others changed."""
        stale = lt.open_table(self.uri)
        where, other = predicate(data, self.state), predicate(data, self.state)
        Ours().delete(self.uri, where.sql)
        rows = [row for row in self.state.rows if where.value(row.values) is not True]
        before = lt.open_table(self.uri).version
        changed = Ours().update(self.uri, {"x": "7"}, other.sql, "rows")
        rows = [
            replace(row, values={**row.values, "x": 7}, updated=before + 1)
            if changed and other.value(row.values) is True
            else row
            for row in rows
        ]
        more: Any = {"sort_by": ["s"]} if is_sorted and "s" in self.state.columns else {}
        stale.compact(target_rows=target_rows, deleted_share=0.0, **more)
        version = lt.open_table(self.uri).version
        self.settle(rows, has_version=version > self.version)

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """Read an older version."""
        version = data.draw(st.sampled_from(sorted(self.history)))
        old = self.history[version]
        found = lt.open_table(self.uri, version=version).scan().to_arrow()
        assert found.column_names == list(old.columns)
        assert _ordered(found.to_pylist()) == _ordered([row.values for row in old.rows])


def _less(both: Values) -> bool | None:
    left, right = both["target"]["x"], both["source"]["x"]
    return None if left is None or right is None else left < right


def _plus(both: Values) -> Any:
    value = both["source"]["x"]
    return None if value is None else value + 1


def clauses_of(shape: str, columns: Mapping[str, pa.DataType]) -> list[Clause]:
    """Return the clauses of a kind of merge."""
    target_odd = Term(
        "target.x % 2 = 1",
        lambda both: None if both["target"]["x"] is None else both["target"]["x"] % 2 == 1,
    )
    some = {"x": Term("source.x + 1", _plus)}
    upsert = [Clause("matched", "update"), Clause("not matched", "insert")]
    shapes = {
        "upsert": upsert,
        "evolve": upsert,
        "insert": [Clause("not matched", "insert")],
        "update some": [
            Clause("matched", "update", some, Term("target.x < source.x", _less)),
            Clause("not matched", "insert"),
        ],
        "delete": [Clause("matched", "delete")],
        "mirror": [*upsert, Clause("by source", "delete", condition=target_odd)],
        "update others": [Clause("by source", "update", {"x": Term("0", lambda _: 0)}, target_odd)],
        "delete or update": [
            Clause("matched", "delete", condition=target_odd),
            Clause("matched", "update"),
        ],
        "insert values": [
            Clause(
                "not matched",
                "insert",
                {"id": Term("source.id", lambda both: both["source"]["id"]), **some},
                Term("source.x is not null", lambda both: both["source"]["x"] is not None),
            )
        ],
    }
    return shapes[shape]
