"""Which file of a fragment holds which part of a column."""

from lancetable.format.manifest.model import DataFile
from lancetable.format.schema.model import Field
from lancetable.fragment.projection import Projection, live_ids, plan_fragment, prune

A = Field("a", 0, "int64")
X = Field("x", 2, "int32")
Y = Field("y", 3, "string")
S = Field("s", 1, "struct", children=(X, Y))
PACKED = Field("s", 1, "struct", children=(X, Y), metadata={"packed": "true"})


def ids(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def test_one_file_with_everything_is_the_short_way():
    plan = plan_fragment([A, S], [ids(0, 2, 3)])

    assert plan.single_file == 0
    assert plan.reads[0].fields == (A, S)
    assert plan.mixed == ()


def test_parents_may_be_listed_or_not():
    assert prune(S, ids(1, 2, 3)) is S
    assert prune(S, ids(2, 3)) is S
    assert prune(S, ids(1)) is None


def test_a_packed_struct_is_found_by_its_own_id():
    assert prune(PACKED, ids(1)) is PACKED
    assert prune(PACKED, ids(0)) is None


def test_columns_of_two_files_keep_their_slots():
    plan = plan_fragment([S, A], [ids(0), ids(2, 3)])

    assert plan.single_file is None
    assert [(read.file, read.slots) for read in plan.reads] == [(0, (1,)), (1, (0,))]


def test_a_struct_split_over_files_is_read_in_parts():
    plan = plan_fragment([S], [ids(2), ids(3)])

    (mixed,) = plan.mixed
    assert [(part.file, part.field.children) for part in mixed.parts] == [(0, (X,)), (1, (Y,))]


def test_a_column_of_no_file_has_no_parts():
    plan = plan_fragment([A], [ids(7)])

    assert plan.single_file is None
    assert plan.mixed[0].parts == ()


def test_the_first_file_wins_when_two_hold_a_column():
    assert plan_fragment([A], [ids(0), ids(0)]).single_file == 0


def test_tombstones_and_system_columns_are_no_fields():
    assert live_ids(DataFile("f.lance", (0, -2, -3, 4), (0, 1, 2, 3))) == ids(0, 4)


def test_fragments_of_one_shape_share_a_plan():
    projection = Projection([A])
    first = projection.plan([DataFile("one.lance", (0,), (0,), 2, 1)])

    assert projection.plan([DataFile("two.lance", (0,), (0,), 2, 1)]) is first
    assert projection.plan([DataFile("old.lance", (5,), (0,), 2, 1)]) is not first
