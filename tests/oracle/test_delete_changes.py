"""Rows deleted, updated and merged by us and by pylance in turn: both read the same, the right one.

Every sequence is applied to a plain dict of rows too, which is what both readers must show.
"""

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable

pytestmark = pytest.mark.oracle

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("v", pa.int32()),
        ("s", pa.string()),
        ("l", pa.list_(pa.float32())),
        ("st", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ("vec", pa.list_(pa.float32(), 2)),
    ]
)
LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def row(id_, seed, version="2.1"):
    # Files of version 2.0 do not store which structs are null.
    is_missing = seed % 6 == 0 and version != "2.0"
    return {
        "id": id_,
        "v": None if seed % 5 == 0 else seed,
        "s": None if seed % 7 == 0 else f"text {seed}" * (seed % 3),
        "l": None if seed % 4 == 0 else [seed / 2] * (seed % 4),
        "st": None if is_missing else {"a": seed, "b": str(seed)},
        "vec": None if seed % 9 == 0 else [seed, -seed],
    }


def data(ids, seed, version="2.1"):
    return pa.Table.from_pylist([row(id_, id_ + seed, version) for id_ in ids], SCHEMA)


class Ours:
    """Changes through lancetable."""

    def __init__(self, uri, version="2.1"):
        self.table = lancetable.open_table(uri)
        self.version = version

    def append(self, ids, seed):
        self.table.append(data(ids, seed, self.version))

    def delete(self, where):
        self.table.delete(where)

    def update(self, where):
        self.table.update({"v": "v + 1", "s": "'set'"}, where)

    def update_columns(self, where):
        self.table.update({"v": "v + 1", "s": "'set'"}, where, mode="columns")

    def merge(self, ids, seed):
        merge = self.table.merge(data(ids, seed, self.version), on=["id"])
        merge.when_matched_update_all().when_not_matched_insert_all().execute()


class Theirs:
    """Changes through pylance."""

    def __init__(self, uri, version="2.1"):
        self.dataset = lance.dataset(uri)
        self.version = version

    def append(self, ids, seed):
        lance.write_dataset(data(ids, seed, self.version), self.dataset.uri, mode="append")

    def delete(self, where):
        self.dataset.delete(where)

    def update(self, where):
        self.dataset.update({"v": "v + 1", "s": "'set'"}, where=where)

    update_columns = update

    def merge(self, ids, seed):
        merge = self.dataset.merge_insert("id")
        source = data(ids, seed, self.version)
        merge.when_matched_update_all().when_not_matched_insert_all().execute(source)


def compare(uri, model):
    dataset = lance.dataset(uri)
    dataset.validate()
    names = [*SCHEMA.names, *LINEAGE]
    theirs = dataset.scanner(columns=names).to_table()
    ours = lancetable.open_table(uri).scan(names).to_arrow()
    assert ours.to_pylist() == theirs.to_pylist()
    found = {one["id"]: {name: one[name] for name in SCHEMA.names} for one in theirs.to_pylist()}
    assert theirs.num_rows == len(model)
    assert found == model
    if model:
        addresses = lancetable.open_table(uri).scan(["id", "_rowid"]).to_arrow()
        taken = lancetable.open_table(uri).take(row_ids=addresses["_rowid"], columns=["id"])
        assert taken["id"].to_pylist() == addresses["id"].to_pylist()


def changed(one):
    return one | {"v": None if one["v"] is None else one["v"] + 1, "s": "set"}


def apply(writer, model, name, ids, seed):
    """Make one change of the table and of the model."""
    low, high = min(ids), max(ids)
    where = f"id between {low} and {high} and id % 2 = {seed % 2}"
    hits = [id_ for id_ in model if low <= id_ <= high and id_ % 2 == seed % 2]
    if name == "append":
        fresh = [id_ for id_ in ids if id_ not in model] or [1000 + seed + len(model)]
        fresh = [id_ for id_ in fresh if id_ not in model]
        if fresh:
            writer.append(fresh, seed)
            model.update({id_: row(id_, id_ + seed, writer.version) for id_ in fresh})
    elif name == "delete":
        writer.delete(where)
        for id_ in hits:
            del model[id_]
    elif name == "merge":
        writer.merge(ids, seed)
        model.update({id_: row(id_, id_ + seed, writer.version) for id_ in ids})
    else:
        getattr(writer, name)(where)
        model.update({id_: changed(model[id_]) for id_ in hits})


