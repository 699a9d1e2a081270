"""Which columns are read when, and what the result looks like."""

from itertools import pairwise

import pyarrow as pa
import pytest

from lancetable.errors import SchemaError
from lancetable.expression import parse
from lancetable.format.schema.types import schema_from_arrow
from lancetable.scan.plan import Window, plan, windows
from lancetable.scan.plans import Plans
from lancetable.scan.request import ScanRequest

SCHEMA = schema_from_arrow(
    pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
            ("l", pa.list_(pa.struct([("p", pa.int8()), ("q", pa.int8())]))),
        ]
    )
)


def planned(*, where=None, **request):
    predicate = None if where is None else parse(where)
    return plan(SCHEMA, ScanRequest(where=predicate, **request))


def children(projection):
    return {field.name: [child.name for child in field.children] for field in projection.fields}


def test_all_columns_are_read_as_they_are():
    whole = planned()

    assert whole.is_plain
    assert whole.names == ("id", "s", "l")
    assert not whole.schema.field("id").nullable


def test_columns_of_the_predicate_come_first_and_only_once():
    filtered = planned(where="id > 1")

    assert filtered.early_names == ("id",)
    assert [field.name for field in filtered.late.fields] == ["s", "l"]
    assert filtered.schema.names == ["id", "s", "l"]


def test_a_predicate_on_a_struct_child_reads_only_that():
    filtered = planned(columns=("s",), where="s.x = 1")

    assert children(filtered.early) == {"s": ["x"]}
    assert children(filtered.late) == {"s": ["x", "y"]}
    assert [source.slot for source in filtered.sources] == [1]


def test_a_path_through_structs_is_a_column_of_its_own():
    narrow = planned(columns=("s.y", "id"))

    assert narrow.schema.names == ["s.y", "id"]
    assert narrow.schema.field("s.y").type == pa.string()
    assert children(narrow.late)["s"] == ["y"]


def test_a_path_through_a_list_keeps_the_list():
    narrow = planned(columns=("l.item.q",))

    assert narrow.schema.field("l").type == pa.list_(pa.struct([("q", pa.int8())]))


def test_two_paths_below_one_list_are_joined():
    both = planned(columns=("l.q", "l.p"))

    assert both.schema == planned(columns=("l",)).schema


def test_row_id_and_address_come_last():
    shown = planned(columns=("_rowid", "id"), with_row_id=True, with_row_address=True)

    assert shown.schema.names == ["id", "_rowid", "_rowaddr"]


def test_system_columns_keep_their_place_when_named():
    assert planned(columns=("_rowoffset", "id")).schema.names == ["_rowoffset", "id"]


def test_expressions_are_typed():
    made = plan(SCHEMA, ScanRequest(expressions=(("double", parse("id * 2")),)))

    assert made.schema == pa.schema([("double", pa.int64())])
    assert made.names == ("id",)


def test_unknown_columns_are_refused():
    with pytest.raises(SchemaError, match="'ix'"):
        planned(columns=("ix",))


def test_windows_cover_the_rows_once():
    cut = list(windows(3, 10, 100_010, 30_000))

    assert cut[0].start == 10
    assert cut[-1].stop == 100_010
    assert all(one.stop == other.start for one, other in pairwise(cut))
    assert max(window.stop - window.start for window in cut) <= 30_000
    assert list(windows(0, 5, 7, 100)) == [Window(0, 5, 7)]
    assert list(windows(0, 5, 5, 100)) == []


@pytest.mark.parametrize(
    ("where", "is_kept"),
    [
        ("id > 1", True),
        ("id > 1 AND s.x = 2", True),
        ("id > 0.0", False),
        ("id IN (1, 2)", False),
        ("cast(now() AS date) > date '2020-01-01'", False),
        ("current_date > date '2020-01-01'", False),
    ],
)
def test_plans_with_a_predicate_are_kept_unless_it_may_change(where, is_kept):
    plans = Plans(SCHEMA)
    first, second = (plans.of(ScanRequest(("id",), where=parse(where))) for _ in range(2))
    assert (first is second) == is_kept
    limited = plans.of(ScanRequest(("id",), where=parse(where), limit=3))
    assert limited.limit == 3
    other = plans.of(ScanRequest(("id",), where=parse("id > 7")))
    assert other.where != first.where
