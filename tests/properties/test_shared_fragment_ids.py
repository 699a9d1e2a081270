"""Tables of another writer with shared or disordered fragment ids behave like a list of rows."""

import shutil
import tempfile
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable as lt
from tests.manifests import edit_manifest, manifest_file, read_manifest, reorder_fragments

SIZES = (3, 1, 4, 2)
STEPS = ("append", "delete", "update", "update columns", "merge", "compact", "add", "config")


def _start(uri: str, ids: list[int], order: list[int], largest: int, *, stable: bool) -> list[int]:
    """Write a table whose manifest has these ids in this order, and return its rows."""
    rows: list[int] = []
    for number, size in enumerate(SIZES):
        new = list(range(10 * number, 10 * number + size))
        data = pa.table({"k": pa.array(new, pa.int64())})
        if number:
            lt.open_table(uri).append(data)
        else:
            lt.create_table(uri, data, stable_row_ids=stable)
        rows += new

    def change(message: Any) -> None:
        for fragment, id_ in zip(message.fragments, ids, strict=True):
            fragment.id = id_
        reorder_fragments(message, order)
        message.max_fragment_id = largest
        message.writer_version.library, message.writer_version.version = "lance", "0.20.0"

    edit_manifest(uri, change)
    return rows


def _changed(table: lt.Table, rows: list[int], step: str, key: int) -> list[int]:
    """Change the table, and return what its rows should be."""
    there, new = key in rows, max(rows, default=0) + 1000
    match step:
        case "append":
            table.append(pa.table({"k": pa.array([new], pa.int64())}))
            return [*rows, new]
        case "delete":
            assert table.delete(f"k = {key}").rows == there
            return [one for one in rows if one != key]
        case "update" | "update columns":
            mode = "columns" if step == "update columns" else "rows"
            table.update({"k": str(new)}, f"k = {key}", mode=mode)
            return [new if one == key else one for one in rows]
        case "merge":
            source = pa.table({"k": pa.array([key, new], pa.int64())})
            merge = table.merge(source, on="k")
            merge.when_matched_delete().when_not_matched_insert_all().execute()
            kept = [one for one in rows if one != key]
            return [*kept, *([] if there else [key]), new]
        case "compact":
            table.compact()
            return rows
        case "add":
            name = f"c{table.version}"
            table.columns.add({name: "k + 1"})
            table.columns.drop([name])
            return rows
        case _:
            table.config.update({"key": str(table.version)})
            return rows


@settings(max_examples=40, deadline=None)
@given(
    ids=st.lists(st.integers(0, 4), min_size=4, max_size=4),
    order=st.permutations(range(4)),
    largest=st.integers(0, 5),
    stable=st.booleans(),
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 33)), min_size=1, max_size=4),
)
def test_every_change_means_its_rows(ids, order, largest, stable, steps):
    folder = tempfile.mkdtemp()
    try:
        uri = f"{folder}/t"
        rows = _start(uri, ids, order, largest, stable=stable)
        for step, key in steps:
            rows = _changed(lt.open_table(uri), rows, step, key)
            table = lt.open_table(uri)
            found = table.scan(columns=["k", "_rowaddr", "_rowid"]).to_arrow()
            assert sorted(found["k"].to_pylist()) == sorted(rows)
            for name, by in (("_rowaddr", "row_addresses"), ("_rowid", "row_ids")):
                named: dict[str, Any] = {by: found[name].to_pylist()}
                assert table.take(**named)["k"].to_pylist() == found["k"].to_pylist()
        written = [one.id for one in read_manifest(manifest_file(uri)).fragments]
        if lt.open_table(uri).version > len(SIZES):
            assert len(set(written)) == len(written)
    finally:
        shutil.rmtree(folder)
