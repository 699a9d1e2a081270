"""Columns added, cast, renamed and dropped by us and by pylance in turn, between changes of rows.

A dict of plain rows is changed along; both readers must show what it holds.
"""

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable
from lancetable.format.schema.project import resolve

pytestmark = pytest.mark.oracle


class Pair:
    """A table, and the rows it should hold by id."""

    def __init__(self, uri, stable, version):
        self.uri = uri
        rows = [{"id": n, "a": n * 3, "s": f"s{n}", "st": {"x": n, "y": str(n)}} for n in range(20)]
        lance.write_dataset(
            pa.Table.from_pylist(rows),
            uri,
            max_rows_per_file=6,
            data_storage_version=version,
            enable_stable_row_ids=stable,
        )
        self.rows = {row["id"]: row for row in rows}
        self.names = ["id", "a", "s", "st"]
        self.numbers = ["a"]
        self.count = 0

    @property
    def ours(self):
        return lancetable.open_table(self.uri)

    @property
    def theirs(self):
        return lance.dataset(self.uri)

    def fresh(self):
        self.count += 1
        return f"c{self.count}"

    def check(self):
        self.theirs.validate()
        names = [*self.names, "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
        theirs = self.theirs.scanner(columns=names).to_table()
        assert self.theirs.schema.names == self.names
        assert self.ours.scan(names).to_arrow().to_pylist() == theirs.to_pylist()
        found = {row["id"]: {name: row[name] for name in self.names} for row in theirs.to_pylist()}
        assert found == self.rows


def add_sql(pair, is_ours, seed):
    name, number = pair.fresh(), pair.numbers[seed % len(pair.numbers)]
    (pair.ours.columns.add if is_ours else pair.theirs.add_columns)({name: f"{number} + {seed}"})
    pair.names.append(name)
    pair.numbers.append(name)
    for row in pair.rows.values():
        row[name] = None if row[number] is None else row[number] + seed


def add_nulls(pair, is_ours, seed):
    del seed
    name = pair.fresh()
    (pair.ours.columns.add if is_ours else pair.theirs.add_columns)(pa.schema([(name, pa.int64())]))
    pair.names.append(name)
    pair.numbers.append(name)
    for row in pair.rows.values():
        row[name] = None


def add_joined(pair, is_ours, seed):
    name = pair.fresh()
    data = pa.table({"id": list(range(seed, 30)), name: list(range(30 - seed))})
    if is_ours:
        pair.ours.columns.add(data, on="id")
    else:
        pair.theirs.merge(data, "id")
    pair.names.append(name)
    pair.numbers.append(name)
    for row in pair.rows.values():
        row[name] = row["id"] - seed if seed <= row["id"] < 30 else None


def drop(pair, is_ours, seed):
    if len(pair.numbers) < 2:
        return
    name = pair.numbers.pop(seed % len(pair.numbers))
    (pair.ours.columns.drop if is_ours else pair.theirs.drop_columns)([name])
    pair.names.remove(name)
    for row in pair.rows.values():
        del row[name]


def rename(pair, is_ours, seed):
    old, new = pair.numbers[seed % len(pair.numbers)], pair.fresh()
    if is_ours:
        pair.ours.columns.rename(old, new)
    else:
        pair.theirs.alter_columns({"path": old, "name": new})
    pair.names[pair.names.index(old)] = new
    pair.numbers[pair.numbers.index(old)] = new
    for id_, row in pair.rows.items():
        pair.rows[id_] = {(new if name == old else name): value for name, value in row.items()}


def cast(pair, is_ours, seed):
    name = pair.numbers[seed % len(pair.numbers)]
    type_ = [pa.int32(), pa.int64()][seed % 2]
    if is_ours:
        pair.ours.columns.cast(name, type_)
    else:
        pair.theirs.alter_columns({"path": name, "data_type": type_})


def reorder(pair, is_ours, seed):
    del is_ours
    turn = seed % len(pair.names)
    pair.names = pair.names[turn:] + pair.names[:turn]
    pair.ours.columns.reorder(pair.names)


def replace(pair, is_ours, seed):
    del is_ours
    name = pair.numbers[seed % len(pair.numbers)]
    pair.ours.columns.replace({name: f"id + {seed}"})
    for row in pair.rows.values():
        row[name] = row["id"] + seed


def delete(pair, is_ours, seed):
    if not any(id_ % 7 == seed % 7 for id_ in pair.rows):
        return
    (pair.ours if is_ours else pair.theirs).delete(f"id % 7 = {seed % 7}")
    pair.rows = {id_: row for id_, row in pair.rows.items() if id_ % 7 != seed % 7}


def update(pair, is_ours, seed):
    name, where = pair.numbers[seed % len(pair.numbers)], f"id % 3 = {seed % 3}"
    if is_ours:
        pair.ours.update({name: "id"}, where, mode=["rows", "columns"][seed % 2])
    else:
        pair.theirs.update({name: "id"}, where=where)
    for row in pair.rows.values():
        if row["id"] % 3 == seed % 3:
            row[name] = row["id"]


def merge(pair, is_ours, seed):
    ids = [seed, seed + 15, 100 + seed]
    schema = pair.theirs.schema
    full = [
        dict.fromkeys(pair.names) | {"id": id_, "s": "merged", "st": {"x": 0, "y": None}}
        for id_ in ids
    ]
    data = pa.Table.from_pylist(full, schema)
    if is_ours:
        builder = pair.ours.merge(data, on="id")
        builder.when_matched_update_all().when_not_matched_insert_all().execute()
    else:
        builder = pair.theirs.merge_insert("id")
        builder.when_matched_update_all().when_not_matched_insert_all().execute(data)
    pair.rows.update({row["id"]: row for row in full})


STEPS = [add_sql, add_nulls, add_joined, drop, rename, cast, reorder, replace]
STEPS += [delete, update, merge]


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(STEPS), st.integers(0, 12)),
        min_size=2,
        max_size=7,
    ),
    st.booleans(),
    st.sampled_from(["2.0", "2.1", "2.2"]),
)
def test_columns_and_rows_in_turn(tmp_path_factory, steps, stable, version):
    pair = Pair(str(tmp_path_factory.mktemp("columns") / "t"), stable, version)
    for is_ours, step, seed in steps:
        step(pair, is_ours, seed)
        pair.check()


