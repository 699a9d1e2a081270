"""Predicates that are compared while columns are decoded find the rows that evaluation finds."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.expression import evaluate_mask, parse
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.schema.types import schema_from_arrow
from lancetable.scan import window
from lancetable.scan.columns import bound_predicate
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest
from tests.same import assert_same_table

ROWS = 6000


def rows(first: int) -> pa.Table:
    """Columns of all kinds of numbers, some with nulls and NaN."""
    rng = np.random.default_rng(first)
    ids = np.arange(first, first + ROWS)
    real = rng.standard_normal(ROWS)
    real[::50] = np.nan
    gaps = rng.random(ROWS) < 0.2
    days = (ids % 500).astype(np.int32)
    return pa.table(
        {
            "id": ids,
            "real": pa.array(real, mask=gaps),
            "small": pa.array(rng.integers(0, 200, ROWS), pa.uint8()),
            "day": pa.array(days, pa.date32(), mask=gaps),
            "at": pa.array(ids * 1000, pa.timestamp("us")),
            "single": pa.array(real.astype(np.float32)),
            "text": [f"t{one % 100}" for one in ids],
            "pair": pa.array([{"x": one, "y": str(one)} for one in ids.tolist()]),
        }
    )


@pytest.fixture(scope="module", params=["whole", "with deletions", "with a new column"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> lt.Table:
    path: Path = tmp_path_factory.mktemp("tested") / "t"
    made = lt.create_table(path, rows(0))
    made.append(rows(ROWS))
    if request.param == "with deletions":
        made.delete("id % 7 = 3 OR id BETWEEN 2000 AND 3500")
    if request.param == "with a new column":
        made.columns.add({"double": "small * 2"})
        made.append(rows(2 * ROWS))
        made.delete("id > 15000")
    return lt.open_table(path)


PREDICATES = [
    "real < -2",
    "real > 2",
    "real >= 0.5",
    "real = CAST('NaN' AS DOUBLE)",
    "real <> 1.5",
    "real < 100",
    "id >= 500 AND id < 510",
    "id < 0",
    "5 > id",
    "small = 7 AND real < 0",
    "small = 7 AND text LIKE '%1'",
    "small = 7 AND 100 / (small - 6) > 3",
    "real > 1 AND pair.x > 900 AND _rowid > 5",
    "_rowid > 5 AND real > 2",
    "day < date '1970-02-01'",
    "at > timestamp '1970-01-01 00:00:05'",
    "single <= -1.5",
    "small != 7",
    "id IS NOT DISTINCT FROM 7",
    "text = 't5' AND id > 3000",
]


@pytest.mark.parametrize("where", PREDICATES)
def test_rows_that_pass(table: lt.Table, where: str) -> None:
    whole = table.scan(with_row_id=True).to_arrow()
    mask = evaluate_mask(bound_predicate(parse(where), schema_from_arrow(rows(0).schema)), whole)
    assert table.count(where) == int(np.count_nonzero(mask))
    for columns in (None, ["text"], ["real", "id"], ["pair.y", "_rowid"], []):
        wanted = table.scan(columns).to_arrow().filter(pa.array(mask))
        found = table.scan(columns, where=where).to_arrow()
        assert found.num_rows == wanted.num_rows
        if found.num_columns:
            assert_same_table(found, wanted)


def leading(where: str) -> tuple[list[str], object]:
    made = plan(schema_from_arrow(rows(0).schema), ScanRequest(where=parse(where)))
    assert made.predicate is not None
    return [one.column.fields[0].name for one in made.predicate.tests], made.predicate.rest


def test_comparisons_that_stand_first_are_made_while_decoding() -> None:
    assert leading("real < 1") == (["real"], None)
    assert leading("id > 1 AND real < 1 AND id < 5") == (["id", "real"], None)
    names, rest = leading("id > 1 AND text = 'a' AND real < 1")
    assert names == ["id"]
    assert rest is not None


def test_what_may_fail_is_never_overtaken() -> None:
    assert leading("100 / small > 3 AND small > 0")[0] == []


@pytest.mark.parametrize("where", ["real < 1 OR id = 5", "text = 'a'", "real IS NULL"])
def test_other_predicates_are_evaluated(where: str) -> None:
    assert leading(where)[0] == []


@pytest.mark.skipif(LIBRARY is None, reason="only compiled kernels compare while decoding")
def test_no_column_is_decoded_only_to_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lt.create_table(tmp_path / "t", rows(0))

    def refuse(*_: object) -> None:
        raise AssertionError("a column was decoded to be compared")

    monkeypatch.setattr(window, "_early", refuse)
    assert made.count("real < 0 AND id >= 100") > 0
    assert made.scan(["text"], where="id = 77").to_arrow().to_pylist() == [{"text": "t77"}]
