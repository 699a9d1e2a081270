"""Every type that each kind of index takes, shared with pylance in both directions."""

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancetable as lt
from lancetable.index.registry import SCALAR

pytestmark = pytest.mark.oracle

ROWS, PER_FILE = 700, 250
KINDS = ("btree", "bitmap", "zonemap", "bloomfilter")
FLOATS = [0.0, -0.0, float("nan"), -float("nan"), float("inf"), 1.5, -2.5, 7.0]
ZONE = dt.timezone(dt.timedelta(hours=2))
# The values of a type, and what SQL calls one of them.
CASES: dict[pa.DataType, tuple[list[Any], str | None]] = {
    pa.int8(): (list(range(-20, 20)), "7"),
    pa.int16(): (list(range(-300, 300)), "7"),
    pa.int32(): (list(range(-300, 300)), "7"),
    pa.int64(): ([-(2**63), 2**63 - 1, *range(90)], "7"),
    pa.uint8(): (list(range(200)), "7"),
    pa.uint16(): (list(range(200)), "7"),
    pa.uint32(): ([2**32 - 1, *range(90)], "7"),
    pa.uint64(): ([2**64 - 1, *range(90)], "7"),
    pa.float16(): ([np.float16(one) for one in FLOATS], None),
    pa.float32(): (FLOATS, "7.0"),
    pa.float64(): (FLOATS, "7.0"),
    pa.bool_(): ([False, True], "true"),
    pa.string(): (["", "a", "ab", "ü", "red", "b" * 40], "'red'"),
    pa.large_string(): (["", "a", "ab", "ü", "red", "b" * 40], "'red'"),
    pa.binary(): ([b"", b"\0", b"\xff", b"red"], "X'726564'"),
    pa.large_binary(): ([b"", b"\0", b"\xff", b"red"], None),
    pa.binary(3): ([b"\0\0\0", b"\xff\0\0", b"red"], None),
    pa.decimal128(12, 2): ([Decimal(one) / 4 for one in range(-40, 40)], None),
    pa.date32(): ([dt.date(2024, 1, day) for day in range(1, 30)], "date '2024-01-07'"),
    pa.date64(): ([dt.date(2024, 1, day) for day in range(1, 30)], None),
    pa.time32("s"): ([dt.time(5, minute) for minute in range(60)], None),
    pa.time64("us"): ([dt.time(5, minute) for minute in range(60)], None),
    pa.timestamp("us"): (
        [dt.datetime(2024, 1, day) for day in range(1, 30)],  # noqa: DTZ001 - has none
        "timestamp '2024-01-07 00:00:00'",
    ),
    pa.timestamp("ms", "UTC"): ([dt.datetime(2024, 1, 1, h, tzinfo=ZONE) for h in range(9)], None),
    pa.duration("us"): ([dt.timedelta(hours=hour) for hour in range(-9, 9)], None),
}


def rows(type_: pa.DataType, first: int, count: int, kinds: list[str]) -> pa.Table:
    draw = random.Random(first)
    choice = CASES[type_][0]
    values = [None if draw.random() < 0.1 else draw.choice(choice) for _ in range(count)]
    column = pa.array(values, type_)
    ids = pa.array(range(first, first + count), pa.int64())
    return pa.table({"id": ids, **dict.fromkeys(kinds, column)})


def check(uri: str, kinds: list[str], type_: pa.DataType) -> None:
    """Compare both tools, with and without their indices, which they must use."""
    theirs, ours = lance.dataset(uri), lt.open_table(uri)
    literal = CASES[type_][1]
    for kind in kinds:
        texts = [f"{kind} is null"]
        if literal is not None:
            texts += [f"{kind} = {literal}", f"{kind} in ({literal})"]
            texts += [] if kind == "bloomfilter" else [f"{kind} > {literal}"]
        for text in texts:
            assert "ScalarIndexQuery" in theirs.scanner(filter=text).explain_plan(), text
            expected = theirs.to_table(["id"], filter=text, use_scalar_index=False)["id"]
            # A zone map of pylance leaves NaN out of comparisons.
            if not (kind == "zonemap" and ">" in text and pa.types.is_floating(type_)):
                found = theirs.to_table(["id"], filter=text)["id"].to_pylist()
                assert sorted(found) == sorted(expected.to_pylist()), text
            assert ours.scan(["id"], where=text).to_arrow()["id"].equals(expected), text
        for one in pa.array(CASES[type_][0][:6], type_).unique():
            where = pc.field(kind) == one
            scan = ours.scan(["id"], where=where)
            plain = ours.scan(["id"], where=where, use_indices=False).to_arrow()
            assert scan.to_arrow().equals(plain), (kind, one)
            # One zone is the whole table here, which is then scanned.
            is_served = kind in {"btree", "bitmap"} and type_ != pa.float16()
            assert ("index " in scan.explain()) >= is_served, (kind, one)