def test_nested_columns(tmp_path):
    pair = Pair(str(tmp_path / "t"), stable=True, version="2.1")
    table = pair.ours
    table.columns.add({"st.z": "st.x * 2"})
    table.columns.cast("st.x", pa.string())
    table.columns.rename("st.y", "why")
    table.delete("id % 4 = 0")
    table.update({"s": "'new'"}, "id % 5 = 0")
    table.columns.drop(["st.why"])
    dataset = lance.dataset(pair.uri)
    dataset.validate()
    found = {row["id"]: row for row in dataset.to_table().to_pylist()}
    assert found == {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert found[5]["st"] == {"x": "5", "z": 10}
    assert len(found) == 15
    dataset.drop_columns(["st.z"])
    dataset.add_columns({"n": "st.x"})
    assert table.refresh().scan(["n"]).to_arrow()["n"].to_pylist()[0] == "1"


def test_what_each_change_writes_is_what_pylance_writes(tmp_path):
    """The same changes by both give the same operations, schemas, field ids and files."""
    pairs = [Pair(str(tmp_path / name), stable=False, version="2.1") for name in ("o", "t")]
    steps = [(add_sql, 1), (add_nulls, 0), (drop, 0), (cast, 0), (rename, 1), (add_joined, 3)]
    for step, seed in steps:
        shapes = []
        for pair, is_ours in zip(pairs, (True, False), strict=True):
            step(pair, is_ours, seed)
            snapshot = pair.ours._snapshot
            operation = snapshot.transaction().operation
            shapes.append(
                (
                    type(operation).__name__,
                    [
                        (field.name, field.id, field.logical_type)
                        for field in snapshot.manifest.schema.walk()
                    ],
                    [
                        sorted(sorted(file.fields) for file in fragment.files)
                        for fragment in snapshot.manifest.fragments
                    ],
                )
            )
        assert shapes[0] == shapes[1], step.__name__


def test_forbidden_nulls_are_known_to_pylance(tmp_path):
    pair = Pair(str(tmp_path / "t"), stable=False, version="2.1")
    pair.ours.columns.set_nullable("id", nullable=False)
    assert not lance.dataset(pair.uri).schema.field("id").nullable
    assert not resolve(pair.ours._snapshot.manifest.schema, "id")[-1].nullable
    lance.dataset(pair.uri).alter_columns({"path": "id", "nullable": True})
    assert pair.ours.schema.field("id").nullable
