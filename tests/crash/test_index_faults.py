"""The store fails at each call of a change of indices, or of a change that moves their rows."""

from pathlib import Path

import pytest

import lancetable as lt
from tests.acts import Act, make_base, rows_from
from tests.crash.test_store_faults import sweep
from tests.stores import Moment

ACTS = {
    "create": Act("CreateIndex", lambda t, c: t.indices.create("x", "bitmap", commit=c)),
    "create in parts": Act(
        "CreateIndex", lambda t, c: t.indices.create("y", lt.NGram(), segments=3, commit=c)
    ),
    "replace": Act(
        "CreateIndex",
        lambda t, c: t.indices.create("id", "zonemap", name="id_idx", replace=True, commit=c),
    ),
    "append": Act("CreateIndex", lambda t, c: t.indices.optimize(mode="append", commit=c)),
    "merge": Act("CreateIndex", lambda t, c: t.indices.optimize(mode="merge", commit=c)),
    "rebuild": Act("CreateIndex", lambda t, c: t.indices.optimize(mode="rebuild", commit=c)),
    "drop": Act("CreateIndex", lambda t, c: t.indices.drop("id_idx", commit=c)),
    "remap": Act("Rewrite", lambda t, c: t.compact(indices="remap", commit=c)),
    "uncover": Act("Rewrite", lambda t, c: t.compact(indices="uncover", commit=c)),
    "delete by key": Act("Delete", lambda t, c: t.delete("id in (3, 12, 25)", commit=c)),
}


@pytest.fixture(scope="module")
def base(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The objects of a table with an index that does not describe its last fragment."""
    folder: Path = tmp_path_factory.mktemp("faults") / "base"
    table = make_base(folder, stable=request.param)
    table.indices.create("id", "btree")
    table.append(rows_from(30, 5).append_column("w", rows_from(31, 5)["id"]))
    return {
        str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()
    }


@pytest.mark.parametrize("base", [False, True], ids=["addresses", "stable ids"], indirect=True)
@pytest.mark.parametrize("name", ACTS)
def test_one_call_fails(base: dict[str, bytes], name: str) -> None:
    for moment in Moment:
        assert sweep(base, name, ACTS[name], moment, is_thorough=False) > 2


@pytest.mark.soak
@pytest.mark.parametrize("base", [False, True], ids=["addresses", "stable ids"], indirect=True)
@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("stays_down", [False, True])
def test_any_call_fails(base: dict[str, bytes], name: str, stays_down: bool) -> None:
    for moment in Moment:
        assert sweep(base, name, ACTS[name], moment, stays_down=stays_down) > 2