def taken(type_: pa.DataType) -> list[str]:
    kinds = [kind for kind in KINDS if SCALAR[kind].refuses(type_) is None]
    assert len(kinds) >= 3
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("type_", CASES, ids=str)
def test_pylance_takes_over(tmp_path, type_, is_stable):
    uri, kinds = str(tmp_path / "t"), taken(type_)
    table = lt.create_table(
        uri, rows(type_, 0, ROWS, kinds), max_rows_per_file=PER_FILE, stable_row_ids=is_stable
    )
    table.delete("id % 9 = 1")
    for kind in kinds:
        table.indices.create(kind, kind)
    check(uri, kinds, type_)
    theirs = lance.write_dataset(rows(type_, ROWS, 60, kinds), uri, mode="append")
    theirs.optimize.optimize_indices()
    check(uri, kinds, type_)
    theirs = lance.dataset(uri)
    theirs.optimize.compact_files(target_rows_per_fragment=5000)
    theirs.optimize.optimize_indices()
    check(uri, kinds, type_)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["remap", "reuse", "uncover"])
@pytest.mark.parametrize("type_", CASES, ids=str)
def test_we_take_over(tmp_path, type_, policy):
    uri, kinds = str(tmp_path / "t"), taken(type_)
    theirs = lance.write_dataset(rows(type_, 0, ROWS, kinds), uri, max_rows_per_file=PER_FILE)
    for kind in kinds:
        theirs.create_scalar_index(kind, kind.upper())
    theirs.delete("id % 9 = 1")
    check(uri, kinds, type_)
    table = lt.open_table(uri)
    table.append(rows(type_, ROWS, 60, kinds))
    table.indices.optimize(mode="merge")
    check(uri, kinds, type_)
    table.compact(indices=policy, target_rows=5000)
    if policy == "uncover":
        table.indices.optimize()
    check(uri, kinds, type_)


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_that_is_not_trained_or_of_no_rows(tmp_path, kind):
    for name, count in (("untrained", 30), ("empty", 0)):
        uri = str(tmp_path / name)
        table = lt.create_table(uri, rows(pa.int64(), 0, count, [kind]))
        table.indices.create(kind, kind, train=name != "untrained")
        assert lance.dataset(uri).to_table(filter=f"{kind} = 7").num_rows == table.count(
            f"{kind} = 7"
        )
        lance.write_dataset(rows(pa.int64(), 100, 60, [kind]), uri, mode="append")
        lance.dataset(uri).optimize.optimize_indices()
        check(uri, [kind], pa.int64())
        table = lt.open_table(uri)
        table.indices.optimize(mode="merge")
        check(uri, [kind], pa.int64())


@pytest.mark.parametrize(
    "type_", [pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.string()], ids=str
)
def test_items_of_lists(tmp_path, type_):
    uri = str(tmp_path / "t")
    choice, literal = CASES[type_]
    draw = random.Random(3)

    def some(first: int, count: int) -> pa.Table:
        lists = [
            None
            if draw.random() < 0.1
            else [draw.choice([None, *choice]) for _ in range(draw.randrange(4))]
            for _ in range(count)
        ]
        return pa.table({"id": range(first, first + count), "l": pa.array(lists, pa.list_(type_))})

    def compare() -> None:
        theirs, ours = lance.dataset(uri), lt.open_table(uri)
        for text in (f"array_has(l, {literal})", f"not array_has(l, {literal})"):
            expected = theirs.to_table(["id"], filter=text, use_scalar_index=False)["id"]
            assert "ScalarIndexQuery" in theirs.scanner(filter=text).explain_plan()
            assert sorted(theirs.to_table(["id"], filter=text)["id"].to_pylist()) == sorted(
                expected.to_pylist()
            )
            assert ours.scan(["id"], where=text).to_arrow()["id"].equals(expected), text

    table = lt.create_table(uri, some(0, 400), max_rows_per_file=150)
    table.indices.create("l", "label_list")
    compare()
    lance.write_dataset(some(400, 50), uri, mode="append").optimize.optimize_indices()
    compare()
    table = lt.open_table(uri)
    table.append(some(450, 50))
    table.indices.optimize(mode="merge")
    table.compact(indices="remap")
    compare()


def test_nested_columns_are_indexed_like_others(tmp_path):
    uri = str(tmp_path / "t")
    numbers = pa.array([None if one % 11 == 0 else one % 40 for one in range(400)])
    nested = pa.StructArray.from_arrays([numbers], ["k"])
    table = lt.create_table(uri, pa.table({"id": range(400), "at": nested}))
    table.indices.create("at.k", "btree")
    theirs = lance.dataset(uri)
    for text in ("at.k = 7", "at.k is null", "at.k > 30"):
        assert "ScalarIndexQuery" in theirs.scanner(filter=text).explain_plan()
        found = table.scan(["id"], where=text)
        assert "index " in found.explain()
        assert found.to_arrow().equals(theirs.to_table(["id"], filter=text))


def test_texts_of_other_layouts_are_indexed_as_plain_ones(tmp_path):
    uri = str(tmp_path / "t")
    texts = pa.array(["red", "a", None] * 30, pa.string_view())
    lance.write_dataset(pa.table({"id": range(90), "s": texts}), uri)
    table = lt.open_table(uri)
    table.indices.create("s", "btree")
    assert table.count("s = 'red'") == 30
    theirs = lance.dataset(uri)
    assert "ScalarIndexQuery" in theirs.scanner(filter="s = 'red'").explain_plan()
    assert theirs.count_rows("s = 'red'") == 30
