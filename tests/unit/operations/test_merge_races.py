"""Many writers at once: each changes rows of its own, and none of its changes is lost."""

import random
import threading

import pyarrow as pa
import pytest

import lancetable
from lancetable import CommitOptions

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
PATIENT = CommitOptions(attempts=200, deadline_seconds=120)


def work(uri, number, model):
    """Change rows whose id is ``number`` modulo 10, and the model of them."""
    rng = random.Random(number)
    table = lancetable.open_table(uri)
    for step in range(8):
        name = rng.choice(["append", "delete", "update", "columns", "merge"])
        ids = [number + 10 * rng.randrange(12) for _ in range(3)]
        low, high = min(ids), max(ids)
        where = f"id % 10 = {number} and id between {low} and {high}"
        hits = [id_ for id_ in model if low <= id_ <= high]
        if name == "append":
            fresh = number + 10 * (100 + step)
            table.append(pa.table({"id": [fresh], "v": [step]}), commit=PATIENT)
            model[fresh] = step
        elif name == "delete":
            table.delete(where, commit=PATIENT)
            for id_ in hits:
                del model[id_]
        elif name == "merge":
            source = dict.fromkeys(ids, step)
            data = pa.table({"id": list(source), "v": list(source.values())})
            merge = table.merge(data, on="id", commit=PATIENT)
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
            model.update(source)
        else:
            mode = "rows" if name == "update" else name
            table.update({"v": "v + 1"}, where, mode=mode, commit=PATIENT)
            for id_ in hits:
                model[id_] += 1
        if rng.random() < 0.5:
            table.refresh()


@pytest.mark.parametrize("stable", [False, True])
def test_writers_of_other_rows_lose_nothing(tmp_path, stable):
    uri = str(tmp_path / "t")
    start = pa.table({"id": list(range(120)), "v": [0] * 120}, schema=SCHEMA)
    table = lancetable.create_table(uri, start.slice(0, 70), stable_row_ids=stable)
    table.append(start.slice(70))
    models = [dict.fromkeys(range(number, 120, 10), 0) for number in range(4)]
    failed = []

    def guarded(number):
        try:
            work(uri, number, models[number])
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    rows = table.refresh().scan(["id", "v", "_rowid"]).to_arrow().to_pylist()
    wanted = {id_: 0 for id_ in range(120) if id_ % 10 >= 4}
    for model in models:
        wanted |= model
    assert {row["id"]: row["v"] for row in rows} == wanted
    assert len(rows) == len(wanted)
    assert len({row["_rowid"] for row in rows}) == len(rows)