STEPS = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from(["append", "delete", "update", "update_columns", "merge"]),
        st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25)
@given(STEPS, st.booleans(), st.sampled_from(["2.0", "2.1", "2.2"]))
def test_changes_in_turn(tmp_path_factory, steps, stable, version):
    uri = str(tmp_path_factory.mktemp("turn") / "t")
    start = list(range(0, 30, 2))
    lance.write_dataset(
        data(start, 1, version),
        uri,
        max_rows_per_file=6,
        data_storage_version=version,
        enable_stable_row_ids=stable,
    )
    model = {id_: row(id_, id_ + 1, version) for id_ in start}
    for is_ours, name, ids, seed in steps:
        writer = Ours(uri, version) if is_ours else Theirs(uri, version)
        apply(writer, model, name, ids, seed)
        compare(uri, model)


CHANGES = [
    ("delete", [3, 12], 1),
    ("update", [4, 20], 0),
    ("merge", [2, 4, 8, 70, 71], 5),
    ("update", [2, 70], 0),
    ("delete", [8, 16], 0),
    ("merge", [1, 2, 80], 3),
]


def test_row_ids_and_versions_are_those_of_pylance(tmp_path):
    uris = [str(tmp_path / name) for name in ("ours", "theirs")]
    models: list[dict[int, dict[str, object]]] = [{}, {}]
    for uri, model in zip(uris, models, strict=True):
        lance.write_dataset(
            data(range(24), 1), uri, max_rows_per_file=7, enable_stable_row_ids=True
        )
        model.update({id_: row(id_, id_ + 1) for id_ in range(24)})
    for name, ids, seed in CHANGES:
        apply(Ours(uris[0]), models[0], name, ids, seed)
        apply(Theirs(uris[1]), models[1], name, ids, seed)
        found = [
            {
                one["id"]: one
                for one in lance.dataset(uri)
                .scanner(columns=["id", *LINEAGE])
                .to_table()
                .to_pylist()
            }
            for uri in uris
        ]
        assert found[0] == found[1], (name, ids)


def test_an_index_stays_right(tmp_path):
    uri = str(tmp_path / "t")
    lance.write_dataset(data(range(40), 1), uri, max_rows_per_file=10, enable_stable_row_ids=True)
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    lance.dataset(uri).create_scalar_index("v", "BTREE")
    table = lancetable.open_table(uri)
    table.delete("id between 5 and 25 and id % 3 = 0")
    table.update({"v": "v + 1000"}, "id % 4 = 0")
    table.update({"v": "-v"}, "id > 30", mode="columns")
    merge = table.merge(data([1, 2, 60], 9), on="id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    dataset = lance.dataset(uri)
    for where in ("id = 4", "id = 60", "v > 900", "v < 0", "v = 11", "id between 0 and 40"):
        indexed = dataset.to_table(filter=where, columns=["id", "v"]).to_pylist()
        plain = dataset.scanner(
            filter=where, columns=["id", "v"], use_scalar_index=False
        ).to_table()
        assert sorted(map(str, indexed)) == sorted(map(str, plain.to_pylist())), where
        ours = lancetable.open_table(uri).scan(["id", "v"], where=where).to_arrow().to_pylist()
        assert sorted(map(str, ours)) == sorted(map(str, indexed)), where


@pytest.mark.parametrize("kind", ["plain", "primary key"])
def test_merges_of_both_writers_insert_a_key_once(tmp_path, kind):
    uri = str(tmp_path / "t")
    metadata = {"lance-schema:unenforced-primary-key": "true"} if kind == "primary key" else {}
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False, metadata=metadata), ("v", pa.int64())]
    )
    lance.write_dataset(pa.Table.from_pylist([{"id": 0, "v": 0}], schema), uri)
    stale = lancetable.open_table(uri)
    new = pa.Table.from_pylist([{"id": n, "v": 1} for n in range(5)], schema)
    merge = lance.dataset(uri).merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(new)
    result = (
        stale.merge(new, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    )
    assert (result.inserted, result.updated) == (0, 5)
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == [0, 1, 2, 3, 4]
