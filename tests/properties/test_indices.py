"""A scan with indices, a scan without, and plain Python find the same rows."""

import pytest

from lancetable.scan import answers, narrow
from tests.properties.index_model import Model

TABLES, PREDICATES, STEPS = 10, 20, 10


def check_table(path, seed: int, *, steps: int = STEPS, predicates: int = PREDICATES) -> int:
    """Build a random table and ask it; return how many answers came from an index."""
    model = Model(path, seed)
    for _ in range(4):
        model.create()
    history = []
    used = 0
    for number in range(steps):
        history.append(model.step())
        for _ in range(predicates // steps + (number < predicates % steps)):
            predicate = model.predicate()
            expected = model.matching(predicate)
            said = f"seed {seed}, after {history}: {predicate.sql}"
            plain = model.table.scan(["id"], where=predicate.sql, use_indices=False).to_arrow()
            assert sorted(plain["id"].to_pylist()) == expected, said
            scan = model.table.scan(["id"], where=predicate.sql)
            assert scan.to_arrow()["id"].to_pylist() == plain["id"].to_pylist(), said
            assert scan.count() == len(expected), said
            used += "index " in scan.explain()
    return used


@pytest.fixture(params=[narrow.SCAN_FROM, 1.0], ids=["usual", "by row"])
def _scan_from(request, monkeypatch):
    """Read the rows that indices name by row, also when they are many."""
    monkeypatch.setattr(narrow, "SCAN_FROM", request.param)
    if request.param == 1.0:
        monkeypatch.setattr(answers, "DECODED_ROWS", 3)


@pytest.mark.slow
@pytest.mark.usefixtures("_scan_from")
@pytest.mark.parametrize("group", range(5))
def test_indices_only_save_work(tmp_path, group):
    first = 100 * (narrow.SCAN_FROM == 1.0) + group * TABLES
    seeds = range(first, first + TABLES)
    used = [check_table(tmp_path / str(seed), seed) for seed in seeds]
    assert sum(used) > TABLES * PREDICATES / 5


@pytest.mark.soak
@pytest.mark.usefixtures("_scan_from")
@pytest.mark.parametrize("group", range(20))
def test_indices_only_save_work_for_long(tmp_path, group):
    for seed in range(1000 + group * TABLES, 1000 + (group + 1) * TABLES):
        check_table(tmp_path / str(seed), seed, steps=25, predicates=75)
